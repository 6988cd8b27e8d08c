// SPDX-License-Identifier: Apache-2.0
// norm's vector kernels, for whatever processor this is: 080_row_pipeline.cpp compiles them once
// for each instruction set.
#pragma once

#include "rung/ops/norm/shared/cpu/plan.hpp"

namespace rung::norm_cpu {

struct Kernels {
  void (*rows)(const RowsJob& job);
  void (*statistics)(const BlocksJob& job);
  void (*write)(const BlocksJob& job);
  /// n contiguous elements of x's type to the type of the arithmetic.
  void (*widen)(const void* from, std::int64_t n, void* to);
};

/// For x of type T: float, double, f16 or bf16.
template <class T>
Kernels kernels_for();

/// Plans the call and runs it on up to `threads` threads.
void normalize(const Norm::Args& args, Context& context, int threads);

/// Seconds that this takes, for the choice among rungs.
double seconds(const Norm::Args& args, int threads);

}  // namespace rung::norm_cpu
