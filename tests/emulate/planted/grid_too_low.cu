// SPDX-License-Identifier: Apache-2.0
// A grid whose rows of blocks are too few for the image; some launches that look alike are right.
#include "../programs/check.cuh"

__global__ void invert(unsigned char* out, const unsigned char* in, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) out[y * width + x] = 255 - in[y * width + x];
}
// A thread for four elements.
__global__ void quadruple(int* out, int n) {
  const int first = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  for (int i = first; i < first + 4 && i < n; ++i) out[i] = i;
}
// A sum for each block: the rest of the array is not used.
__global__ void sums(int* out, const int* in, int n) {
  if (threadIdx.x == 0) out[blockIdx.x] = in[blockIdx.x * blockDim.x] + n;
}

int main() {
  const int width = 70, height = 50;
  Array<unsigned char> in(width * height);
  unsigned char* out = nullptr;
  CUDA(cudaMalloc(&out, width * height));
#ifdef BUG
  const dim3 grid((width + 15) / 16, height / 16);
#else
  const dim3 grid((width + 15) / 16, (height + 15) / 16);
#endif
  invert<<<grid, dim3(16, 16)>>>(out, in.device, width, height);  // expect: uninitialized
  CUDA(cudaMemcpy(in.host, out, width * height, cudaMemcpyDeviceToHost));
  CUDA(cudaFree(out));

  const int n = 256;
  Array<int> numbers(n);
  int* more = nullptr;
  CUDA(cudaMalloc(&more, n * sizeof(int)));
  sums<<<4, 64>>>(more, numbers.device, n);
  CUDA(cudaMemcpy(numbers.host, more, 4 * sizeof(int), cudaMemcpyDeviceToHost));
  quadruple<<<1, 64>>>(more, n);
  CUDA(cudaMemcpy(numbers.host, more, n * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(numbers[255] == 255);
  CUDA(cudaFree(more));
  return ok();
}
