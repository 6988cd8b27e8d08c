// SPDX-License-Identifier: Apache-2.0
// A load under a predicate. For `exists ? load(p) : zero` the compiler may emit a branch per load,
// and a wait for each load where the branches join; loads of load_raw_if() stay in flight together.
// They are volatile, so that they do not move into a later branch that uses the elements, either.
#pragma once

#include <type_traits>

#include "rung/device/load.hpp"

namespace rung::inline RUNG_TARGET {

/// Returns N elements from p on, or zeros without an access if they do not exist. No kernel may
/// write the elements while this one runs.
template <int N, class T>
__device__ __forceinline__ RawPack<std::remove_const_t<T>, N> load_raw_if(T* p, bool exists) {
  using Raw = RawPack<std::remove_const_t<T>, N>;
#if defined(__CUDA_ARCH__)
  static_assert(sizeof(Raw) == sizeof(typename Raw::Chunk), "one load");
  Raw raw;
  const auto from = __cvta_generic_to_global(p);
  const int predicate = exists ? 1 : 0;
  if constexpr (sizeof(Raw) == 16) {
    asm volatile(
        "{\n .reg .pred p;\n setp.ne.s32 p, %5, 0;\n mov.b32 %0, 0;\n mov.b32 %1, 0;\n"
        " mov.b32 %2, 0;\n mov.b32 %3, 0;\n @p ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4];\n}"
        : "=&r"(raw.chunk[0].x), "=&r"(raw.chunk[0].y), "=&r"(raw.chunk[0].z), "=&r"(raw.chunk[0].w)
        : "l"(from), "r"(predicate));
  } else if constexpr (sizeof(Raw) == 8) {
    asm volatile(
        "{\n .reg .pred p;\n setp.ne.s32 p, %3, 0;\n mov.b32 %0, 0;\n mov.b32 %1, 0;\n"
        " @p ld.global.nc.v2.b32 {%0, %1}, [%2];\n}"
        : "=&r"(raw.chunk[0].x), "=&r"(raw.chunk[0].y)
        : "l"(from), "r"(predicate));
  } else if constexpr (sizeof(Raw) == 4) {
    asm volatile(
        "{\n .reg .pred p;\n setp.ne.s32 p, %2, 0;\n mov.b32 %0, 0;\n @p ld.global.nc.b32 %0, "
        "[%1];\n}"
        : "=&r"(raw.chunk[0])
        : "l"(from), "r"(predicate));
  } else {
    asm volatile(
        "{\n .reg .pred p;\n setp.ne.s32 p, %2, 0;\n mov.b16 %0, 0;\n @p ld.global.nc.b16 %0, "
        "[%1];\n}"
        : "=&h"(raw.chunk[0])
        : "l"(from), "r"(predicate));
  }
  return raw;
#else
  Raw raw{};
  if (exists) raw = load_raw_constant<N>(p);
  return raw;
#endif
}

}  // namespace rung::inline RUNG_TARGET
