// SPDX-License-Identifier: Apache-2.0
// A library for ctypes: launches, a device variable, and an index that is out of bounds by request.
__device__ int calls;

__global__ void add_kernel(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) ++calls;
  if (i < n) c[i] = a[i] + b[i];
}

extern "C" int add(const float* a, const float* b, float* c, int n, int wrong) {
  float* device[3];
  for (float*& one : device) cudaMalloc(&one, n * sizeof(float));
  cudaMemcpy(device[0], a, n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(device[1], b, n * sizeof(float), cudaMemcpyHostToDevice);
  add_kernel<<<(n + 31) / 32, 32>>>(device[0], device[1], device[2], n + wrong);
  cudaMemcpy(c, device[2], n * sizeof(float), cudaMemcpyDeviceToHost);
  for (float* one : device) cudaFree(one);
  int done = 0;
  cudaMemcpyFromSymbol(&done, calls, sizeof done);
  return done;
}
