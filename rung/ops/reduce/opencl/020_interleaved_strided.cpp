// SPDX-License-Identifier: Apache-2.0
// reduce / interleaved, by stride: the host side of 020_interleaved_strided.cl.
#include "rung/ops/reduce/opencl/020_interleaved_strided.cl.hpp"

#include "rung/ops/reduce/opencl/detail/passes.hpp"

namespace rung {
namespace {

Cost traffic(const Reduce::Args& args) { return reduce_opencl::passes_traffic(args, 4 * 2.0); }

void run(const Reduce::Args& args, Context& context) {
  reduce_opencl::run_global_tree(args, context, source, "reduce_interleaved_strided");
}

const Rung<Reduce> self{{.name = "interleaved_strided",
                         .step = 20,
                         .after = "interleaved_modulo",
                         .backend = Backend::opencl,
                         .teaching = true,
                         .supports = reduce_opencl::require_one_f32_sum,
                         .traffic = traffic,
                         .run = run},
                        source.path};

}  // namespace
}  // namespace rung
