// SPDX-License-Identifier: Apache-2.0
// Host code of reduce's first GPU rungs, for any backend: one sum of contiguous f32, in passes.
// Each pass leaves one partial sum per block (OpenCL: work-group); passes repeat until one block
// suffices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/ops/reduce/op/reduce.hpp"

namespace rung::reduce_passes {

inline Support require_one_f32_sum(const Reduce::Args& args, const Context&) {
  if (args.operation != Reduction::sum) return unsupported("sums only");
  if (args.x.dtype != DType::f32) return unsupported("f32 only");
  if (args.has_segments()) return unsupported("no segments");
  if (args.kept.size() != 1) return unsupported("all axes must be reduced");
  if (!args.terms.is_contiguous()) return unsupported("x must be contiguous");
  return supported;
}

/// Calls pass(in, n, out, blocks, memory) for each pass; the last pass writes y. A block sums
/// `per_block` elements. `memory` has `scratch` floats for the passes' use.
template <class Pass>
void in_passes(const Reduce::Args& args, Context& context, std::int64_t per_block,
               std::int64_t scratch, const Pass& pass) {
  std::int64_t n = args.terms.size();
  // An empty x may have any address.
  const float* in = n == 0 ? nullptr : static_cast<const float*>(args.x.data);
  const std::int64_t first = ceil_div(n, per_block);
  const std::int64_t second = ceil_div(first, per_block);
  auto* const memory = static_cast<float*>(
      context.workspace(static_cast<std::size_t>(scratch + first + second) * sizeof(float)));
  float* const partial[] = {memory + scratch, memory + scratch + first};
  for (int which = 0;; which = 1 - which) {
    const std::int64_t blocks = n == 0 ? 1 : ceil_div(n, per_block);
    float* const out = blocks == 1 ? static_cast<float*>(args.y.data) : partial[which];
    pass(in, n, out, blocks, memory);
    if (blocks == 1) return;
    in = out;
    n = blocks;
  }
}

/// Returns the cost of a sum whose passes write and read again `written` bytes per element of x.
inline Cost passes_traffic(const Reduce::Args& args, double written) {
  Cost cost = Reduce::cost(args);
  cost.bytes += 2 * written * cost.operations;
  return cost;
}

}  // namespace rung::reduce_passes
