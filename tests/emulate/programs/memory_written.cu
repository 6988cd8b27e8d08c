// SPDX-License-Identifier: Apache-2.0
// Results count as written however a kernel writes them: by structures, memcpy, memset. What no
// kernel has had the chance to write is copied to be timed.
#include <cstring>

#include "check.cuh"

struct Pair {
  int first[5];
  double second;
};

__global__ void structures(const Pair* in, Pair* out) { out[threadIdx.x] = in[threadIdx.x]; }
__global__ void copies(const Pair* in, Pair* out) { memcpy(out, in, 32 * sizeof(Pair)); }
__global__ void fills(Pair* out) { memset(out, 0, 32 * sizeof(Pair)); }
__global__ void zeros(int* out, int n) {
  for (int i = 0; i < n; ++i) out[i] = 0;
}

int main() {
  Pair host[32] = {};
  Pair* in;
  CUDA(cudaMalloc(&in, sizeof(host)));
  CUDA(cudaMemcpy(host, in, sizeof(host), cudaMemcpyDeviceToHost));
  std::memset(host, 0, sizeof(host));
  host[3].second = 2.5;
  CUDA(cudaMemcpy(in, host, sizeof(host), cudaMemcpyHostToDevice));
  for (int how = 0; how < 4; ++how) {
    Pair* out;
    CUDA(cudaMalloc(&out, sizeof(host)));
    if (how == 0) structures<<<1, 32>>>(in, out);
    if (how == 1) copies<<<1, 1>>>(in, out);
    if (how == 2) fills<<<1, 1>>>(out);
    if (how == 3) zeros<<<1, 1>>>(reinterpret_cast<int*>(out), sizeof(host) / sizeof(int));
    CUDA(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost));
    CHECK(host[3].second == (how < 2 ? 2.5 : 0));
    CUDA(cudaFree(out));
  }
  CUDA(cudaFree(in));
  return ok();
}
