// SPDX-License-Identifier: Apache-2.0
// norm_backward's arguments as the vector kernels see them, and these kernels, shared by simd and
// threads. No vector code.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/norm_backward/op/norm_backward.hpp"

namespace rung::norm_backward_cpu {

struct GradientCall {
  const NormBackward::Args* args;
  NormBackward::Lines lines;
  std::int64_t rows;
  std::int64_t n;
  const void* gamma;     // contiguous, in the arithmetic type; null: none
  std::int64_t chunks;   // chunks of rows; depends on the shape alone
  void* sums = nullptr;  // [chunks][2][n]: sums of dy z and of dy

  GradientCall(const NormBackward::Args& args, Context& context);
  [[nodiscard]] bool wants_sums() const {
    return args->dgamma.data != nullptr || args->dbeta.data != nullptr;
  }
};

// Defined in 020_simd.cpp.

/// Writes dx of the rows in a range of chunks, and the chunks' sums.
void chunks_of_rows(const GradientCall& call, cpu::Range chunks);
/// Writes dgamma and dbeta for a range of columns from the sums of all chunks.
void sums_of_columns(const GradientCall& call, cpu::Range columns);

Support supports(const NormBackward::Args& args, const Context& context);
/// Problems of fewer elements use one thread: a second one would not pay off.
inline constexpr std::int64_t min_elements = 1 << 15;
Work facts(const NormBackward::Args& args, int threads);

}  // namespace rung::norm_backward_cpu
