// SPDX-License-Identifier: Apache-2.0
// Three devices, each with its own memory and streams.
// Compiled alone, with
// Options: --devices 3
#include <thread>

#include "check.cuh"

__global__ void fill(int* to, int value) { to[threadIdx.x] = value; }
__global__ void add(int* to, const int* from) { to[threadIdx.x] += from[threadIdx.x]; }

constexpr int n = 64;

void copies_and_peers() {
  int *here, *there, back[n], can = 0;
  CUDA(cudaSetDevice(0));
  CUDA(cudaMalloc(&here, sizeof back));
  CUDA(cudaSetDevice(1));
  CUDA(cudaMalloc(&there, sizeof back));
  fill<<<1, n>>>(there, 3);
  CUDA(cudaSetDevice(0));
  fill<<<1, n>>>(here, 4);
  cudaPointerAttributes told;
  CUDA(cudaPointerGetAttributes(&told, there));
  CHECK(told.device == 1 && told.type == cudaMemoryTypeDevice);
  // Copies need no access.
  CUDA(cudaMemcpyPeer(here, 0, there, 1, sizeof back));
  CHECK(cudaMemcpyPeer(here, 1, there, 1, sizeof back) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyPeer(here, 0, there, 3, sizeof back) == cudaErrorInvalidDevice);
  CUDA(cudaMemcpy(back, here, sizeof back, cudaMemcpyDeviceToHost));
  CHECK(back[0] == 3 && back[n - 1] == 3);
  CUDA(cudaDeviceCanAccessPeer(&can, 0, 1));
  CHECK(can == 1);
  CUDA(cudaDeviceEnablePeerAccess(1, 0));
  CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled);
  CHECK(cudaDeviceEnablePeerAccess(0, 0) == cudaErrorInvalidDevice);
  CHECK(cudaDeviceDisablePeerAccess(2) == cudaErrorPeerAccessNotEnabled);
  cudaGetLastError();
  add<<<1, n>>>(here, there);
  int* later;  // memory that comes afterwards is meant, too
  CUDA(cudaSetDevice(1));
  CUDA(cudaMalloc(&later, sizeof back));
  fill<<<1, n>>>(later, 10);
  CUDA(cudaSetDevice(0));
  add<<<1, n>>>(here, later);
  CUDA(cudaMemcpy(back, here, sizeof back, cudaMemcpyDefault));
  CHECK(back[5] == 16);
  CUDA(cudaDeviceDisablePeerAccess(1));
  size_t free_bytes[2], total;
  for (int device = 0; device < 2; ++device) {
    CUDA(cudaSetDevice(device));
    CUDA(cudaMemGetInfo(&free_bytes[device], &total));
  }
  CHECK(free_bytes[0] == total - sizeof back && free_bytes[1] == total - 2 * sizeof back);
  for (int* one : {here, there, later}) CUDA(cudaFree(one));
}

void streams_and_events() {
  cudaStream_t stream;
  cudaEvent_t event;
  int *memory, back[n];
  CUDA(cudaSetDevice(2));
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaEventCreate(&event));
  CUDA(cudaMallocAsync(&memory, sizeof back, stream));
  CUDA(cudaSetDevice(0));
  // A kernel goes to a stream of the device that is chosen; an event to one of its own.
  fill<<<1, n, 0, stream>>>(memory, 1);
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventRecord(event, 0) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  CUDA(cudaStreamWaitEvent(0, event, 0));
  CUDA(cudaMemsetAsync(memory, 0, sizeof back, stream));
  CUDA(cudaEventRecord(event, stream));
  CUDA(cudaEventSynchronize(event));
  // A pool's memory is for those who are allowed by the pool.
  cudaMemPool_t pool;
  cudaMemAccessFlags flags;
  cudaMemLocation first = {cudaMemLocationTypeDevice, 0};
  CUDA(cudaDeviceGetDefaultMemPool(&pool, 2));
  CUDA(cudaMemPoolGetAccess(&flags, pool, &first));
  CHECK(flags == cudaMemAccessFlagsProtNone);
  const cudaMemAccessDesc allowed = {first, cudaMemAccessFlagsProtReadWrite};
  CUDA(cudaMemPoolSetAccess(pool, &allowed, 1));
  fill<<<1, n>>>(memory, 8);
  CUDA(cudaMemcpy(back, memory, sizeof back, cudaMemcpyDefault));
  CHECK(back[9] == 8);
  CUDA(cudaFreeAsync(memory, stream));
  CUDA(cudaStreamDestroy(stream));
  CUDA(cudaEventDestroy(event));
}

/// Kernels of two devices that wait for each other, in memory that both have.
__global__ void meet(int* mine, int* other) {
  if (threadIdx.x == 0) {
    atomicAdd_system(mine, 1);
    while (atomicAdd_system(other, 0) == 0) {
    }
  }
  __syncthreads();
}
void meetings() {
  int* flags;
  CUDA(cudaMallocManaged(&flags, 2 * sizeof(int)));
  for (int device = 0; device < 2; ++device) {
    CUDA(cudaSetDevice(device));
    meet<<<1, n>>>(flags + device, flags + 1 - device);
    CUDA(cudaGetLastError());
  }
  for (int device = 0; device < 2; ++device) {
    CUDA(cudaSetDevice(device));
    CUDA(cudaDeviceSynchronize());
  }
  CHECK(flags[0] == 1 && flags[1] == 1);
  CUDA(cudaFree(flags));
}

/// Each host thread has its own choice, and managed memory belongs to all.
void threads() {
  int* managed;
  CUDA(cudaSetDevice(1));
  CUDA(cudaMallocManaged(&managed, 3 * n * sizeof(int)));
  std::thread others[3];
  for (int device = 0; device < 3; ++device) {
    others[device] = std::thread([=] {
      int now = -1;
      CUDA(cudaGetDevice(&now));
      CHECK(now == 0);
      CUDA(cudaSetDevice(device));
      fill<<<1, n>>>(managed + device * n, device + 1);
      CUDA(cudaDeviceSynchronize());
      CUDA(cudaGetDevice(&now));
      CHECK(now == device);
    });
  }
  for (std::thread& one : others) one.join();
  int now = -1;
  CUDA(cudaGetDevice(&now));
  CHECK(now == 1);
  for (int i = 0; i < 3 * n; ++i) CHECK(managed[i] == i / n + 1);
  CUDA(cudaFree(managed));
}

int main() {
  int count = 0, device = -1;
  CUDA(cudaGetDeviceCount(&count));
  CHECK(count >= 3);
  CHECK(cudaSetDevice(count) == cudaErrorInvalidDevice);
  cudaGetLastError();
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp told;
    char id[32] = {};
    CUDA(cudaGetDeviceProperties(&told, i));
    CUDA(cudaDeviceGetPCIBusId(id, sizeof id, i));
    CUDA(cudaDeviceGetByPCIBusId(&device, id));
    CHECK(device == i);
  }
  copies_and_peers();
  streams_and_events();
  meetings();
  threads();
  return ok();
}
