// SPDX-License-Identifier: Apache-2.0
// reduce / two stages: the host side of 080_two_stage.cl.
#include "rung/ops/reduce/opencl/080_two_stage.cl.hpp"

#include "rung/ops/reduce/opencl/detail/passes.hpp"

namespace rung {
namespace {

constexpr std::int64_t per_item = 16;  // the kernel's PER_ITEM

Cost traffic(const Reduce::Args& args) {
  return reduce_opencl::passes_traffic(args, 4.0 / (256 * per_item));
}

void run(const Reduce::Args& args, Context& context) {
  const std::int64_t items = reduce_opencl::group_items(context);
  reduce_opencl::in_passes(
      args, context, items * per_item, 0,
      [&](const float* in, std::int64_t n, float* out, std::int64_t groups, const float*) {
        opencl::launch(context, {.source = source, .name = "reduce_two_stage"},
                       {.groups = {groups}, .items = {items}}, opencl::pointer_to(in), n,
                       opencl::pointer_to(out),
                       opencl::Local{static_cast<std::size_t>(items) * sizeof(float)});
      });
}

const Rung<Reduce> self{{.name = "two_stage",
                         .step = 80,
                         .after = "sequential_addressing",
                         .backend = Backend::opencl,
                         .supports = reduce_opencl::require_one_f32_sum,
                         .traffic = traffic,
                         .run = run},
                        source.path};

}  // namespace
}  // namespace rung
