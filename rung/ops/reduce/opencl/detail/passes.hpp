// SPDX-License-Identifier: Apache-2.0
// The host side that reduce's OpenCL rungs share: one sum of contiguous f32, in passes. Each pass
// leaves one partial sum per work-group; passes follow one another until one group is enough.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/opencl/launch.hpp"
#include "rung/ops/reduce/reduce.hpp"

namespace rung::reduce_opencl {

inline Support require_one_f32_sum(const Reduce::Args& args, const Context&) {
  if (args.operation != Reduction::sum) return unsupported("sums only");
  if (args.x.dtype != DType::f32) return unsupported("f32 only");
  if (args.has_segments()) return unsupported("no segments");
  if (args.kept.size() != 1) return unsupported("all axes must be reduced");
  if (!args.terms.is_contiguous()) return unsupported("x must be contiguous");
  return supported;
}

/// Work-items of a group, a power of two.
inline std::int64_t group_items(const Context& context) {
  return opencl::largest_group(context, 256);
}

/// Calls pass(in, n, out, groups) for each pass; the last one writes y. `per_group` elements of the
/// input go into one partial sum. `scratch` floats at the start of the workspace are the passes'.
template <class Pass>
void in_passes(const Reduce::Args& args, Context& context, std::int64_t per_group,
               std::int64_t scratch, const Pass& pass) {
  std::int64_t n = args.terms.size();
  // An empty x need not be anywhere.
  const float* in = n == 0 ? nullptr : static_cast<const float*>(args.x.data);
  const std::int64_t first = ceil_div(n, per_group);
  const std::int64_t second = ceil_div(first, per_group);
  auto* const memory = static_cast<float*>(
      context.workspace(static_cast<std::size_t>(scratch + first + second) * sizeof(float)));
  float* const partial[] = {memory + scratch, memory + scratch + first};
  for (int which = 0;; which = 1 - which) {
    const std::int64_t groups = n == 0 ? 1 : ceil_div(n, per_group);
    float* const out = groups == 1 ? static_cast<float*>(args.y.data) : partial[which];
    pass(in, n, out, groups);
    if (groups == 1) return;
    in = out;
    n = groups;
  }
}

/// Passes whose groups add up a copy of their elements in global memory.
inline void run_global_tree(const Reduce::Args& args, Context& context,
                            const opencl::Source& source, const char* name) {
  const std::int64_t items = group_items(context);
  const std::int64_t elements = args.terms.size();
  const std::int64_t scratch = round_up(elements == 0 ? 1 : elements, items);
  in_passes(args, context, items, scratch,
            [&](const float* in, std::int64_t n, float* out, std::int64_t groups) {
              opencl::launch(context, {.source = source, .name = name},
                             {.groups = {groups}, .items = {items}}, opencl::pointer_to(in), n,
                             opencl::pointer_to(static_cast<const float*>(context.workspace(0))),
                             opencl::pointer_to(out));
            });
}

/// What passes move whose groups write `written` bytes, and read them again, per element of x.
inline Cost passes_traffic(const Reduce::Args& args, double written) {
  Cost cost = Reduce::cost(args);
  cost.bytes += 2 * written * cost.operations;
  return cost;
}

}  // namespace rung::reduce_opencl
