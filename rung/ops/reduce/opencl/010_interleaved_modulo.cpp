// SPDX-License-Identifier: Apache-2.0
// reduce / interleaved, by remainder: the host side of 010_interleaved_modulo.cl.
#include "rung/ops/reduce/opencl/010_interleaved_modulo.cl.hpp"

#include "rung/ops/reduce/opencl/detail/passes.hpp"

namespace rung {
namespace {

Cost traffic(const Reduce::Args& args) { return reduce_opencl::passes_traffic(args, 4 * 2.0); }

void run(const Reduce::Args& args, Context& context) {
  reduce_opencl::run_global_tree(args, context, source, "reduce_interleaved_modulo");
}

const Rung<Reduce> self{{.name = "interleaved_modulo",
                         .step = 10,
                         .backend = Backend::opencl,
                         .teaching = true,
                         .supports = reduce_opencl::require_one_f32_sum,
                         .traffic = traffic,
                         .run = run},
                        source.path};

}  // namespace
}  // namespace rung
