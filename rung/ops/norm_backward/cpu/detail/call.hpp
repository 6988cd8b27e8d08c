// SPDX-License-Identifier: Apache-2.0
// A norm_backward call as the vector kernels see it, and these, which simd and threads share. No
// vector code here.
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
  const void* gamma;     // contiguous, in the arithmetic type; or null
  std::int64_t chunks;   // of rows; they depend on the shape alone, so that bits do
  void* sums = nullptr;  // [chunks][2][n]: of dy z, of dy

  GradientCall(const NormBackward::Args& args, Context& context);
  [[nodiscard]] bool wants_sums() const {
    return args->dgamma.data != nullptr || args->dbeta.data != nullptr;
  }
};

// Defined in 020_simd.cpp.

/// Writes dx of the rows of a range of chunks, and the chunks' sums.
void chunks_of_rows(const GradientCall& call, cpu::Range chunks);
/// Writes dgamma and dbeta of a range of columns from the sums of all chunks.
void sums_of_columns(const GradientCall& call, cpu::Range columns);

Support supports(const NormBackward::Args& args, const Context& context);
/// Calls of fewer elements stay on one thread: a second one costs more than it does.
inline constexpr std::int64_t min_elements = 1 << 15;
Work facts(const NormBackward::Args& args, int threads);

}  // namespace rung::norm_backward_cpu
