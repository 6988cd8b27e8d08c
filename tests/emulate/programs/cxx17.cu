// SPDX-License-Identifier: Apache-2.0
// C++17, nvcc's default: u8 literals are char, and an aggregate may declare a constructor. A device
// template and a function of the host share a name.
// Compiled alone: a neighbor's inline PTX would make it C++20.
#include <cstring>

#include "check.cuh"

struct Point {
  int x, y;
  Point() = default;
};

template <typename T>
__device__ __forceinline__ T turn(T i, unsigned n) {
  return __brev(i) >> (32 - n);
}

__global__ void add(int* out, Point p) { *out = p.x + p.y; }
__global__ void turned(unsigned* out) {
  const unsigned r = turn(threadIdx.x, 5);
  out[threadIdx.x] = r;
}
static void turn(unsigned* out, unsigned*, int n) { turned<<<1, n>>>(out); }

int main() {
  static_assert(__cplusplus == 201703L, "the default is C++17");
  const char* name = u8"sum";
  CHECK(std::strlen(name) == 3);
  int *p, h;
  CUDA(cudaMalloc(&p, sizeof h));
  add<<<1, 1>>>(p, Point{1, 2});
  CUDA(cudaMemcpy(&h, p, sizeof h, cudaMemcpyDeviceToHost));
  CHECK(h == 3);
  unsigned *q, hq[32];
  CUDA(cudaMalloc(&q, sizeof hq));
  turn(q, q, 32);
  CUDA(cudaMemcpy(hq, q, sizeof hq, cudaMemcpyDeviceToHost));
  CHECK(hq[1] == 16);
  CUDA(cudaFree(p));
  CUDA(cudaFree(q));
  return ok();
}
