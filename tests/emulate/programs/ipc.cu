// SPDX-License-Identifier: Apache-2.0
// Memory, events and pools of another process.
// Compiled alone: each of its processes leaves what was found in it.
#include <cuda.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.cuh"

/// Messages between the two processes, in shared memory.
struct Board {
  volatile int step;
  cudaIpcMemHandle_t memory, again;
  cudaIpcEventHandle_t event;
  cudaMemPoolPtrExportData pointer, foreign;
};
constexpr int n = 1000;

__global__ void fill(int* to, int value) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = value + i;
}
__global__ void await_and_add(volatile int* flag, int* to) {
  while (*flag == 0) {
  }
  __threadfence_system();
  to[1] += 1;
}

void await(const Board* board, int step) {
  for (int looks = 0; board->step < step; ++looks) {
    CHECK(looks < 60000);  // the other has failed
    usleep(1000);
  }
}
/// A descriptor goes through a socket.
void pass(int socket, int descriptor) {
  char byte = 0, room[CMSG_SPACE(sizeof(int))] = {};
  iovec piece = {&byte, 1};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  if (descriptor >= 0) {
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    CHECK(sendmsg(socket, &message, 0) == 1);
  }
}
int receive(int socket) {
  char byte, room[CMSG_SPACE(sizeof(int))];
  iovec piece = {&byte, 1};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  CHECK(recvmsg(socket, &message, 0) == 1);
  int descriptor;
  memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
  return descriptor;
}

cudaMemPool_t new_pool(cudaMemAllocationHandleType handles) {
  cudaMemPoolProps wanted = {};
  wanted.allocType = cudaMemAllocationTypePinned;
  wanted.handleTypes = handles;
  wanted.location.type = cudaMemLocationTypeDevice;
  cudaMemPool_t pool;
  CUDA(cudaMemPoolCreate(&pool, &wanted));
  return pool;
}

int exporter(Board* board, int socket) {
  int *memory, *small, *pooled, *other;
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaMalloc(&memory, n * sizeof(int)));
  CUDA(cudaMalloc(&small, sizeof(int)));
  fill<<<1, 128>>>(memory, 5);
  CUDA(cudaIpcGetMemHandle(&board->memory, memory));
  CUDA(cudaIpcGetMemHandle(&board->again, small));
  CHECK(cudaIpcGetMemHandle(&board->again, memory + 1) == cudaErrorInvalidValue);
  void* itself;
  CHECK(cudaIpcOpenMemHandle(&itself, board->memory, cudaIpcMemLazyEnablePeerAccess) != 0);
  cudaEvent_t event, own;
  CUDA(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&own, cudaEventInterprocess) == cudaErrorInvalidValue);
  CUDA(cudaEventCreate(&own));
  CHECK(cudaIpcGetEventHandle(&board->event, own) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  CUDA(cudaIpcGetEventHandle(&board->event, event));
  // A pool that may be told of, and one that may not.
  cudaMemPool_t pool = new_pool(cudaMemHandleTypePosixFileDescriptor);
  cudaMemPool_t second = new_pool(cudaMemHandleTypePosixFileDescriptor);
  int descriptor = -1;
  CHECK(cudaMemPoolExportToShareableHandle(&descriptor, new_pool(cudaMemHandleTypeNone),
                                           cudaMemHandleTypePosixFileDescriptor, 0) != 0);
  cudaGetLastError();
  CUDA(cudaMallocAsync(&pooled, n * sizeof(int), pool, stream));
  CUDA(cudaMallocAsync(&other, n * sizeof(int), second, stream));
  fill<<<1, 64, 0, stream>>>(pooled, 100);
  CUDA(cudaMemPoolExportPointer(&board->pointer, pooled));
  CUDA(cudaMemPoolExportPointer(&board->foreign, other));
  CUDA(cudaMemPoolExportToShareableHandle(&descriptor, pool, cudaMemHandleTypePosixFileDescriptor,
                                          0));
  pass(socket, descriptor);
  CHECK(close(descriptor) == 0);
  // Memory that is mapped by hand.
  CUmemAllocationProp wanted = {};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  size_t piece;
  CUmemGenericAllocationHandle physical;
  CHECK(cuMemGetAllocationGranularity(&piece, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM) == 0);
  CHECK(cuMemCreate(&physical, piece, &wanted, 0) == 0);
  CHECK(cuMemExportToShareableHandle(&descriptor, physical,
                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) == 0);
  pass(socket, descriptor);
  CHECK(close(descriptor) == 0 && cuMemRelease(physical) == 0);
  board->step = 1;
  await(board, 2);
  // Its work, in order behind the event that it has recorded.
  CUDA(cudaStreamWaitEvent(stream, event, 0));
  int back[3];
  CUDA(cudaMemcpyAsync(back, memory, sizeof back, cudaMemcpyDeviceToHost, stream));
  CUDA(cudaStreamSynchronize(stream));
  CHECK(back[0] == 70 && back[1] == 71 && back[2] == 72);
  // This process's kernel waits for what the other writes.
  CUDA(cudaMemset(small, 0, sizeof(int)));
  await_and_add<<<1, 1, 0, stream>>>(small, memory);
  board->step = 3;
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaMemcpy(back, memory, sizeof back, cudaMemcpyDeviceToHost));
  CHECK(back[1] == 72);
  await(board, 4);
  CUDA(cudaFreeAsync(pooled, stream));
  CUDA(cudaFreeAsync(other, stream));
  CUDA(cudaMemPoolDestroy(pool));
  CUDA(cudaFree(small));
  CUDA(cudaFree(memory));
  CUDA(cudaEventDestroy(event));
  board->step = 5;
  return 0;
}

