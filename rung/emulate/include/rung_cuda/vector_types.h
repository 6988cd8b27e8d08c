// SPDX-License-Identifier: Apache-2.0
// CUDA's vector types as global structs, since programs forward-declare them and overload operators
// on them. Sizes and alignments are the same as in CUDA.
#pragma once

// Defines name1 .. name4 of `type`, with the alignments of name2 and name4.
#define RUNG_VECTORS(name, type, align2, align4)                                 \
  struct name##1 { type x; };                                                    \
  struct __attribute__((aligned(align2))) name##2 { type x, y; };                \
  struct name##3 { type x, y, z; };                                              \
  struct __attribute__((aligned(align4))) name##4 { type x, y, z, w; };          \
  constexpr name##1 make_##name##1(type x) { return {x}; }                       \
  constexpr name##2 make_##name##2(type x, type y) { return {x, y}; }            \
  constexpr name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
  constexpr name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

RUNG_VECTORS(char, signed char, 2, 4)
RUNG_VECTORS(uchar, unsigned char, 2, 4)
RUNG_VECTORS(short, short, 4, 8)
RUNG_VECTORS(ushort, unsigned short, 4, 8)
RUNG_VECTORS(int, int, 8, 16)
RUNG_VECTORS(uint, unsigned int, 8, 16)
RUNG_VECTORS(long, long, 16, 16)
RUNG_VECTORS(ulong, unsigned long, 16, 16)
RUNG_VECTORS(longlong, long long, 16, 16)
RUNG_VECTORS(ulonglong, unsigned long long, 16, 16)
RUNG_VECTORS(float, float, 8, 16)
RUNG_VECTORS(double, double, 16, 16)
#undef RUNG_VECTORS

/// Three-dimensional extents; omitted extents are 1.
struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int width = 1, unsigned int height = 1, unsigned int depth = 1)
      : x(width), y(height), z(depth) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
