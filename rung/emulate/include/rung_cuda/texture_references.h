// SPDX-License-Identifier: Apache-2.0
// Texture references, a still common interface that CUDA 12 removed: file-scope variables that are
// bound to memory before a launch. Each is implemented by a texture object.
#pragma once

#include "rung_cuda/texture.h"

#define cudaTextureType1D 0x01
#define cudaTextureType2D 0x02
#define cudaTextureType3D 0x03
#define cudaTextureTypeCubemap 0x0C
#define cudaTextureType1DLayered 0xF1
#define cudaTextureType2DLayered 0xF2

struct textureReference {
  int normalized = 0;
  enum cudaTextureFilterMode filterMode = cudaFilterModePoint;
  enum cudaTextureAddressMode addressMode[3] = {cudaAddressModeClamp, cudaAddressModeClamp,
                                                cudaAddressModeClamp};
  struct cudaChannelFormatDesc channelDesc = {};
  cudaTextureObject_t rung_object = 0;
};

template <class T, int kind = cudaTextureType1D, cudaTextureReadMode mode = cudaReadModeElementType>
struct texture : textureReference {
  texture() { channelDesc = cudaCreateChannelDesc<T>(); }
  explicit texture(int is_normalized, cudaTextureFilterMode filter = cudaFilterModePoint,
                   cudaTextureAddressMode address = cudaAddressModeClamp)
      : texture() {
    normalized = is_normalized;
    filterMode = filter;
    for (cudaTextureAddressMode& one : addressMode) one = address;
  }
  texture(int is_normalized, cudaTextureFilterMode filter, cudaTextureAddressMode address,
          cudaChannelFormatDesc format)
      : texture(is_normalized, filter, address) {
    channelDesc = format;
  }
};

namespace rung::cuda {

/// Result type of a fetch: the element type, or float if elements are normalized.
template <class T, cudaTextureReadMode mode>
struct Fetched {
  using Type = T;
};
template <int count>
struct Floats;
template <>
struct Floats<1> {
  using Type = float;
};
template <>
struct Floats<2> {
  using Type = float2;
};
template <>
struct Floats<4> {
  using Type = float4;
};
template <class T>
struct Fetched<T, cudaReadModeNormalizedFloat> {
  using Type = typename Floats<Channels<T>::count>::Type;
};

template <class T, int kind, cudaTextureReadMode mode>
cudaError_t bind(const texture<T, kind, mode>& given, const cudaResourceDesc& resource) {
  auto& reference = const_cast<texture<T, kind, mode>&>(given);
  cudaTextureDesc description = {};
  for (int i = 0; i < 3; ++i) description.addressMode[i] = reference.addressMode[i];
  description.filterMode = reference.filterMode;
  description.readMode = mode;
  description.normalizedCoords = reference.normalized;
  if (reference.rung_object != 0) cudaDestroyTextureObject(reference.rung_object);
  reference.rung_object = 0;
  return cudaCreateTextureObject(&reference.rung_object, &resource, &description, nullptr);
}

}  // namespace rung::cuda

template <class T, int kind, cudaTextureReadMode mode>
inline cudaError_t cudaBindTexture(size_t* offset, const texture<T, kind, mode>& reference,
                                   const void* memory, const cudaChannelFormatDesc& format,
                                   size_t bytes = ~size_t{0}) {
  if (offset != nullptr) *offset = 0;
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = const_cast<void*>(memory);
  resource.res.linear.desc = format;
  // Without a size, binds the maximum size of a linear texture.
  resource.res.linear.sizeInBytes = bytes == ~size_t{0} ? sizeof(T) << 27 : bytes;
  return rung::cuda::bind(reference, resource);
}
template <class T, int kind, cudaTextureReadMode mode>
inline cudaError_t cudaBindTexture(size_t* offset, const texture<T, kind, mode>& reference,
                                   const void* memory, size_t bytes = ~size_t{0}) {
  return cudaBindTexture(offset, reference, memory, reference.channelDesc, bytes);
}
template <class T, int kind, cudaTextureReadMode mode>
inline cudaError_t cudaBindTexture2D(size_t* offset, const texture<T, kind, mode>& reference,
                                     const void* memory, const cudaChannelFormatDesc& format,
                                     size_t width, size_t height, size_t pitch) {
  if (offset != nullptr) *offset = 0;
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D.devPtr = const_cast<void*>(memory);
  resource.res.pitch2D.desc = format;
  resource.res.pitch2D.width = width;
  resource.res.pitch2D.height = height;
  resource.res.pitch2D.pitchInBytes = pitch;
  return rung::cuda::bind(reference, resource);
}
template <class T, int kind, cudaTextureReadMode mode>
inline cudaError_t cudaBindTexture2D(size_t* offset, const texture<T, kind, mode>& reference,
                                     const void* memory, size_t width, size_t height,
                                     size_t pitch) {
  return cudaBindTexture2D(offset, reference, memory, reference.channelDesc, width, height, pitch);
}
template <class T, int kind, cudaTextureReadMode mode>
inline cudaError_t cudaBindTextureToArray(const texture<T, kind, mode>& reference,
                                          cudaArray_const_t array) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = const_cast<cudaArray_t>(array);
  return rung::cuda::bind(reference, resource);
}
template <class T, int kind, cudaTextureReadMode mode>
inline cudaError_t cudaBindTextureToArray(const texture<T, kind, mode>& reference,
                                          cudaArray_const_t array, const cudaChannelFormatDesc&) {
  return cudaBindTextureToArray(reference, array);
}
template <class T, int kind, cudaTextureReadMode mode>
inline cudaError_t cudaUnbindTexture(const texture<T, kind, mode>& given) {
  auto& reference = const_cast<texture<T, kind, mode>&>(given);
  if (reference.rung_object != 0) cudaDestroyTextureObject(reference.rung_object);
  reference.rung_object = 0;
  return cudaSuccess;
}
template <class T, int kind, cudaTextureReadMode mode>
inline cudaError_t cudaGetTextureAlignmentOffset(size_t* offset, const texture<T, kind, mode>&) {
  *offset = 0;
  return cudaSuccess;
}

#define RUNG_FETCH(name, parameters, ...)                                                 \
  template <class T, int kind, cudaTextureReadMode mode>                                  \
  inline typename rung::cuda::Fetched<T, mode>::Type name parameters {                    \
    return name<typename rung::cuda::Fetched<T, mode>::Type>(t.rung_object, __VA_ARGS__); \
  }
#define RUNG_REFERENCE const texture<T, kind, mode>& t
RUNG_FETCH(tex1Dfetch, (RUNG_REFERENCE, int x), x)
RUNG_FETCH(tex1D, (RUNG_REFERENCE, float x), x)
RUNG_FETCH(tex2D, (RUNG_REFERENCE, float x, float y), x, y)
RUNG_FETCH(tex3D, (RUNG_REFERENCE, float x, float y, float z), x, y, z)
RUNG_FETCH(tex1DLayered, (RUNG_REFERENCE, float x, int layer), x, layer)
RUNG_FETCH(tex2DLayered, (RUNG_REFERENCE, float x, float y, int layer), x, y, layer)
RUNG_FETCH(texCubemap, (RUNG_REFERENCE, float x, float y, float z), x, y, z)
#undef RUNG_REFERENCE
#undef RUNG_FETCH
