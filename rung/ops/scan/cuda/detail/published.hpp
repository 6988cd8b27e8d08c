// SPDX-License-Identifier: Apache-2.0
// States as tiles publish them for look-back: value and ready tag in a single store, 8 bytes for
// states of up to 4 bytes, else pieces of 16 bytes with a tag each. No fence is needed, and states
// may have any size.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/device/ptx/memory.hpp"

namespace rung::inline RUNG_TARGET::scan_cuda {

/// A published state.
template <class S>
struct Published {
  static_assert(std::is_trivially_copyable_v<S>, "states travel as bits");
  static constexpr bool small = sizeof(S) <= 4;
  using Half = std::conditional_t<small, std::uint32_t, std::uint64_t>;
  struct alignas(2 * sizeof(Half)) Piece {
    Half value;
    Half tag;  // 0 until published
  };
  static constexpr int pieces = static_cast<int>((sizeof(S) + sizeof(Half) - 1) / sizeof(Half));
  struct Bits {
    Half at[pieces];
  };
  Piece piece[pieces];

  __device__ __forceinline__ void publish(const S& state) {
    Bits bits{};
    __builtin_memcpy(&bits, &state, sizeof(S));
#pragma unroll
    for (int i = 0; i < pieces; ++i) ptx::store_relaxed(piece + i, Piece{bits.at[i], 1});
  }
  /// Returns whether the whole value has arrived, and sets `state`, which is meaningless before.
  /// Branch-free, so that several polls may be in flight.
  [[nodiscard]] __device__ __forceinline__ bool look(S& state) const {
    Bits bits;
    bool there = true;
#pragma unroll
    for (int i = 0; i < pieces; ++i) {
      const Piece seen = ptx::load_relaxed(piece + i);
      bits.at[i] = seen.value;
      there = there && seen.tag != 0;
    }
    __builtin_memcpy(&state, &bits, sizeof(S));
    return there;
  }
};

}  // namespace rung::inline RUNG_TARGET::scan_cuda
