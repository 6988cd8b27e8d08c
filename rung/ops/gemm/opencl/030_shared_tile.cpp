// SPDX-License-Identifier: Apache-2.0
// gemm / shared tile: the host side of 030_shared_tile.cl.
#include "rung/ops/gemm/opencl/030_shared_tile.cl.hpp"

#include "rung/ops/gemm/opencl/detail/product.hpp"

namespace rung {
namespace {

constexpr int most = 32;

void run(const Gemm::Args& args, Context& context) {
  const std::int64_t tile = opencl::largest_side(context, most, 2);
  gemm_opencl::launch_product(
      args, context,
      {.source = source, .name = "gemm_shared_tile", .options = "-DTILE=" + std::to_string(tile)},
      tile, tile, {tile, tile, 1});
}

const Rung<Gemm> self{{.name = "shared_tile",
                       .step = 30,
                       .after = "naive_coalesced",
                       .backend = Backend::opencl,
                       .supports = gemm_opencl::require_plain_f32,
                       .tile = {.rows = most, .columns = most},
                       .run = run},
                      source.path};

}  // namespace
}  // namespace rung
