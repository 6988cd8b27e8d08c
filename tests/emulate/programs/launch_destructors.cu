// SPDX-License-Identifier: Apache-2.0
// Arguments with destructors: the host's copy is destroyed when the launch returns; what threads
// have of it frees nothing of the host's. A thread's own cudaMalloc and cudaFree go on working.
#include "check.cuh"

/// Owned by the first; copies do not free.
struct Counter {
  int* value = nullptr;
  bool owner = false;
  Counter() : owner(true) {
    CUDA(cudaMalloc(&value, sizeof(int)));
    CUDA(cudaMemset(value, 0, sizeof(int)));
  }
  __host__ __device__ Counter(const Counter& other) : value(other.value) {}
  ~Counter() {
    if (owner) cudaFree(value);
  }
};

/// Frees in the destructor, as many programs do: the first copy to be destroyed frees.
struct Careless {
  int* value = nullptr;
  ~Careless() { cudaFree(value); }
};

__global__ void count(Counter counter, int n) {
  const int i = static_cast<int>(threadIdx.x + blockIdx.x * blockDim.x);
  if (i < n) atomicAdd(counter.value, 1);
}
__global__ void count_careless(Careless counter, int* seen) {
  seen[threadIdx.x + blockIdx.x * blockDim.x] = atomicAdd(counter.value, 1);
}
__global__ void scratch(int* sum) {
  int* own = nullptr;
  cudaMalloc(reinterpret_cast<void**>(&own), sizeof(int));
  if (own == nullptr) return;
  *own = static_cast<int>(threadIdx.x);
  atomicAdd(sum, *own);
  cudaFree(own);
}

int main() {
  Counter counter;
  count<<<4, 64>>>(counter, 200);
  int value = 0;
  CUDA(cudaMemcpy(&value, counter.value, sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(value == 200);

  Array<int> seen(256);
  int* memory = nullptr;
  CUDA(cudaMalloc(&memory, sizeof(int)));
  CUDA(cudaMemset(memory, 0, sizeof(int)));
  Careless careless;
  careless.value = memory;
  count_careless<<<4, 64>>>(careless, seen.device);
  careless.value = nullptr;  // the launch's copy has freed it
  CUDA(cudaGetLastError());
  seen.down();
  int sum = 0;
  for (int i = 0; i < 256; ++i) sum += seen[i];
  CHECK(sum == 255 * 256 / 2);

  Array<int> total(1);
  scratch<<<1, 32>>>(total.device);
  total.down();
  CHECK(total[0] == 31 * 32 / 2);
  return ok();
}
