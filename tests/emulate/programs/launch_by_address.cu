// SPDX-License-Identifier: Apache-2.0
// cudaLaunchKernel with typed and untyped addresses, templates too.
#include "check.cuh"

struct Shape {
  int rows, columns;
};
__global__ void fill(int* p, Shape shape, float scale) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < shape.rows * shape.columns) p[i] = static_cast<int>(i * scale);
}
template <class T, int N>
__global__ void add(T* p, T v) {
  if (threadIdx.x < N) p[threadIdx.x] += v;
}

int main() {
  Array<int> data(60);
  int* pointer = data.device;
  Shape shape = {6, 10};
  float scale = 2;
  void* arguments[] = {&pointer, &shape, &scale};
  CUDA(cudaLaunchKernel((const void*)fill, dim3(2), dim3(32), arguments, 0, 0));
  data.down();
  for (int i = 0; i < 60; ++i) CHECK(data[i] == 2 * i);
  scale = 3;
  CUDA(cudaLaunchKernel(fill, dim3(2), dim3(32), arguments));
  data.down();
  for (int i = 0; i < 60; ++i) CHECK(data[i] == 3 * i);
  int v = 7;
  void* more[] = {&pointer, &v};
  CUDA(cudaLaunchKernel((void*)add<int, 16>, dim3(1), dim3(32), more, 0, nullptr));
  data.down();
  CHECK(data[15] == 52 && data[16] == 48);
  return ok();
}
