// SPDX-License-Identifier: Apache-2.0
// Layered and three-dimensional textures, normalized values, pitched memory.
#include "check.cuh"

__global__ void sample(cudaTextureObject_t layered, cudaTextureObject_t volume,
                       cudaTextureObject_t pitched, float* out) {
  const int t = threadIdx.x;
  out[t] = tex2DLayered<float>(layered, t % 4 + 0.5f, t / 4 % 2 + 0.5f, t / 8);
  out[16 + t] = tex3D<float>(volume, t % 2 + 0.5f, t / 2 % 2 + 0.5f, t / 4 % 2 + 0.5f);
  out[32 + t] = tex2D<float>(pitched, (t % 4 + 0.5f) / 4, (t / 4 + 0.5f) / 4);
}

static cudaTextureObject_t texture_of(const cudaResourceDesc& resource, bool normalized) {
  cudaTextureDesc description = {};
  description.filterMode = cudaFilterModePoint;
  description.readMode = normalized ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
  description.normalizedCoords = normalized;
  description.addressMode[0] = description.addressMode[1] = description.addressMode[2] =
      cudaAddressModeClamp;
  cudaTextureObject_t texture;
  CUDA(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  return texture;
}
static cudaArray_t array_of(float* numbers, cudaExtent extent, unsigned flags) {
  cudaArray_t array;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  CUDA(cudaMalloc3DArray(&array, &format, extent, flags));
  cudaMemcpy3DParms p = {};
  p.srcPtr =
      make_cudaPitchedPtr(numbers, extent.width * sizeof(float), extent.width, extent.height);
  p.dstArray = array;
  p.extent = extent;
  p.kind = cudaMemcpyHostToDevice;
  CUDA(cudaMemcpy3D(&p));
  return array;
}

int main() {
  float numbers[16];
  for (int i = 0; i < 16; ++i) numbers[i] = 3.0f * i;
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  cudaArray_t layers = array_of(numbers, make_cudaExtent(4, 2, 2), cudaArrayLayered);
  cudaArray_t box = array_of(numbers, make_cudaExtent(2, 2, 2), 0);
  resource.res.array.array = layers;
  const cudaTextureObject_t layered = texture_of(resource, false);
  resource.res.array.array = box;
  const cudaTextureObject_t volume = texture_of(resource, false);
  unsigned char* memory;
  size_t pitch;
  CUDA(cudaMallocPitch(&memory, &pitch, 4, 4));
  unsigned char bytes[16];
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<unsigned char>(17 * i);
  CUDA(cudaMemcpy2D(memory, pitch, bytes, 4, 4, 4, cudaMemcpyHostToDevice));
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D.devPtr = memory;
  resource.res.pitch2D.pitchInBytes = pitch;
  resource.res.pitch2D.width = resource.res.pitch2D.height = 4;
  resource.res.pitch2D.desc = cudaCreateChannelDesc<unsigned char>();
  const cudaTextureObject_t pitched = texture_of(resource, true);
  Array<float> out(48);
  sample<<<1, 16>>>(layered, volume, pitched, out.device);
  out.down();
  for (int t = 0; t < 16; ++t) {
    CHECK(out[t] == 3 * t && out[16 + t] == 3 * (t % 8) &&
          std::fabs(out[32 + t] - t / 15.0f) < 1e-6f);
  }
  for (cudaTextureObject_t one : {layered, volume, pitched}) CUDA(cudaDestroyTextureObject(one));
  CUDA(cudaFreeArray(layers));
  CUDA(cudaFreeArray(box));
  CUDA(cudaFree(memory));
  return ok();
}
