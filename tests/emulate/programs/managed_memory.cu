// SPDX-License-Identifier: Apache-2.0
// Managed memory, allocated and declared, seen by both sides.
#include "check.cuh"

__managed__ int total = 5;
__managed__ float table[16];

__global__ void use(int* values, int n) {
  const int i = threadIdx.x;
  if (i < n) {
    values[i] *= 2;
    atomicAdd(&total, values[i]);
  }
  if (i < 16) table[i] += i;
}

/// Sums values that were never written: fresh pages are zero, also at reused addresses.
__global__ void add_up(const int* counts, int n, int* sum) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(sum, counts[i] + 1);
}
void check_zeros() {
  int *counts, *sum;
  for (int round = 0; round < 3; ++round) {
    CUDA(cudaMallocManaged(&counts, 1000 * sizeof(int)));
    CUDA(cudaMallocManaged(&sum, sizeof(int)));
    CHECK(counts[7] == 0 && *sum == 0);
    add_up<<<1, 32>>>(counts, 1000, sum);
    CUDA(cudaDeviceSynchronize());
    CHECK(*sum == 1000);
    for (int i = 0; i < 1000; ++i) counts[i] = -1;
    CUDA(cudaFree(counts));
    CUDA(cudaFree(sum));
  }
}

int main() {
  check_zeros();
  int* values;
  CUDA(cudaMallocManaged(&values, 32 * sizeof(int)));
  for (int i = 0; i < 32; ++i) values[i] = i;
  for (int i = 0; i < 16; ++i) table[i] = 0.5f;
  use<<<1, 32>>>(values, 32);
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < 32; ++i) CHECK(values[i] == 2 * i);
  CHECK(total == 5 + 31 * 32);
  for (int i = 0; i < 16; ++i) CHECK(table[i] == i + 0.5f);
  cudaPointerAttributes attributes;
  CUDA(cudaPointerGetAttributes(&attributes, values));
  CHECK(attributes.type == cudaMemoryTypeManaged);
  CUDA(cudaFree(values));
  return ok();
}
