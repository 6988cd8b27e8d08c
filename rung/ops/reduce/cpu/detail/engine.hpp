// SPDX-License-Identifier: Apache-2.0
// The engine of reduce's last CPU rungs: cuts a call into tasks for the vector kernels. Every cut
// follows from the shape and strides alone, and partial results are combined in the order of
// the elements, so that the number of threads changes no bit.
#pragma once

#include "rung/ops/reduce/cpu/detail/fold.hpp"

namespace rung::reduce_cpu {

/// How a call is walked.
enum class Walk : std::uint8_t {
  rows,     // along the reduced axes: contiguous, or gathered piece by piece
  columns,  // down the reduced axes, many adjacent results
};
Walk walk_of(const Reduce::Args& args);

/// One short contiguous row that kernels take as it is, with nothing to decide on the way, which
/// would show. Whether the call was one.
bool reduce_one_row(const Reduce::Args& args);
/// The same for few rows of contiguous columns, and contiguous results.
bool reduce_one_tile(const Reduce::Args& args, Context& context);
/// Any valid call, by up to `threads` threads.
void reduce_rows(const Reduce::Args& args, Context& context, int threads);
/// Any call of Walk::columns.
void reduce_columns(const Reduce::Args& args, Context& context, int threads);

/// The bytes of x.
inline std::int64_t bytes_of(const Reduce::Args& args) {
  return args.kept.size() * args.terms.size() * static_cast<std::int64_t>(size_of(args.x.dtype));
}

/// The threads that a call is worth: below some size, waking one costs more than it brings.
int useful_threads(const Reduce::Args& args, const Context& context);

}  // namespace rung::reduce_cpu
