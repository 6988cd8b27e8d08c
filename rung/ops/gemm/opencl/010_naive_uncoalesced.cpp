// SPDX-License-Identifier: Apache-2.0
// gemm / naive uncoalesced: the host side of 010_naive_uncoalesced.cl.
#include "rung/ops/gemm/opencl/010_naive_uncoalesced.cl.hpp"

#include "rung/ops/gemm/opencl/detail/product.hpp"

namespace rung {
namespace {

void run(const Gemm::Args& args, Context& context) {
  const std::int64_t side = opencl::largest_side(context, 16, 0);
  gemm_opencl::launch_product(args, context, {.source = source, .name = "gemm_naive_uncoalesced"},
                              side, side, {side, side, 1}, true);
}

const Rung<Gemm> self{{.name = "naive_uncoalesced",
                       .step = 10,
                       .backend = Backend::opencl,
                       .teaching = true,
                       .supports = gemm_opencl::require_plain_f32,
                       .tile = {.rows = 1, .columns = 1},
                       .run = run},
                      source.path};

}  // namespace
}  // namespace rung
