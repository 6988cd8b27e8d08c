// SPDX-License-Identifier: Apache-2.0
// transpose / shared tile: the host side of 030_shared_tile.cl.
#include "rung/ops/transpose/opencl/030_shared_tile.cl.hpp"

#include "rung/ops/transpose/opencl/detail/matrices.hpp"

namespace rung {
namespace {

void run(const Transpose::Args& args, Context& context) {
  const int tile = opencl::largest_side(context, 32, 1);
  transpose_opencl::launch_matrices(args, context,
                                    {.source = source,
                                     .name = "transpose_shared_tile",
                                     .options = "-DTILE=" + std::to_string(tile)},
                                    tile);
}

const Rung<Transpose> self{{.name = "shared_tile",
                            .step = 30,
                            .after = "naive_read_coalesced",
                            .backend = Backend::opencl,
                            .teaching = true,
                            .supports = transpose_opencl::require_words,
                            .passes = {.loads = 1, .stores = 1},
                            .run = run},
                           source.path};

}  // namespace
}  // namespace rung
