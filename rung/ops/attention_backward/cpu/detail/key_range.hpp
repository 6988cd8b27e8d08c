// SPDX-License-Identifier: Apache-2.0
// A range of keys of one head of k and v, against all queries that see them: the work unit of
// 020_simd and 030_threads.
#pragma once

#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/ops/attention_backward/op/attention_backward.hpp"

namespace rung::attention_backward_cpu {

inline constexpr std::int64_t query_tile = 64;
inline constexpr std::int64_t key_tile = 64;

/// Returns the rows per head of k and v; row h * Sq + i is query i of the group's head h.
inline std::int64_t rows_of_group(const AttentionBackward::Args& args) {
  return args.group() * args.queries();
}

struct KeyRange {
  std::int64_t b, g;
  std::int64_t first_key, last_key;
  /// Null: the range covers all keys, and dq is written. Else the destination of sums of dq, in
  /// rows of sum_pitch() elements.
  void* partial_dq = nullptr;
};

/// Kernel that writes dk and dv of a range, and dq or its partial sums.
using Differentiate = void(const AttentionBackward::Args& args, const KeyRange& range,
                           void* scratch);
/// Returns the kernel for the type of q, compiled for the best instruction set of this CPU
/// (020_simd.cpp).
Differentiate* differentiate_for(DType dtype);
/// Returns the elements per row of partial_dq. scratch_bytes() returns the scratch bytes per
/// thread.
std::int64_t sum_pitch(const AttentionBackward::Args& args);
std::int64_t scratch_bytes(const AttentionBackward::Args& args);

}  // namespace rung::attention_backward_cpu
