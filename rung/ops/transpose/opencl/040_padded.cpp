// SPDX-License-Identifier: Apache-2.0
// transpose / padded: the host side of 040_padded.cl.
#include "rung/ops/transpose/opencl/040_padded.cl.hpp"

#include "rung/ops/transpose/opencl/detail/matrices.hpp"

namespace rung {
namespace {

void run(const Transpose::Args& args, Context& context) {
  const int tile = opencl::largest_side(context, 32, 1);
  transpose_opencl::launch_matrices(
      args, context,
      {.source = source, .name = "transpose_padded", .options = "-DTILE=" + std::to_string(tile)},
      tile);
}

const Rung<Transpose> self{{.name = "padded",
                            .step = 40,
                            .after = "shared_tile",
                            .backend = Backend::opencl,
                            .supports = transpose_opencl::require_words,
                            .passes = {.loads = 1, .stores = 1},
                            .run = run},
                           source.path};

}  // namespace
}  // namespace rung