int importer(Board* board, int socket) {
  int *memory, *twice, *small, *pooled;
  cudaMemPool_t pool;
  const int exported = receive(socket), physical = receive(socket);
  await(board, 1);
  CUDA(cudaIpcOpenMemHandle((void**)&memory, board->memory, cudaIpcMemLazyEnablePeerAccess));
  CUDA(cudaIpcOpenMemHandle((void**)&twice, board->memory, cudaIpcMemLazyEnablePeerAccess));
  CUDA(cudaIpcOpenMemHandle((void**)&small, board->again, cudaIpcMemLazyEnablePeerAccess));
  CHECK(memory == twice && small != memory);
  cudaIpcMemHandle_t wrong = {};
  CHECK(cudaIpcOpenMemHandle((void**)&twice, wrong, cudaIpcMemLazyEnablePeerAccess) != 0);
  cudaEvent_t event;
  CUDA(cudaIpcOpenEventHandle(&event, board->event));
  int back[n];
  CUDA(cudaMemcpy(back, memory, sizeof back, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) CHECK(back[i] == 5 + i);
  CHECK(cudaMemcpy(back, memory + 1, sizeof back, cudaMemcpyDeviceToHost) != 0);
  fill<<<1, 32>>>(memory, 70);
  CUDA(cudaEventRecord(event, 0));
  // The pool knows its own pointers.
  CUDA(cudaMemPoolImportFromShareableHandle(&pool, reinterpret_cast<void*>((size_t)exported),
                                            cudaMemHandleTypePosixFileDescriptor, 0));
  CHECK(cudaMemPoolImportFromShareableHandle(&pool, reinterpret_cast<void*>((size_t)physical),
                                             cudaMemHandleTypePosixFileDescriptor, 0) != 0);
  CHECK(cudaMemPoolImportPointer((void**)&pooled, pool, &board->foreign) == cudaErrorInvalidValue);
  cudaGetLastError();
  CUDA(cudaMemPoolImportPointer((void**)&pooled, pool, &board->pointer));
  CHECK(cudaMallocFromPoolAsync((void**)&twice, 64, pool, 0) != 0);
  cudaGetLastError();
  CUDA(cudaMemcpy(back, pooled, sizeof back, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) CHECK(back[i] == 100 + i);
  CUDA(cudaFreeAsync(pooled, 0));
  CUmemGenericAllocationHandle handle;
  CHECK(cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>((size_t)physical),
                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0);
  CHECK(cuMemRelease(handle) == 0 && close(exported) == 0 && close(physical) == 0);
  board->step = 2;
  await(board, 3);
  usleep(20000);
  CUDA(cudaMemset(small, 1, sizeof(int)));
  CUDA(cudaIpcCloseMemHandle(memory));
  CUDA(cudaIpcCloseMemHandle(memory));
  CHECK(cudaIpcCloseMemHandle(memory) == cudaErrorInvalidValue);
  cudaGetLastError();
  CUDA(cudaIpcCloseMemHandle(small));
  CUDA(cudaEventDestroy(event));
  board->step = 4;
  await(board, 5);
  // What the other has freed cannot be opened any more.
  CHECK(cudaIpcOpenMemHandle((void**)&twice, board->memory, cudaIpcMemLazyEnablePeerAccess) != 0);
  return 0;
}

int main() {
  auto* board = static_cast<Board*>(
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  int sockets[2];
  CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets) == 0);
  fflush(stdout);
  const pid_t first = fork();
  if (first == 0) exit(exporter(board, sockets[0]));
  const pid_t second = fork();
  if (second == 0) exit(importer(board, sockets[1]));
  for (const pid_t one : {first, second}) {
    int status = 0;
    CHECK(waitpid(one, &status, 0) == one && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  return ok();
}
