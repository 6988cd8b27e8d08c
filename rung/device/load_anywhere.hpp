// SPDX-License-Identifier: Apache-2.0
// Loads packs from any address: loads the aligned 16-byte chunks that contain a pack and shifts its
// elements into place.
#pragma once

#include "rung/device/load.hpp"

namespace rung::inline RUNG_TARGET {

/// Loads N elements from `from` on, an address `behind` bytes after a multiple of 16: loads all
/// aligned 16-byte chunks that contain one of them, which must be inside the array, and shifts. No
/// kernel may write the array while this one runs. Takes up to N / (elements per 16 bytes) + 1
/// loads.
template <int N, class T>
__device__ __forceinline__ RawPack<T, N> load_chunks(const T* from, int behind) {
  static_assert(sizeof(T) * N % 16 == 0);
  constexpr int chunk = vector_width<T>;  // elements
  from -= behind / static_cast<int>(sizeof(T));
  RawPack<T, N> found = load_raw_constant<N>(from);
  if (behind == 0) return found;
  const RawPack<T, chunk> last = load_raw_constant<chunk>(from + N);
  constexpr int count = static_cast<int>(sizeof(found)) / 4;
  unsigned words[count + 4];
  __builtin_memcpy(words, &found, sizeof(found));
  __builtin_memcpy(words + count, &last, sizeof(last));
  if ((behind & 8) != 0) {
#pragma unroll
    for (int i = 0; i < count + 2; ++i) words[i] = words[i + 2];
  }
  if ((behind & 4) != 0) {
#pragma unroll
    for (int i = 0; i < count + 1; ++i) words[i] = words[i + 1];
  }
  if ((behind & 2) != 0) {
#pragma unroll
    for (int i = 0; i < count + 1; ++i) words[i] = words[i] >> 16 | words[i + 1] << 16;
  }
  if constexpr (sizeof(T) == 1) {
    if ((behind & 1) != 0) {
#pragma unroll
      for (int i = 0; i < count; ++i) words[i] = words[i] >> 8 | words[i + 1] << 24;
    }
  }
  __builtin_memcpy(&found, words, sizeof(found));
  return found;
}

/// Loads elements [at, at + N) of an array of `length` elements, at any address; elements outside
/// the array are zero. Takes the loads of load_chunks(), or N single loads if the chunks extend
/// beyond the array. Threads with adjacent packs take the same branches, except at the ends of the
/// array.
template <int N, class T>
__device__ __forceinline__ RawPack<T, N> load_anywhere(const T* array, std::int64_t at,
                                                       std::int64_t length) {
  static_assert(sizeof(T) * N % 16 == 0);
  constexpr int chunk = vector_width<T>;  // elements
  const int behind = static_cast<int>(reinterpret_cast<std::uintptr_t>(array + at) % 16);  // bytes
  const std::int64_t first = at - behind / static_cast<int>(sizeof(T));
  const int more = behind == 0 ? 0 : chunk;
  if (first < 0 || first + N + more > length) {
    Pack<T, N> values;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      values[i] = at + i >= 0 && at + i < length ? array[at + i] : zero<T>();
    }
    return raw(values);
  }
  return load_chunks<N>(array + at, behind);
}

}  // namespace rung::inline RUNG_TARGET
