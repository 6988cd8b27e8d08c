// SPDX-License-Identifier: Apache-2.0
// Linear filtering in one, two and three dimensions; bytes as fractions.
#include "check.cuh"

__global__ void fetch_2d(cudaTextureObject_t texture, float* out) {
  const int x = threadIdx.x, y = threadIdx.y;
  out[y * 8 + x] = tex2D<float>(texture, x / 2.0f + 0.25f, y / 2.0f + 0.25f);
}
__global__ void fetch_3d(cudaTextureObject_t texture, float* out) {
  out[threadIdx.x] = tex3D<float>(texture, 1.0f, threadIdx.x / 4.0f + 0.5f, 1.0f);
}
__global__ void fetch_bytes(cudaTextureObject_t texture, float4* out) {
  out[0] = tex2D<float4>(texture, 0.5f, 0.5f);
}
static float clamped(const float* p, int w, int h, float x, float y) {
  const float u = x - 0.5f, v = y - 0.5f;
  const int i = static_cast<int>(std::floor(u)), j = static_cast<int>(std::floor(v));
  const float a = u - i, b = v - j;
  const auto at = [&](int cx, int cy) {
    cx = cx < 0 ? 0 : cx >= w ? w - 1 : cx;
    cy = cy < 0 ? 0 : cy >= h ? h - 1 : cy;
    return p[cy * w + cx];
  };
  return (1 - a) * (1 - b) * at(i, j) + a * (1 - b) * at(i + 1, j) + (1 - a) * b * at(i, j + 1) +
         a * b * at(i + 1, j + 1);
}

int main() {
  float host[16];
  for (int i = 0; i < 16; ++i) host[i] = static_cast<float>(i * i);
  float* pitched;
  size_t pitch;
  CUDA(cudaMallocPitch(&pitched, &pitch, 4 * sizeof(float), 4));
  CUDA(cudaMemcpy2D(pitched, pitch, host, 16, 16, 4, cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D.devPtr = pitched;
  resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
  resource.res.pitch2D.width = resource.res.pitch2D.height = 4;
  resource.res.pitch2D.pitchInBytes = pitch;
  cudaTextureDesc description = {};
  for (cudaTextureAddressMode& mode : description.addressMode) mode = cudaAddressModeClamp;
  description.filterMode = cudaFilterModeLinear;
  description.readMode = cudaReadModeElementType;
  cudaTextureObject_t texture = 0;
  CUDA(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  Array<float> out(64);
  fetch_2d<<<1, dim3(8, 8)>>>(texture, out.device);
  out.down();
  for (int y = 0; y < 8; ++y) {
    for (int x = 0; x < 8; ++x)
      CHECK(out[y * 8 + x] == clamped(host, 4, 4, x / 2.0f + 0.25f, y / 2.0f + 0.25f));
  }
  CUDA(cudaDestroyTextureObject(texture));
  CUDA(cudaFree(pitched));

  float volume[8] = {0, 10, 100, 110, 1000, 1010, 1100, 1110};
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  CUDA(cudaMalloc3DArray(&array, &format, make_cudaExtent(2, 2, 2)));
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(volume, 2 * sizeof(float), 2, 2);
  copy.dstArray = array;
  copy.extent = make_cudaExtent(2, 2, 2);
  copy.kind = cudaMemcpyHostToDevice;
  CUDA(cudaMemcpy3D(&copy));
  resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  CUDA(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  fetch_3d<<<1, 5>>>(texture, out.device);
  out.down();
  for (int i = 0; i < 5; ++i) CHECK(out[i] == 505 + 100 * i / 4.0f);
  CUDA(cudaDestroyTextureObject(texture));
  CUDA(cudaFreeArray(array));

  const uchar4 pixel = make_uchar4(255, 0, 51, 102);
  format = cudaCreateChannelDesc<uchar4>();
  CUDA(cudaMallocArray(&array, &format, 1, 1));
  CUDA(cudaMemcpy2DToArray(array, 0, 0, &pixel, 4, 4, 1, cudaMemcpyHostToDevice));
  resource.res.array.array = array;
  description.readMode = cudaReadModeNormalizedFloat;
  CUDA(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  Array<float4> color(1);
  fetch_bytes<<<1, 1>>>(texture, color.device);
  color.down();
  CHECK(color[0].x == 1 && color[0].y == 0 && std::fabs(color[0].z - 0.2f) < 1e-6f &&
        std::fabs(color[0].w - 0.4f) < 1e-6f);
  CUDA(cudaDestroyTextureObject(texture));
  CUDA(cudaFreeArray(array));
  return ok();
}
