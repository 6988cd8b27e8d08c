// SPDX-License-Identifier: Apache-2.0
// wgmma on the simulated GPU: what a warpgroup issues is carried out as late as its waits allow, so
// that a kernel that does not wait finds its old sums, and one that overwrites operands too early
// multiplies the new ones. Under random orders half are carried out as soon as all threads have
// issued them.
//
// Products of the small types are exact in float; sums are rounded to float in order of k. The chip
// adds in another order, and truncates: only the error bound is common to both.
#pragma once

#include <cstdint>

#include "rung/core/export.hpp"
#include "rung/simt/sync.hpp"

namespace rung::simt {

enum class WgmmaType : std::uint8_t { f16, bf16, tf32, e4m3, e5m2, s8, u8 };

struct WgmmaShape {
  WgmmaType a, b;
  int n;
  bool turn_a, turn_b;  // MN-major in shared memory
  bool negate_a, negate_b;
  // Spelled out: programs of `rung emulate` may be compiled as C++17.
  bool operator==(const WgmmaShape& other) const {
    return a == other.a && b == other.b && n == other.n && turn_a == other.turn_a &&
           turn_b == other.turn_b && negate_a == other.negate_a && negate_b == other.negate_b;
  }
};

/// `sums`: the calling thread's n / 2 registers, floats or ints. `a`: its four, or null: `a_matrix`
/// and `b_matrix` describe shared memory as the PTX manual says (matrix descriptor).
RUNG_API void wgmma(const WgmmaShape& shape, void* sums, const std::uint32_t* a,
                    std::uint64_t a_matrix, std::uint64_t b_matrix, bool accumulate, Place place);
/// The same where the sums are not in a row: n / 2 places, all different.
RUNG_API void wgmma_scattered(const WgmmaShape& shape, void* const* sums, const std::uint32_t* a,
                              std::uint64_t a_matrix, std::uint64_t b_matrix, bool accumulate,
                              Place place);
RUNG_API void wgmma_fence(Place place);
RUNG_API void wgmma_commit(Place place);
/// Carries out all groups of the calling thread but the latest `pending`.
RUNG_API void wgmma_wait(int pending, Place place);

}  // namespace rung::simt
