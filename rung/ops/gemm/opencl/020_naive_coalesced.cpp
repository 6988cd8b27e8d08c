// SPDX-License-Identifier: Apache-2.0
// gemm / naive coalesced: the host side of 020_naive_coalesced.cl.
#include "rung/ops/gemm/opencl/020_naive_coalesced.cl.hpp"

#include "rung/ops/gemm/opencl/detail/product.hpp"

namespace rung {
namespace {

void run(const Gemm::Args& args, Context& context) {
  const std::int64_t side = opencl::largest_side(context, 16, 0);
  gemm_opencl::launch_product(args, context, {.source = source, .name = "gemm_naive_coalesced"},
                              side, side, {side, side, 1});
}

const Rung<Gemm> self{{.name = "naive_coalesced",
                       .step = 20,
                       .after = "naive_uncoalesced",
                       .backend = Backend::opencl,
                       .supports = gemm_opencl::require_plain_f32,
                       .tile = {.rows = 1, .columns = 1},
                       .run = run},
                      source.path};

}  // namespace
}  // namespace rung
