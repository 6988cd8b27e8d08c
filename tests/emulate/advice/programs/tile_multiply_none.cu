// SPDX-License-Identifier: Apache-2.0
// A tiled matrix product without any barrier.
#include "check.cuh"

template <int size>
__global__ void matmul(const int* a, const int* b, int* c, int n) {
  __shared__ int first[size * size];
  __shared__ int second[size * size];
  const int slot = threadIdx.y * size + threadIdx.x;
  int sum = 0;
  for (int step = 0; step < n; step += size) {
    first[slot] = a[(blockIdx.y * size + threadIdx.y) * n + step + threadIdx.x];
    second[slot] = b[(step + threadIdx.y) * n + blockIdx.x * size + threadIdx.x];
#ifndef BUG
    __syncthreads();
#endif
    for (int k = 0; k < size; ++k) {
      sum += first[threadIdx.y * size + k] * second[k * size + threadIdx.x];
    }
#ifndef BUG
    __syncthreads();
#endif
  }
  c[(blockIdx.y * size + threadIdx.y) * n + blockIdx.x * size + threadIdx.x] = sum;
}

int main() {
  const int n = 32;
  Array<int> a(n * n), b(n * n), c(n * n);
  for (int i = 0; i < n * n; ++i) a[i] = i % 13 - 6, b[i] = i % 9 - 4;
  a.up(), b.up();
  matmul<16><<<dim3(2, 2), dim3(16, 16)>>>(a.device, b.device, c.device, n);
  c.down();
  for (int i = 0; i < n * n; ++i) {
    int sum = 0;
    for (int k = 0; k < n; ++k) sum += a[i / n * n + k] * b[k * n + i % n];
    CHECK(c[i] == sum);
  }
  return ok();
}
