// SPDX-License-Identifier: Apache-2.0
// Constant and device variables by symbol: whole, with offsets, addresses, sizes, structures.
#include "check.cuh"

struct Filter {
  float weight[5];
  int radius;
};
__constant__ Filter filter;
__constant__ int scale = 3;
__device__ int counts[8];
__device__ float initial = 1.5f;
static __device__ double inner;

__global__ void use(float* out) {
  float sum = 0;
  for (int i = 0; i < 5; ++i) sum += filter.weight[i];
  out[0] = sum * filter.radius * scale;
  out[1] = initial;
  counts[threadIdx.x] += 10;
  if (threadIdx.x == 0) inner = 2.5;
}

int main() {
  Array<float> out(2);
  const Filter host = {{1, 2, 3, 4, 5}, 2};
  CUDA(cudaMemcpyToSymbol(filter, &host, sizeof host));
  int values[8];
  for (int i = 0; i < 8; ++i) values[i] = i;
  CUDA(cudaMemcpyToSymbol(counts, values, sizeof values));
  const int one = 100;
  CUDA(cudaMemcpyToSymbol(counts, &one, sizeof one, 3 * sizeof(int)));
  use<<<1, 8>>>(out.device);
  out.down();
  CHECK(out[0] == 90 && out[1] == 1.5f);
  CUDA(cudaMemcpyFromSymbol(values, counts, sizeof values));
  for (int i = 0; i < 8; ++i) CHECK(values[i] == (i == 3 ? 110 : i + 10));
  double back = 0;
  CUDA(cudaMemcpyFromSymbol(&back, inner, sizeof back));
  CHECK(back == 2.5);
  void* address = nullptr;
  size_t bytes = 0;
  CUDA(cudaGetSymbolAddress(&address, counts));
  CUDA(cudaGetSymbolSize(&bytes, counts));
  CHECK(bytes == sizeof counts);
  int second = 0;
  CUDA(cudaMemcpy(&second, static_cast<int*>(address) + 1, sizeof second, cudaMemcpyDeviceToHost));
  CHECK(second == 11);
  CHECK(cudaMemcpyToSymbol(scale, values, sizeof values) != cudaSuccess);
  cudaGetLastError();
  return ok();
}
