// SPDX-License-Identifier: Apache-2.0
// wgmma on the simulated GPU. Products are performed as late as the waits allow, so that a kernel
// that omits a wait reads its old sums, and a kernel that overwrites operands too early multiplies
// the new ones. Under random orders half of the products are performed as soon as all threads have
// issued them.
//
// Multiplications of two f16, bf16 or TF32 elements are exact in float. Terms are added in order of
// k, with a rounding to float after each; a GPU adds in another order and truncates: only the error
// bound is the same. For 8-bit floats the terms are truncated as on Hopper (add_aligned() in
// matrix_product.cpp).
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
  // Not defaulted: programs of `rung emulate` may be compiled as C++17.
  bool operator==(const WgmmaShape& other) const {
    return a == other.a && b == other.b && n == other.n && turn_a == other.turn_a &&
           turn_b == other.turn_b && negate_a == other.negate_a && negate_b == other.negate_b;
  }
};

/// Issues a wgmma. `sums`: the calling thread's n / 2 accumulator registers, floats or ints. `a`:
/// its four registers of A; null if A is in shared memory. `a_matrix` and `b_matrix` are matrix
/// descriptors of shared memory (PTX manual).
RUNG_API void wgmma(const WgmmaShape& shape, void* sums, const std::uint32_t* a,
                    std::uint64_t a_matrix, std::uint64_t b_matrix, bool accumulate, Place place);
/// Issues a wgmma whose n / 2 sums per thread are not contiguous: `sums` holds their addresses.
RUNG_API void wgmma_scattered(const WgmmaShape& shape, void* const* sums, const std::uint32_t* a,
                              std::uint64_t a_matrix, std::uint64_t b_matrix, bool accumulate,
                              Place place);
RUNG_API void wgmma_fence(Place place);
RUNG_API void wgmma_commit(Place place);
/// Completes all groups of the calling thread except the latest `pending`.
RUNG_API void wgmma_wait(int pending, Place place);

}  // namespace rung::simt
