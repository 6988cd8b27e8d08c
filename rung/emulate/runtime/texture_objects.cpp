// SPDX-License-Identifier: Apache-2.0
// Creates texture and surface objects.
#include "rung/emulate/runtime/texture.hpp"

namespace rung::cuda {
namespace {

void set_array(Texture& t, const cudaArray& array) {
  t.format = array.format;
  t.data = array.data.get();
  t.width = static_cast<long long>(array.extent.width);
  t.height = static_cast<long long>(array.rows());
  t.depth = static_cast<long long>(array.slices());
  t.row = array.row_bytes();
  t.slice = t.row * array.rows();
  // The layers of a one-dimensional array are consecutive rows.
  if (array.extent.height == 0 && array.extent.depth != 0) {
    t.slice = t.row;
    t.height = t.depth;
  }
}

}  // namespace
}  // namespace rung::cuda

using namespace rung::cuda;  // NOLINT: implementation of the CUDA API

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* texture, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* description, const void*) {
  if (texture == nullptr || resource == nullptr || description == nullptr) {
    return remember(cudaErrorInvalidValue);
  }
  Texture t{*resource, *description, {}, nullptr, 1, 1, 1, 0, 0, {}};
  if (resource->resType == cudaResourceTypeArray && resource->res.array.array != nullptr) {
    set_array(t, *resource->res.array.array);
  } else if (resource->resType == cudaResourceTypeMipmappedArray &&
             resource->res.mipmap.mipmap != nullptr) {
    for (const auto& level : resource->res.mipmap.mipmap->levels) {
      Texture one = t;
      set_array(one, *level);
      if (level == resource->res.mipmap.mipmap->levels.front()) {
        t = one;
      } else {
        t.smaller.push_back(one);
      }
    }
  } else if (resource->resType == cudaResourceTypeLinear) {
    const auto& linear = resource->res.linear;
    t.format = linear.desc;
    t.data = static_cast<const char*>(linear.devPtr);
    const std::size_t element = element_bytes(linear.desc);
    t.width = element == 0 ? 0 : static_cast<long long>(linear.sizeInBytes / element);
  } else if (resource->resType == cudaResourceTypePitch2D) {
    const auto& pitched = resource->res.pitch2D;
    t.format = pitched.desc;
    t.data = static_cast<const char*>(pitched.devPtr);
    t.width = static_cast<long long>(pitched.width);
    t.height = static_cast<long long>(pitched.height);
    t.row = pitched.pitchInBytes;
  } else {
    return remember(cudaErrorInvalidValue);
  }
  if (t.data == nullptr) return remember(cudaErrorInvalidValue);
  const bool whole =
      t.format.f != cudaChannelFormatKindFloat && description->readMode == cudaReadModeElementType;
  if (whole && description->filterMode == cudaFilterModeLinear) {
    return remember(cudaErrorInvalidFilterSetting);
  }
  *texture = reinterpret_cast<cudaTextureObject_t>(new Texture(t));
  return remember(cudaSuccess);
}
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture) {
  delete reinterpret_cast<Texture*>(texture);
  return remember(cudaSuccess);
}
cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* to, cudaTextureObject_t texture) {
  *to = reinterpret_cast<const Texture*>(texture)->resource;
  return remember(cudaSuccess);
}
cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* to, cudaTextureObject_t texture) {
  *to = reinterpret_cast<const Texture*>(texture)->description;
  return remember(cudaSuccess);
}
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* surface,
                                    const cudaResourceDesc* resource) {
  if (surface == nullptr || resource == nullptr || resource->resType != cudaResourceTypeArray ||
      resource->res.array.array == nullptr) {
    return remember(cudaErrorInvalidValue);
  }
  *surface = reinterpret_cast<cudaSurfaceObject_t>(new Surface{resource->res.array.array});
  return remember(cudaSuccess);
}
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surface) {
  delete reinterpret_cast<Surface*>(surface);
  return remember(cudaSuccess);
}
