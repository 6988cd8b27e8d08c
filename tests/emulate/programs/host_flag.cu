// SPDX-License-Identifier: Apache-2.0
// Kernels that wait for what the host does after their launch, and what is enqueued behind them.
#include <unistd.h>
#include <thread>

#include "check.cuh"

__global__ void wait_and_answer(volatile int* go, volatile int* answer, const int* value) {
  if (threadIdx.x == 0) {
    while (*go == 0) {
    }
    __threadfence_system();
  }
  __syncthreads();
  if (threadIdx.x == 31) *answer = *value + 1;
}
__global__ void wait_atomic(int* go) {
  while (atomicAdd(go, 0) == 0) __nanosleep(100);
}
__global__ void append(int* list, int value) { list[++list[0]] = value; }

struct Pinned {
  int go, answer, value, copied;
};

/// The host answers, looks at what the kernel says without any call, and then asks.
void conversation(volatile Pinned* pinned) {
  Array<int> list(8);
  cudaStream_t first, second, apart;
  CUDA(cudaStreamCreate(&first));
  CUDA(cudaStreamCreate(&second));
  CUDA(cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking));
  cudaEvent_t behind;
  CUDA(cudaEventCreate(&behind));
  int* const go = const_cast<int*>(&pinned->go);
  wait_and_answer<<<1, 32, 0, first>>>(go, const_cast<int*>(&pinned->answer),
                                       const_cast<int*>(&pinned->value));
  CUDA(cudaGetLastError());
  append<<<1, 1, 0, first>>>(list.device, 1);
  CUDA(cudaEventRecord(behind, first));
  CHECK(cudaStreamQuery(first) == cudaErrorNotReady);
  CHECK(cudaEventQuery(behind) == cudaErrorNotReady);
  // Another stream waits for the event, the default stream for both.
  CUDA(cudaStreamWaitEvent(second, behind, 0));
  append<<<1, 1, 0, second>>>(list.device, 2);
  append<<<1, 1>>>(list.device, 3);
  int number = 4;
  CUDA(cudaMemcpyAsync(list.device + 7, &number, sizeof number, cudaMemcpyHostToDevice, second));
  number = 5;  // ordinary memory was read by the call
  CUDA(cudaLaunchHostFunc(
      first, [](void* data) { ++*static_cast<volatile int*>(data); },
      const_cast<int*>(&pinned->copied)));
  CHECK(cudaStreamQuery(second) == cudaErrorNotReady && cudaStreamQuery(0) == cudaErrorNotReady);
  CHECK(pinned->copied == 0 && pinned->answer == 0);
  // A stream that does not wait for the others goes on.
  int* free_list = nullptr;
  CUDA(cudaMallocAsync(&free_list, 4 * sizeof(int), apart));
  CUDA(cudaMemsetAsync(free_list, 0, 4 * sizeof(int), apart));
  append<<<1, 1, 0, apart>>>(free_list, 9);
  int seen[2];
  CUDA(cudaMemcpyAsync(seen, free_list, sizeof seen, cudaMemcpyDeviceToHost, apart));
  CUDA(cudaStreamSynchronize(apart));
  CHECK(seen[0] == 1 && seen[1] == 9);
  CUDA(cudaFreeAsync(free_list, apart));
  pinned->value = 41;
  pinned->go = 1;
  while (pinned->answer == 0) {
  }
  CHECK(pinned->answer == 42);
  CUDA(cudaEventSynchronize(behind));
  CHECK(cudaEventQuery(behind) == cudaSuccess);
  list.down();  // behind the default stream's work
  CHECK(list[0] == 3 && list[1] == 1 && list[2] == 2 && list[3] == 3 && list[7] == 4);
  CUDA(cudaStreamSynchronize(first));
  CHECK(pinned->copied == 1 && cudaStreamQuery(first) == cudaSuccess);
  for (cudaStream_t one : {first, second, apart}) CUDA(cudaStreamDestroy(one));
  CUDA(cudaEventDestroy(behind));
}

/// The flag is on the device: a copy in another stream writes it.
void flag_by_copy() {
  Array<int> flag(1);
  cudaStream_t waits, tells;
  CUDA(cudaStreamCreateWithFlags(&waits, cudaStreamNonBlocking));
  CUDA(cudaStreamCreateWithFlags(&tells, cudaStreamNonBlocking));
  wait_atomic<<<4, 32, 0, waits>>>(flag.device);
  CHECK(cudaStreamQuery(waits) == cudaErrorNotReady);
  flag[0] = 1;
  CUDA(cudaMemcpyAsync(flag.device, flag.host, sizeof(int), cudaMemcpyHostToDevice, tells));
  CUDA(cudaDeviceSynchronize());
  CHECK(cudaStreamQuery(waits) == cudaSuccess);
  // A stream may be destroyed before its work is done.
  CUDA(cudaMemset(flag.device, 0, sizeof(int)));
  CUDA(cudaStreamSynchronize(cudaStreamLegacy));
  wait_atomic<<<1, 1, 0, waits>>>(flag.device);
  CUDA(cudaStreamDestroy(waits));
  CUDA(cudaMemcpyAsync(flag.device, flag.host, sizeof(int), cudaMemcpyHostToDevice, tells));
  CUDA(cudaStreamSynchronize(tells));
  CUDA(cudaStreamDestroy(tells));
  CUDA(cudaDeviceSynchronize());
}

/// The host waits already when another of its threads writes the flag.
void flag_by_thread() {
  int* managed;
  CUDA(cudaMallocManaged(&managed, sizeof(int)));
  wait_atomic<<<1, 64>>>(managed);
  std::thread other([&] {
    usleep(100000);
    *static_cast<volatile int*>(managed) = 1;
  });
  CUDA(cudaDeviceSynchronize());
  other.join();
  CUDA(cudaFree(managed));
}

int main() {
  Pinned* pinned;
  CUDA(cudaHostAlloc(&pinned, sizeof(Pinned), cudaHostAllocMapped));
  *pinned = {};
  conversation(pinned);
  CUDA(cudaFreeHost(pinned));
  flag_by_copy();
  flag_by_thread();
  return ok();
}
