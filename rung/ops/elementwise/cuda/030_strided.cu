// SPDX-License-Identifier: Apache-2.0
// elementwise / strided
//
// Idea     any strides and any broadcasting: the host merges the common axes of all tensors, with
//          the axis along which z is densest last; a thread divides its index by their extents to
//          find its element in each tensor.
// Changes  against coarsened_grid_stride: supports every layout and type. A merged axis costs one
//          division; with one axis left there is none.
// Cost     loads every operand once if it is contiguous along z's rows. An operand that is strided
//          along them moves 32 bytes per element, unless caches keep the rest of the sector.
// Limits   the general rung, for every valid call. One element per load.
// Source   PyTorch's TensorIterator, which also merges axes.
#include "rung/core/bounds.hpp"
#include "rung/ops/elementwise/cuda/030_strided.cuh"

namespace rung {
namespace {

using namespace elementwise_cuda;

void run(const Elementwise::Args& args, Context& context) {
  with_call<float, double, f16, bf16, std::int32_t, std::int64_t, std::uint8_t>(
      args, [&](const auto& f, const auto& tensors) { launch_strided(context, f, tensors); });
}

const Rung<Elementwise> self{{.name = "strided",
                              .step = 30,
                              .after = "coarsened_grid_stride",
                              .backend = device_backend,
                              .passes = {.loads = 1, .stores = 1},
                              .work = memory_work,
                              .run = run}};

}  // namespace
}  // namespace rung
