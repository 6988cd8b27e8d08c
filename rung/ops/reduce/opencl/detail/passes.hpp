// SPDX-License-Identifier: Apache-2.0
// Host code of reduce's OpenCL rungs: launches of their passes (op/passes.hpp has the rest).
#pragma once

#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/opencl/launch.hpp"
#include "rung/ops/reduce/op/passes.hpp"

namespace rung::reduce_opencl {

using reduce_passes::in_passes;
using reduce_passes::passes_traffic;
using reduce_passes::require_one_f32_sum;

/// Returns the work-items per group, a power of two up to 256.
inline std::int64_t group_items(const Context& context) {
  return opencl::largest_group(context, 256);
}

/// Runs passes whose groups reduce a copy of their elements in global memory.
inline void run_global_tree(const Reduce::Args& args, Context& context,
                            const opencl::Source& source, const char* name) {
  const std::int64_t items = group_items(context);
  const std::int64_t elements = args.terms.size();
  const std::int64_t scratch = round_up(elements == 0 ? 1 : elements, items);
  in_passes(
      args, context, items, scratch,
      [&](const float* in, std::int64_t n, float* out, std::int64_t groups, const float* copy) {
        opencl::launch(context, {.source = source, .name = name},
                       {.groups = {groups}, .items = {items}}, opencl::pointer_to(in), n,
                       opencl::pointer_to(copy), opencl::pointer_to(out));
      });
}

}  // namespace rung::reduce_opencl
