// SPDX-License-Identifier: Apache-2.0
// A range of keys of one head of k and v against all queries that see them: what 020_simd computes
// and 030_threads shares out.
#pragma once

#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/ops/attention_backward/op/attention_backward.hpp"

namespace rung::attention_backward_cpu {

inline constexpr std::int64_t query_tile = 64;
inline constexpr std::int64_t key_tile = 64;

/// Row h * Sq + i of a head of k and v is query i of head h of the group.
inline std::int64_t rows_of_group(const AttentionBackward::Args& args) {
  return args.group() * args.queries();
}

struct KeyRange {
  std::int64_t b, g;
  std::int64_t first_key, last_key;
  /// Null: the range is all keys, and dq is written. Else where its sums go, a row each of
  /// sum_pitch() elements, before they are scaled.
  void* partial_dq = nullptr;
};

/// Writes dk and dv of a range, and dq or its part.
using Differentiate = void(const AttentionBackward::Args& args, const KeyRange& range,
                           void* scratch);
/// Returns the kernel for the type of q and the best instruction set of this machine
/// (020_simd.cpp).
Differentiate* differentiate_for(DType dtype);
/// Returns elements from one row of partial_dq to the next, and bytes of scratch memory per thread.
std::int64_t sum_pitch(const AttentionBackward::Args& args);
std::int64_t scratch_bytes(const AttentionBackward::Args& args);

}  // namespace rung::attention_backward_cpu
