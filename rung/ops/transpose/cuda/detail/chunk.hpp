// SPDX-License-Identifier: Apache-2.0
// Loads of 16 bytes at any address by aligned accesses, and packing of columns of small elements.
#pragma once

#include <cstdint>

#include "rung/device/load.hpp"

namespace rung::transpose_cuda::inline RUNG_TARGET {

using Byte = unsigned char;
inline constexpr int chunk_bytes = 16;
using Chunk = Pack<unsigned, 4>;

/// Returns the offset of an address within its aligned chunk.
__device__ __forceinline__ int skew_of(const void* address) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(address) % chunk_bytes);
}
__device__ __forceinline__ Chunk load_aligned(const void* from) {
  return load_wide<4>(static_cast<const unsigned*>(from));
}
__device__ __forceinline__ void store_aligned(void* to, const Chunk& chunk) {
  store_wide<4>(static_cast<unsigned*>(to), chunk);
}

/// Returns 16 bytes from byte `skew` (0 to 15) of two consecutive chunks. Registers cannot be
/// indexed: the words are shifted by two, by one, and by bytes, as selected by the bits of the
/// skew.
__device__ __forceinline__ Chunk shifted(const Chunk& low, const Chunk& high, int skew) {
  unsigned words[8] = {low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]};
#pragma unroll
  for (int i = 0; i < 6; ++i) words[i] = (skew & 8) != 0 ? words[i + 2] : words[i];
#pragma unroll
  for (int i = 0; i < 5; ++i) words[i] = (skew & 4) != 0 ? words[i + 1] : words[i];
  Chunk result;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    result[i] = __funnelshift_r(words[i], words[i + 1], static_cast<unsigned>(skew & 3) * 8);
  }
  return result;
}

/// Loads a chunk at any address; the aligned chunks around it must exist.
__device__ __forceinline__ Chunk load_skewed(const Byte* from) {
  const int skew = skew_of(from);
  return shifted(load_aligned(from - skew), load_aligned(from - skew + chunk_bytes), skew);
}

/// Loads an edge element by element: only `valid` bytes exist, possibly none.
template <class T>
__device__ __forceinline__ Chunk load_part(const Byte* from, int valid) {
  constexpr int size = sizeof(T);
  Chunk result{};
#pragma unroll
  for (int at = 0; at < chunk_bytes; at += size) {
    if (at >= valid) break;
    const T element = *reinterpret_cast<const T*>(from + at);
    if constexpr (size == 8) {
      result[at / 4] = static_cast<unsigned>(element);
      result[at / 4 + 1] = static_cast<unsigned>(element >> 32);
    } else {
      result[at / 4] |= static_cast<unsigned>(element) << at % 4 * 8;
    }
  }
  return result;
}

/// Packs the columns of R rows of 16 bytes, R elements of T per register: units[c] holds column c,
/// row 0 in its lowest bytes. Uses byte permutes: two rounds for bytes, one for halves.
template <class T, int R, class Unit>
__device__ __forceinline__ void pack_columns(const Chunk (&rows)[R],
                                             Unit (&units)[chunk_bytes / sizeof(T)]) {
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    if constexpr (sizeof(T) == 1) {
      const unsigned low_01 = __byte_perm(rows[0][w], rows[1][w], 0x5140);   // a0 b0 a1 b1
      const unsigned low_23 = __byte_perm(rows[2][w], rows[3][w], 0x5140);   // c0 d0 c1 d1
      const unsigned high_01 = __byte_perm(rows[0][w], rows[1][w], 0x7362);  // a2 b2 a3 b3
      const unsigned high_23 = __byte_perm(rows[2][w], rows[3][w], 0x7362);
      units[4 * w] = __byte_perm(low_01, low_23, 0x5410);
      units[4 * w + 1] = __byte_perm(low_01, low_23, 0x7632);
      units[4 * w + 2] = __byte_perm(high_01, high_23, 0x5410);
      units[4 * w + 3] = __byte_perm(high_01, high_23, 0x7632);
    } else if constexpr (sizeof(T) == 2) {
      units[2 * w] = __byte_perm(rows[0][w], rows[1][w], 0x5410);
      units[2 * w + 1] = __byte_perm(rows[0][w], rows[1][w], 0x7632);
    } else if constexpr (sizeof(T) == 4) {
      units[w] = rows[0][w];
    } else if (w % 2 == 0) {
      units[w / 2] = rows[0][w] | static_cast<Unit>(rows[0][w + 1]) << 32;
    }
  }
}

}  // namespace rung::transpose_cuda::inline RUNG_TARGET
