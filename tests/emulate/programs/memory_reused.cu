// SPDX-License-Identifier: Apache-2.0
// Memory that was freed on the device may be the host's afterwards: what is copied from there has
// been written.
#include <vector>

#include "check.cuh"

template <class T>
__global__ void differences(const int* row, int n, T* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = static_cast<T>(row[i + 1] - row[i]);
}

template <class T>
void run(size_t bytes) {
  const int n = 1000;
  std::vector<int> row(n + 1);
  std::vector<T> out(n);
  for (int i = 0; i <= n; ++i) row[i] = 3 * i;
  int* device_row;
  T* device_out;
  char* other;
  CUDA(cudaMalloc(&other, bytes));
  CUDA(cudaMalloc(&device_row, (n + 1) * sizeof(int)));
  CUDA(cudaMalloc(&device_out, n * sizeof(T)));
  CUDA(cudaMemcpy(device_row, row.data(), (n + 1) * sizeof(int), cudaMemcpyHostToDevice));
  differences<<<8, 128>>>(device_row, n, device_out);
  CUDA(cudaMemcpy(out.data(), device_out, n * sizeof(T), cudaMemcpyDeviceToHost));
  for (const T one : out) CHECK(one == 3);
  CUDA(cudaFree(device_row));
  CUDA(cudaFree(device_out));
  CUDA(cudaFree(other));
}

int main() {
  for (size_t bytes = 1000; bytes < 400000; bytes *= 2) {
    run<float>(bytes);
    run<double>(bytes);
  }
  return ok();
}
