// SPDX-License-Identifier: Apache-2.0
// A block of rows against some keys: what 030_simd computes and 040_threads shares out. The queries
// of all heads that share a head of k and v are the rows of one matrix: row r is query r / group of
// head r % group of these.
#pragma once

#include <cstdint>

#include "rung/core/context.hpp"
#include "rung/ops/attention/op/attention.hpp"

namespace rung::attention_cpu {

inline constexpr std::int64_t block_rows = 64;
inline constexpr std::int64_t key_tile = 64;

struct Block {
  std::int64_t b, g;
  std::int64_t first_row, rows;      // at most block_rows
  std::int64_t first_key, last_key;  // of those, what is there and seen
  /// Null: the keys are all, and o and lse are written. Else, for each row, where Dv weighted sums
  /// of values go, their maximum and their sum of exponentials, both in powers of 2.
  void* partial = nullptr;
};

using Attend = void(const Attention::Args& args, const Block& block, void* scratch);
/// Returns the kernel for the type of q and the best instruction set of this machine
/// (030_simd.cpp).
Attend* attend_for(DType dtype);

/// Rows that share a head of k and v; scratch memory of one thread, in bytes.
inline std::int64_t stacked_rows(const Attention::Args& args) {
  return args.group() * args.queries();
}
std::int64_t scratch_bytes(const Attention::Args& args);

}  // namespace rung::attention_cpu
