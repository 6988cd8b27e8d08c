// SPDX-License-Identifier: Apache-2.0
// reduce / sequential addressing: the host side of 030_sequential_addressing.cl.
#include "rung/ops/reduce/opencl/030_sequential_addressing.cl.hpp"

#include "rung/ops/reduce/opencl/detail/passes.hpp"

namespace rung {
namespace {

Cost traffic(const Reduce::Args& args) { return reduce_opencl::passes_traffic(args, 4 * 2.0); }

void run(const Reduce::Args& args, Context& context) {
  reduce_opencl::run_global_tree(args, context, source, "reduce_sequential_addressing");
}

const Rung<Reduce> self{{.name = "sequential_addressing",
                         .step = 30,
                         .after = "interleaved_strided",
                         .backend = Backend::opencl,
                         .teaching = true,
                         .supports = reduce_opencl::require_one_f32_sum,
                         .traffic = traffic,
                         .run = run},
                        source.path};

}  // namespace
}  // namespace rung
