// SPDX-License-Identifier: Apache-2.0
// A block of stacked rows against a range of keys: the work unit of 030_simd and 040_threads. The
// queries of all heads of a batch element that share a head of k and v form one matrix: its row r
// is query r / group of the (r % group)-th of these heads.
#pragma once

#include <cstdint>

#include "rung/core/context.hpp"
#include "rung/ops/attention/op/attention.hpp"
#include "rung/ops/attention/shared/packed_rows.hpp"

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
/// Returns the kernel for the types of q and k, compiled for the best instruction set of this CPU
/// (030_simd.cpp).
Attend* attend_for(const Attention::Args& args);

/// Returns the number of queries of a batch element. It reads query_offsets.
inline std::int64_t queries_of_element(const Attention::Args& args, std::int64_t b) {
  if (!args.has_query_offsets()) return args.queries();
  const auto offsets = args.options.query_offsets.view<const std::int32_t, 1>();
  return packed_rows(offsets, b, args.queries()).count;
}
/// Returns the number of keys of a batch element, key_lengths ignored. It reads key_offsets.
inline std::int64_t keys_of_element(const Attention::Args& args, std::int64_t b) {
  if (!args.has_key_offsets()) return args.keys();
  const auto offsets = args.options.key_offsets.view<const std::int32_t, 1>();
  return packed_rows(offsets, b, args.keys()).count;
}

/// Returns the number of rows of a batch element that share a head of k and v.
inline std::int64_t stacked_rows(const Attention::Args& args, std::int64_t b) {
  return args.group() * queries_of_element(args, b);
}
/// Returns the scratch memory per thread.
std::int64_t scratch_bytes(const Attention::Args& args);

}  // namespace rung::attention_cpu
