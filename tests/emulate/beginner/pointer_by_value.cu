// SPDX-License-Identifier: Apache-2.0
// The size of a pointer instead of that of the array.
#include <cstdio>
#include <cstdlib>

__global__ void twice(float* a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] *= 2;  // expect: out_of_bounds
}

int main() {
  const int n = 100;
  float* host = static_cast<float*>(std::calloc(n, sizeof(float)));
  float* a;
  cudaMalloc(&a, sizeof(host));
  cudaMemcpy(a, host, sizeof(host), cudaMemcpyHostToDevice);
  twice<<<1, 128>>>(a, n);
  cudaDeviceSynchronize();
  std::free(host);
  return 0;
}
// says: sizeof(host)
