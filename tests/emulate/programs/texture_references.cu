// SPDX-License-Identifier: Apache-2.0
// Textures bound to variables of the file, as programs for CUDA 11 and before have them.
#include "check.cuh"

texture<float, 1, cudaReadModeElementType> line;
texture<unsigned char, 2, cudaReadModeNormalizedFloat> picture;
texture<float4, cudaTextureType2D> colors;

__global__ void read_line(float* out, int n) {
  const int i = static_cast<int>(threadIdx.x);
  out[i] = tex1Dfetch(line, n - 1 - i);
}
__global__ void read_picture(float* out) {
  out[threadIdx.x] = tex2D(picture, static_cast<float>(threadIdx.x) + 0.5f, 1.5f);
}
__global__ void read_colors(float* out) { out[0] = tex2D(colors, 1.5f, 0.5f).z; }

int main() {
  constexpr int n = 32;
  Array<float> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = static_cast<float>(i);
  in.up();
  CUDA(cudaBindTexture(nullptr, line, in.device, n * sizeof(float)));
  read_line<<<1, n>>>(out.device, n);
  out.down();
  for (int i = 0; i < n; ++i) CHECK(out[i] == static_cast<float>(n - 1 - i));
  CUDA(cudaUnbindTexture(line));

  unsigned char pixels[2][4] = {{0, 0, 0, 0}, {0, 51, 102, 255}};
  cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned char>();
  cudaArray_t array;
  CUDA(cudaMallocArray(&array, &format, 4, 2));
  CUDA(cudaMemcpyToArray(array, 0, 0, pixels, sizeof pixels, cudaMemcpyHostToDevice));
  picture.addressMode[0] = cudaAddressModeClamp;
  picture.filterMode = cudaFilterModePoint;
  CUDA(cudaBindTextureToArray(picture, array, format));
  read_picture<<<1, 4>>>(out.device);
  out.down();
  CHECK(out[0] == 0 && std::fabs(out[1] - 0.2f) < 1e-6f && out[3] == 1);
  CUDA(cudaUnbindTexture(picture));
  CUDA(cudaFreeArray(array));

  Array<float4> rows(32);
  rows[1] = make_float4(1, 2, 3, 4);
  rows.up();
  CUDA(cudaBindTexture2D(nullptr, colors, rows.device, 16, 2, 16 * sizeof(float4)));
  read_colors<<<1, 1>>>(out.device);
  out.down();
  CHECK(out[0] == 3);
  return ok();
}
