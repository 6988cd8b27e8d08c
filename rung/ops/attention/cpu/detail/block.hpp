// SPDX-License-Identifier: Apache-2.0
// A block of stacked rows against a range of keys: the work unit of 030_simd and 040_threads. The
// queries of all heads that share a head of k and v form one matrix: its row r is query r / group
// of the (r % group)-th of these heads.
#pragma once

#include <cstdint>

#include "rung/core/context.hpp"
#include "rung/ops/attention/op/attention.hpp"

namespace rung::attention_cpu {

inline constexpr std::int64_t block_rows = 64;
inline constexpr std::int64_t key_tile = 64;

struct RowKeyBlock {
  std::int64_t b, g;
  std::int64_t first_row, rows;      // at most block_rows
  std::int64_t first_key, last_key;  // clipped to the visible keys
  /// Null: the range covers all keys, and o and lse are written. Else the destination of partial
  /// results, per row: Dv weighted sums, the maximum (times log2(e)) and the sum of exponentials.
  void* partial = nullptr;
};

using Attend = void(const Attention::Args& args, const RowKeyBlock& block, void* scratch);
/// Returns the kernel for the type of q, compiled for the best instruction set of this CPU
/// (030_simd.cpp).
Attend* attend_for(DType dtype);

/// Returns the number of rows that share a head of k and v. scratch_bytes() below returns the
/// scratch memory per thread.
inline std::int64_t stacked_rows(const Attention::Args& args) {
  return args.group() * args.queries();
}
std::int64_t scratch_bytes(const Attention::Args& args);

}  // namespace rung::attention_cpu
