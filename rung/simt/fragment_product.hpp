// SPDX-License-Identifier: Apache-2.0
// Arithmetic of wmma: d = a b + c for matrices distributed over a warp. Element 32 i + lane in
// row-major order is the i-th element of `lane`. Terms are added in order of k, with a rounding
// after each.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/core/export.hpp"
#include "rung/simt/limits.hpp"

namespace rung::simt {

enum class FragmentType : std::uint8_t { f16, bf16, tf32, f64, s8, u8 };

/// Shape and operand types of an m x n x k product. Sums are double for f64 operands, int for 8-bit
/// integers, else float.
struct FragmentKind {
  int m, n, k;
  FragmentType a, b;
};

/// One lane's fragments. d may alias c.
struct FragmentProduct {
  void* d;
  const void* a;
  const void* b;
  const void* c;
};

/// Computes the product. `lanes` points to one FragmentProduct per lane (32).
RUNG_API void multiply_fragments(void* const* lanes, const FragmentKind& kind);

/// Computes the product if each lane has `count` sums of type `Sum`, which may be a 16-bit float.
template <class Sum, int count>
__attribute__((no_sanitize("thread"))) void multiply_fragments_into(void* const* lanes,
                                                                    const FragmentKind& kind) {
  if constexpr (std::is_arithmetic_v<Sum>) {
    multiply_fragments(lanes, kind);
  } else {
    float sums[warp_lanes][count];
    FragmentProduct products[warp_lanes];
    void* wide[warp_lanes];
    for (int lane = 0; lane < warp_lanes; ++lane) {
      const auto& one = *static_cast<const FragmentProduct*>(lanes[lane]);
      for (int i = 0; i < count; ++i) {
        sums[lane][i] = static_cast<float>(static_cast<const Sum*>(one.c)[i]);
      }
      products[lane] = {sums[lane], one.a, one.b, sums[lane]};
      wide[lane] = &products[lane];
    }
    multiply_fragments(wide, kind);
    for (int lane = 0; lane < warp_lanes; ++lane) {
      auto* const d = static_cast<Sum*>(static_cast<const FragmentProduct*>(lanes[lane])->d);
      for (int i = 0; i < count; ++i) d[i] = static_cast<Sum>(sums[lane][i]);
    }
  }
}

}  // namespace rung::simt
