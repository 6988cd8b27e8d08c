// SPDX-License-Identifier: Apache-2.0
// Sampling textures, and the elements of surfaces.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "rung/emulate/runtime/array.hpp"
#include "rung/emulate/runtime/memory.hpp"
#include "rung/simt/sync.hpp"

#pragma GCC visibility push(default)
#include "rung_cuda/texture.h"
#pragma GCC visibility pop

namespace rung::cuda {
namespace {

struct Texture {
  cudaResourceDesc resource;
  cudaTextureDesc description;
  cudaChannelFormatDesc format;
  const char* data;
  long long width, height, depth;  // 1 along axes that it lacks
  std::size_t row, slice;
};
struct Surface {
  cudaArray* array;
};

/// One channel of `bits` bits.
double read_channel(const char* from, int bits, cudaChannelFormatKind kind, bool normalized) {
  double value = 0, scale = 1;
  const auto load = [&](auto zero) {
    std::memcpy(&zero, from, sizeof zero);
    value = static_cast<double>(zero);
  };
  if (kind == cudaChannelFormatKindFloat) {
    if (bits == 32) load(float{});
    if (bits == 16) {
      std::uint16_t half = 0;
      std::memcpy(&half, from, 2);
      const int exponent = half >> 10 & 31, mantissa = half & 1023;
      value = exponent == 0    ? std::ldexp(mantissa, -24)
              : exponent == 31 ? (mantissa != 0 ? NAN : INFINITY)
                               : std::ldexp(1024 + mantissa, exponent - 25);
      if ((half & 0x8000) != 0) value = -value;
    }
    return value;
  }
  const bool is_signed = kind == cudaChannelFormatKindSigned;
  if (bits == 8) is_signed ? load(std::int8_t{}) : load(std::uint8_t{});
  if (bits == 16) is_signed ? load(std::int16_t{}) : load(std::uint16_t{});
  if (bits == 32) is_signed ? load(std::int32_t{}) : load(std::uint32_t{});
  if (!normalized) return value;
  scale = std::ldexp(1.0, is_signed ? bits - 1 : bits) - 1;
  return std::max(value / scale, -1.0);
}

Texel read_element(const Texture& t, long long x, long long y, long long z) {
  const bool normalized = t.description.readMode == cudaReadModeNormalizedFloat;
  const std::size_t bytes = element_bytes(t.format);
  const char* from = t.data + static_cast<std::size_t>(x) * bytes +
                     static_cast<std::size_t>(y) * t.row + static_cast<std::size_t>(z) * t.slice;
  const int bits[] = {t.format.x, t.format.y, t.format.z, t.format.w};
  Texel texel{};
  for (int i = 0; i < 4 && bits[i] != 0; ++i) {
    texel.channel[i] = read_channel(from, bits[i], t.format.f, normalized);
    from += bits[i] / 8;
  }
  return texel;
}

/// The index that an address mode makes of one; false: the border's colour.
bool settle(long long& index, long long size, cudaTextureAddressMode mode) {
  if (index >= 0 && index < size) return true;
  switch (mode) {
    case cudaAddressModeWrap:
      index = (index % size + size) % size;
      return true;
    case cudaAddressModeMirror: {
      const long long period = (index % (2 * size) + 2 * size) % (2 * size);
      index = period < size ? period : 2 * size - 1 - period;
      return true;
    }
    case cudaAddressModeBorder:
      return false;
    case cudaAddressModeClamp:
      break;
  }
  index = std::clamp(index, 0LL, size - 1);
  return true;
}

Texel fetch(const Texture& t, int dimensions, long long x, long long y, long long z) {
  // Wrapping needs normalised coordinates; without them the chip clamps.
  const auto mode = [&](int axis) {
    const cudaTextureAddressMode given = t.description.addressMode[axis];
    const bool periodic = given == cudaAddressModeWrap || given == cudaAddressModeMirror;
    return periodic && t.description.normalizedCoords == 0 ? cudaAddressModeClamp : given;
  };
  const bool inside = settle(x, t.width, mode(0)) &&
                      (dimensions < 2 || settle(y, t.height, mode(1))) &&
                      (dimensions < 3 || settle(z, t.depth, mode(2)));
  if (inside) return read_element(t, x, y, z);
  Texel border{};
  for (int i = 0; i < 4; ++i) border.channel[i] = t.description.borderColor[i];
  return border;
}

/// The lower neighbour of a coordinate and the weight of the upper, in the chip's 1/256 steps.
struct Neighbours {
  long long low;
  double weight;
};
Neighbours neighbours(double coordinate) {
  const double shifted = coordinate - 0.5;
  const double low = std::floor(shifted);
  return {static_cast<long long>(low), std::round((shifted - low) * 256) / 256};
}

}  // namespace

Texel sample(cudaTextureObject_t object, int dimensions, float x, float y, float z, int layer,
             bool whole_coordinates) {
  const auto& t = *reinterpret_cast<const Texture*>(object);
  if (t.data == nullptr) simt::fail("a texture object without memory");
  if (whole_coordinates) {
    if (layer < 0 || layer >= t.width) return {};
    return read_element(t, layer, 0, 0);
  }
  double at[3] = {x, y, z};
  const long long size[3] = {t.width, t.height, t.depth};
  if (t.description.normalizedCoords != 0) {
    for (int i = 0; i < dimensions; ++i) at[i] *= static_cast<double>(size[i]);
  }
  const long long base[3] = {0, dimensions < 2 ? layer : 0, dimensions < 3 ? layer : 0};
  if (t.description.filterMode == cudaFilterModePoint) {
    long long index[3] = {base[0], base[1], base[2]};
    for (int i = 0; i < dimensions; ++i) index[i] = static_cast<long long>(std::floor(at[i]));
    return fetch(t, dimensions, index[0], index[1], index[2]);
  }
  Neighbours near[3] = {{base[0], 0}, {base[1], 0}, {base[2], 0}};
  for (int i = 0; i < dimensions; ++i) near[i] = neighbours(at[i]);
  Texel sum{};
  for (int corner = 0; corner < 1 << dimensions; ++corner) {
    double weight = 1;
    long long index[3] = {base[0], base[1], base[2]};
    for (int i = 0; i < dimensions; ++i) {
      const bool upper = (corner >> i & 1) != 0;
      weight *= upper ? near[i].weight : 1 - near[i].weight;
      index[i] = near[i].low + (upper ? 1 : 0);
    }
    if (weight == 0) continue;
    const Texel texel = fetch(t, dimensions, index[0], index[1], index[2]);
    for (int i = 0; i < 4; ++i) sum.channel[i] += weight * texel.channel[i];
  }
  return sum;
}

void* surface_element(cudaSurfaceObject_t object, int x, int y, int z, std::size_t bytes,
                      cudaSurfaceBoundaryMode mode) {
  cudaArray& array = *reinterpret_cast<const Surface*>(object)->array;
  const auto width = static_cast<long long>(array.row_bytes());
  const auto height = static_cast<long long>(array.rows());
  const auto depth = static_cast<long long>(array.slices());
  const auto size = static_cast<long long>(bytes);
  const bool inside = x >= 0 && x + size <= width && y >= 0 && y < height && z >= 0 && z < depth;
  if (!inside) {
    if (mode == cudaBoundaryModeZero) return nullptr;
    if (mode == cudaBoundaryModeTrap) simt::fail("invalid address: outside of the surface");
    x = static_cast<int>(std::clamp<long long>(x, 0, width - size));
    y = static_cast<int>(std::clamp<long long>(y, 0, height - 1));
    z = static_cast<int>(std::clamp<long long>(z, 0, depth - 1));
  }
  return array.data.get() + x + (z * height + y) * width;
}

}  // namespace rung::cuda

using namespace rung::cuda;  // NOLINT: its implementation

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* texture, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* description, const void*) {
  if (texture == nullptr || resource == nullptr || description == nullptr) {
    return remember(cudaErrorInvalidValue);
  }
  Texture t{*resource, *description, {}, nullptr, 1, 1, 1, 0, 0};
  if (resource->resType == cudaResourceTypeArray && resource->res.array.array != nullptr) {
    const cudaArray& array = *resource->res.array.array;
    t.format = array.format;
    t.data = array.data.get();
    t.width = static_cast<long long>(array.extent.width);
    t.height = static_cast<long long>(array.rows());
    t.depth = static_cast<long long>(array.slices());
    t.row = array.row_bytes();
    t.slice = t.row * array.rows();
    // Layers of a one-dimensional array follow each other as rows.
    if (array.extent.height == 0 && array.extent.depth != 0) t.slice = t.row;
    if (array.extent.height == 0 && array.extent.depth != 0) t.height = t.depth;
  } else if (resource->resType == cudaResourceTypeLinear) {
    const auto& linear = resource->res.linear;
    t.format = linear.desc;
    t.data = static_cast<const char*>(linear.devPtr);
    t.width = static_cast<long long>(linear.sizeInBytes / element_bytes(linear.desc));
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
