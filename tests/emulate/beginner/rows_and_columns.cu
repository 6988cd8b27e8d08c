// SPDX-License-Identifier: Apache-2.0
// Row and column are swapped in the guard of an image that is not square.
#include <cstdio>
#include <vector>

__global__ void invert(unsigned char* image, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < height && y < width) {
    image[y * width + x] = 255 - image[y * width + x];  // expect: out_of_bounds
  }
}

int main() {
  const int width = 100, height = 40;
  unsigned char* image;
  cudaMalloc(&image, width * height);
  cudaMemset(image, 1, width * height);
  const dim3 block(16, 16), grid((width + 15) / 16, (height + 15) / 16);
  invert<<<grid, block>>>(image, width, height);
  cudaDeviceSynchronize();
  return 0;
}
// says: y < height && x < width
