// SPDX-License-Identifier: Apache-2.0
// CUDA's vector types for the simulated GPU, with the same members, size and alignment as CUDA's,
// so that data layouts match. Aliases of three templates instead of forty structs.
#pragma once

#include <cstddef>

#include "rung/core/bounds.hpp"

namespace rung::simt::dialect {

template <class T>
struct alignas(2 * sizeof(T)) Vector2 {
  T x, y;
};
template <class T>
struct Vector3 {
  T x, y, z;
};
template <class T>
struct alignas(smaller<std::size_t>(16, 4 * sizeof(T))) Vector4 {
  T x, y, z, w;
};

using char2 = Vector2<signed char>;
using char4 = Vector4<signed char>;
using uchar2 = Vector2<unsigned char>;
using uchar4 = Vector4<unsigned char>;
using short2 = Vector2<short>;
using short4 = Vector4<short>;
using ushort2 = Vector2<unsigned short>;
using ushort4 = Vector4<unsigned short>;
using int2 = Vector2<int>;
using int3 = Vector3<int>;
using int4 = Vector4<int>;
using uint2 = Vector2<unsigned>;
using uint3 = Vector3<unsigned>;
using uint4 = Vector4<unsigned>;
using longlong2 = Vector2<long long>;
using ulonglong2 = Vector2<unsigned long long>;
using float2 = Vector2<float>;
using float3 = Vector3<float>;
using float4 = Vector4<float>;
using double2 = Vector2<double>;
using double4 = Vector4<double>;

/// Three-dimensional extents; missing ones are 1, as in CUDA.
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3() = default;
  constexpr dim3(unsigned width, unsigned height = 1, unsigned depth = 1)  // NOLINT: as CUDA's
      : x(width), y(height), z(depth) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}     // NOLINT: as CUDA's
  constexpr operator uint3() const { return {x, y, z}; }  // NOLINT: as CUDA's
};

constexpr char4 make_char4(signed char x, signed char y, signed char z, signed char w) {
  return {x, y, z, w};
}
constexpr uchar4 make_uchar4(unsigned char x, unsigned char y, unsigned char z, unsigned char w) {
  return {x, y, z, w};
}
constexpr short2 make_short2(short x, short y) { return {x, y}; }
constexpr ushort2 make_ushort2(unsigned short x, unsigned short y) { return {x, y}; }
constexpr int2 make_int2(int x, int y) { return {x, y}; }
constexpr int3 make_int3(int x, int y, int z) { return {x, y, z}; }
constexpr int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
constexpr uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
constexpr uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
constexpr uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
constexpr longlong2 make_longlong2(long long x, long long y) { return {x, y}; }
constexpr ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }
constexpr float2 make_float2(float x, float y) { return {x, y}; }
constexpr float3 make_float3(float x, float y, float z) { return {x, y, z}; }
constexpr float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
constexpr double2 make_double2(double x, double y) { return {x, y}; }

}  // namespace rung::simt::dialect
