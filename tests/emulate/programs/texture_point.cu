// SPDX-License-Identifier: Apache-2.0
// Point fetches of an array, in each address mode, and from linear memory.
#include "check.cuh"

__global__ void fetch(cudaTextureObject_t texture, float* out) {
  const int i = threadIdx.x;
  out[i] = tex1D<float>(texture, i - 4 + 0.5f);
}
__global__ void fetch_normalized(cudaTextureObject_t texture, float* out) {
  const int i = threadIdx.x;
  out[i] = tex1D<float>(texture, (i - 8 + 0.5f) / 8);
}
__global__ void fetch_linear(cudaTextureObject_t texture, int* out) {
  const int4 v = tex1Dfetch<int4>(texture, threadIdx.x);
  out[threadIdx.x] = v.x + 10 * v.y + 100 * v.z + 1000 * v.w;
}

int main() {
  float host[8];
  for (int i = 0; i < 8; ++i) host[i] = i + 1;
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  CUDA(cudaMallocArray(&array, &format, 8));
  CUDA(cudaMemcpy2DToArray(array, 0, 0, host, sizeof host, sizeof host, 1, cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  Array<float> out(24);
  for (int mode = 0; mode < 4; ++mode) {
    cudaTextureDesc description = {};
    description.addressMode[0] = static_cast<cudaTextureAddressMode>(mode);
    description.filterMode = cudaFilterModePoint;
    description.readMode = cudaReadModeElementType;
    description.borderColor[0] = 0;
    description.normalizedCoords = mode == cudaAddressModeWrap || mode == cudaAddressModeMirror;
    cudaTextureObject_t texture = 0;
    CUDA(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
    if (description.normalizedCoords) {
      fetch_normalized<<<1, 24>>>(texture, out.device);
    } else {
      fetch<<<1, 16>>>(texture, out.device);
    }
    out.down();
    for (int i = 0; i < (description.normalizedCoords ? 24 : 16); ++i) {
      const int wrap[] = {1, 2, 3, 4, 5, 6, 7, 8};
      float expected = 0;
      if (mode == cudaAddressModeWrap) expected = wrap[i % 8];
      if (mode == cudaAddressModeMirror) expected = i / 8 == 1 ? i % 8 + 1 : 8 - i % 8;
      if (mode == cudaAddressModeClamp) expected = i < 4 ? 1 : i < 12 ? i - 3 : 8;
      if (mode == cudaAddressModeBorder) expected = i >= 4 && i < 12 ? i - 3 : 0;
      CHECK(out[i] == expected);
    }
    CUDA(cudaDestroyTextureObject(texture));
  }
  CUDA(cudaFreeArray(array));
  Array<int4> data(16);
  Array<int> sums(16);
  for (int i = 0; i < 16; ++i) data[i] = make_int4(i, 1, 2, 3);
  data.up();
  cudaResourceDesc linear = {};
  linear.resType = cudaResourceTypeLinear;
  linear.res.linear.devPtr = data.device;
  linear.res.linear.desc = cudaCreateChannelDesc<int4>();
  linear.res.linear.sizeInBytes = 16 * sizeof(int4);
  cudaTextureDesc plain = {};
  plain.readMode = cudaReadModeElementType;
  cudaTextureObject_t texture = 0;
  CUDA(cudaCreateTextureObject(&texture, &linear, &plain, nullptr));
  fetch_linear<<<1, 16>>>(texture, sums.device);
  sums.down();
  for (int i = 0; i < 16; ++i) CHECK(sums[i] == i + 10 + 200 + 3000);
  CUDA(cudaDestroyTextureObject(texture));
  return ok();
}
