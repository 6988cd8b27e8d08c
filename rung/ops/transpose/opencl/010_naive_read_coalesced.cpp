// SPDX-License-Identifier: Apache-2.0
// transpose / naive, coalesced reads: the host side of 010_naive_read_coalesced.cl.
#include "rung/ops/transpose/opencl/010_naive_read_coalesced.cl.hpp"

#include "rung/ops/transpose/opencl/detail/matrices.hpp"

namespace rung {
namespace {

void run(const Transpose::Args& args, Context& context) {
  transpose_opencl::launch_matrices(args, context,
                                    {.source = source, .name = "transpose_naive_read_coalesced"},
                                    opencl::largest_side(context, 16, 0));
}

const Rung<Transpose> self{{.name = "naive_read_coalesced",
                            .step = 10,
                            .backend = Backend::opencl,
                            .teaching = true,
                            .supports = transpose_opencl::require_words,
                            .passes = {.loads = 1, .stores = 1},
                            .run = run},
                           source.path};

}  // namespace
}  // namespace rung
