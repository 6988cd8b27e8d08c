// SPDX-License-Identifier: Apache-2.0
// Kernel parameters with destructors: no thread destroys them, and the host's copies live on.
#include <memory>
#include <vector>

#include "check.cuh"

struct Pinned {
  int* p;
  Pinned() { CUDA(cudaMallocHost(&p, sizeof(int))); }
  ~Pinned() { CUDA(cudaFreeHost(p)); }
};
struct Counter {
  std::shared_ptr<Pinned> own = std::make_shared<Pinned>();
  int* raw = own->p;
};
template <class T>
struct Weights {
  std::vector<T> host;
  T* device;
};

__global__ void raise(Counter counter, int by) {
  if (threadIdx.x == 0) atomicAdd(counter.raw, by);
}
template <class T, class... Others>
__global__ void sum(const Weights<T> weights, int n, T* out, Others... others) {
  T all = (T(others.raw[0]) + ...);
  for (int i = 0; i < n; ++i) all += weights.device[i];
  if (threadIdx.x == 0 && blockIdx.x == 0) *out = all;
}

int main() {
  Counter counter;
  *counter.raw = 0;
  for (int i = 0; i < 3; ++i) raise<<<100, 32>>>(counter, 1);
  CUDA(cudaDeviceSynchronize());
  CHECK(*counter.raw == 300 && counter.own.use_count() == 1);
  Weights<float> weights{{1, 2, 3}, nullptr};
  float *out, result;
  CUDA(cudaMalloc(&weights.device, 3 * sizeof(float)));
  CUDA(cudaMalloc(&out, sizeof(float)));
  CUDA(cudaMemcpy(weights.device, weights.host.data(), 3 * sizeof(float), cudaMemcpyHostToDevice));
  sum<<<2, 32>>>(weights, 3, out, counter, Counter(counter));
  CUDA(cudaMemcpy(&result, out, sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(result == 606 && counter.own.use_count() == 1);
  CUDA(cudaFree(weights.device));
  CUDA(cudaFree(out));
  return ok();
}
