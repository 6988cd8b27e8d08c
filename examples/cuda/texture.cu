// SPDX-License-Identifier: Apache-2.0
// A picture moved by half a pixel, read through a texture: its unit averages the two pixels between
// which a coordinate is (linear filtering), and gives the last pixel beyond the edge (clamp), so
// that the kernel has no guard. The middle of pixel i is at i + 0.5.
#include <algorithm>
#include <cstdio>
#include <vector>

__global__ void shift(cudaTextureObject_t in, float* out, int height, int width) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) out[y * width + x] = tex2D<float>(in, x + 1.0f, y + 0.5f);
}

int main() {
  const int height = 20, width = 50;
  std::vector<float> in(height * width), out(in.size());
  for (size_t i = 0; i < in.size(); ++i) in[i] = i * 7 % 32;
  cudaArray_t array;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaMallocArray(&array, &format, width, height);
  const size_t row = width * sizeof(float);
  cudaMemcpy2DToArray(array, 0, 0, in.data(), row, row, height, cudaMemcpyHostToDevice);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc how = {};
  how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
  how.filterMode = cudaFilterModeLinear;
  cudaTextureObject_t texture;
  cudaCreateTextureObject(&texture, &resource, &how, nullptr);
  float* out_device;
  cudaMalloc(&out_device, out.size() * sizeof(float));

  const dim3 block(16, 16), grid((width + 15) / 16, (height + 15) / 16);
  shift<<<grid, block>>>(texture, out_device, height, width);
  cudaMemcpy(out.data(), out_device, out.size() * sizeof(float), cudaMemcpyDeviceToHost);

  int wrong = 0;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const float right = in[y * width + std::min(x + 1, width - 1)];
      wrong += out[y * width + x] != (in[y * width + x] + right) / 2;
    }
  }
  std::printf("texture: %d wrong: %s\n", wrong, wrong == 0 ? "PASS" : "FAIL");
  cudaDestroyTextureObject(texture);
  cudaFreeArray(array);
  cudaFree(out_device);
  return wrong == 0 ? 0 : 1;
}
