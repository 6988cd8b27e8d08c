// SPDX-License-Identifier: Apache-2.0
// Samples textures and accesses the elements of surfaces.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "rung/emulate/runtime/texture.hpp"
#include "rung/simt/record/request.hpp"
#include "rung/simt/sync.hpp"

#pragma GCC visibility push(default)
#include "rung_cuda/texture.h"
#pragma GCC visibility pop

namespace rung::cuda {
namespace {

/// Reads one channel of `bits` bits; normalized to its range if requested.
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

/// Applies the address mode to an index. Returns false if the border color must be used.
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
  // Wrap and mirror modes require normalized coordinates; otherwise a GPU clamps.
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

/// Lower neighbor of a coordinate, and the weight of the upper neighbor in the hardware's steps of
/// 1/256.
struct Neighbors {
  long long low;
  double weight;
};
Neighbors neighbors(double coordinate) {
  const double shifted = coordinate - 0.5;
  const double low = std::floor(shifted);
  return {static_cast<long long>(low), std::round((shifted - low) * 256) / 256};
}

const Texture& texture_of(cudaTextureObject_t object) {
  if (object == 0) simt::fail("no texture object");
  return *reinterpret_cast<const Texture*>(object);
}

Texel sample_one(const Texture& t, int dimensions, const float (&coordinates)[3], int layer) {
  double at[3] = {coordinates[0], coordinates[1], coordinates[2]};
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
  Neighbors near[3] = {{base[0], 0}, {base[1], 0}, {base[2], 0}};
  for (int i = 0; i < dimensions; ++i) near[i] = neighbors(at[i]);
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

/// Records a fetch, at its source line, as one request per warp.
void note_fetch(const void* code) {
  simt::record::trace(0, reinterpret_cast<std::uintptr_t>(code), 0, simt::record::Access::texture);
}

}  // namespace

Texel sample(cudaTextureObject_t object, int dimensions, float x, float y, float z, int layer,
             bool whole_coordinates) {
  note_fetch(__builtin_return_address(0));
  const Texture& t = texture_of(object);
  if (!whole_coordinates) return sample_one(t, dimensions, {x, y, z}, layer);
  if (layer < 0 || layer >= t.width) return {};
  return read_element(t, layer, 0, 0);
}

Texel sample_level(cudaTextureObject_t object, int dimensions, float x, float y, float z,
                   float lod) {
  note_fetch(__builtin_return_address(0));
  const Texture& t = texture_of(object);
  const auto level = [&](std::size_t i) {
    return sample_one(i == 0 ? t : t.smaller[i - 1], dimensions, {x, y, z}, 0);
  };
  const cudaTextureDesc& d = t.description;
  const double given = static_cast<double>(lod) + d.mipmapLevelBias;
  const double last = static_cast<double>(t.smaller.size());
  const double clamped = std::clamp<double>(given, d.minMipmapLevelClamp,
                                            std::max(d.minMipmapLevelClamp, d.maxMipmapLevelClamp));
  const double wanted = std::clamp(t.smaller.empty() ? 0 : clamped, 0.0, last);
  if (d.mipmapFilterMode == cudaFilterModePoint) {
    return level(static_cast<std::size_t>(std::floor(wanted + 0.5)));
  }
  const double low = std::floor(wanted), weight = wanted - low;
  Texel sum = level(static_cast<std::size_t>(low));
  if (weight == 0) return sum;
  const Texel next = level(static_cast<std::size_t>(low) + 1);
  for (int i = 0; i < 4; ++i) {
    sum.channel[i] = (1 - weight) * sum.channel[i] + weight * next.channel[i];
  }
  return sum;
}

Texel sample_cube(cudaTextureObject_t object, float x, float y, float z, int layer) {
  note_fetch(__builtin_return_address(0));
  const Texture& t = texture_of(object);
  const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  int face = 0;
  float major = ax, s = 0, u = 0;
  if (ax >= ay && ax >= az) {
    face = x >= 0 ? 0 : 1;
    s = x >= 0 ? -z : z;
    u = -y;
  } else if (ay >= az) {
    face = y >= 0 ? 2 : 3;
    major = ay;
    s = x;
    u = y >= 0 ? z : -z;
  } else {
    face = z >= 0 ? 4 : 5;
    major = az;
    s = z >= 0 ? x : -x;
    u = -y;
  }
  // Coordinates of cube maps are directions and therefore always normalized.
  Texture as_layers = t;
  as_layers.description.normalizedCoords = 1;
  const float coordinates[3] = {(s / major + 1) / 2, (u / major + 1) / 2, 0};
  return sample_one(as_layers, 2, coordinates, 6 * layer + face);
}

Texel gather(cudaTextureObject_t object, float x, float y, int channel) {
  note_fetch(__builtin_return_address(0));
  const Texture& t = texture_of(object);
  const bool normalized = t.description.normalizedCoords != 0;
  const Neighbors i = neighbors(normalized ? x * static_cast<double>(t.width) : x);
  const Neighbors j = neighbors(normalized ? y * static_cast<double>(t.height) : y);
  const auto one = [&](int dx, int dy) {
    return fetch(t, 2, i.low + dx, j.low + dy, 0).channel[channel & 3];
  };
  return {{one(0, 1), one(1, 1), one(1, 0), one(0, 0)}};
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
