// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / implicit GEMM, asynchronous
//
// Idea     conv's rung of this name, of dy and of filters whose channels and numbers have changed
//          places: they are packed by terms beforehand, so that it does not matter that w is not
//          contiguous along what is summed over.
// Changes  against implicit_gemm: tiles of up to 128 channels x 256 places by cp.async, four ahead,
//          16 x 8 elements per thread.
// Cost     per thread and tile of eight terms 1024 multiply-adds, 48 wide loads from shared memory,
//          8 or 16 copies of dy and one of w. The phases of a strided layer are layers of one
//          launch, those with the most taps first.
// Limits   f32, strides that leave up to 9 phases, of up to 32 taps each.
// Tried    -
// Source   conv / implicit_gemm_async.
#include <algorithm>

#include "rung/ops/conv/shared/cuda/async_tiles.hpp"
#include "rung/ops/conv_backward_data/op/layer.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

template <int Shape>
__global__ void __launch_bounds__(async_shapes[Shape].threads(), async_shapes[Shape].blocks)
    conv_backward_data_implicit_gemm_async(const __grid_constant__ Gathered g,
                                           PackedFilters packed) {
  AsyncLayer<async_shapes[Shape]>::make(g, packed);
}

__global__ void __launch_bounds__(block_threads)
    conv_backward_data_implicit_gemm_async_pack(Gathered g, PackedFilters packed) {
  pack_filters(g, packed);
}

/// The phases of a strided layer, of many terms first.
constexpr int max_phases = 9;
struct Phases {
  Gathered layer[max_phases];
  PackedFilters packed[max_phases];
};
static_assert(sizeof(Phases) <= 4096, "parameters of a kernel");

/// blockIdx.z counts phases.
template <int Shape>
__global__ void __launch_bounds__(async_shapes[Shape].threads(), async_shapes[Shape].blocks)
    conv_backward_data_implicit_gemm_async_phases(const __grid_constant__ Phases phases) {
  const Gathered& g = phases.layer[blockIdx.z];
  if (std::int64_t{blockIdx.x} * async_shapes[Shape].columns >= g.pixels()) return;
  AsyncLayer<async_shapes[Shape]>::make(g, phases.packed[blockIdx.z]);
}

__global__ void __launch_bounds__(block_threads)
    conv_backward_data_implicit_gemm_async_pack_phases(const __grid_constant__ Phases phases) {
  pack_filters(phases.layer[blockIdx.y], phases.packed[blockIdx.y]);
}

// --- on the host ---------------------------------------------------------------------------------

/// How many there are, up to max_phases.
std::int64_t phases_of(const ConvBackwardData::Args& args, Phases& phases) {
  const Gathered g = conv_layer::transposed(args);
  const std::int64_t count = conv_layer::phases_of(g);
  for (std::int64_t i = 0; i < count; ++i) {
    phases.layer[i] = conv_layer::phase_layer(g, i, sizeof(float));
  }
  std::stable_sort(phases.layer, phases.layer + count,
                   [](const Gathered& a, const Gathered& b) { return a.terms() > b.terms(); });
  return count;
}

Support supports(const ConvBackwardData::Args& args, const Context&) {
  const Gathered g = conv_layer::transposed(args);
  if (!is_divided(g)) return supports_async(g);
  if (!has_small_places(g)) {
    return unsupported("extents, paddings and taps of up to 2^28, channels of up to 2^31 - 1");
  }
  if (conv_layer::phases_of(g) > max_phases)
    return unsupported("strides that leave up to 9 phases");
  Phases phases;
  const std::int64_t count = phases_of(args, phases);
  for (std::int64_t i = 0; i < count; ++i) {
    const Support one = supports_async(phases.layer[i]);
    if (!one) return one;
  }
  return supported;
}

double estimate(const ConvBackwardData::Args& args, const Context& context) {
  Phases phases;
  const auto count = static_cast<std::size_t>(phases_of(args, phases));
  return plan_async({phases.layer, count}, ConvBackwardData::cost(args), context).seconds;
}

void run_phases(const ConvBackwardData::Args& args, Context& context) {
  Phases phases;
  const auto count = static_cast<int>(phases_of(args, phases));
  std::size_t bytes = 0;
  std::int64_t most = 0;  // elements of a phase's filters
  std::int64_t pixels = 0;
  std::size_t first[max_phases];
  for (int i = 0; i < count; ++i) {
    const Gathered& g = phases.layer[i];
    phases.packed[i] = packed_shape(g);
    first[i] = bytes;
    bytes += packed_bytes(g);
    most = larger(most, g.groups * phases.packed[i].of_group());
    pixels = larger(pixels, g.pixels());
  }
  auto* const memory = static_cast<std::byte*>(context.workspace(bytes));
  for (int i = 0; i < count; ++i) {
    phases.packed[i].data = reinterpret_cast<float*>(memory + first[i]);
  }
  launch(context,
         {.grid = {smaller(ceil_div(most, block_threads), std::int64_t{0x7fffffff}), count},
          .block = block_threads},
         conv_backward_data_implicit_gemm_async_pack_phases, phases);
  const AsyncPlan plan = plan_async({phases.layer, static_cast<std::size_t>(count)},
                                    ConvBackwardData::cost(args), context);
  with_async_shape(plan.shape, [&]<int Shape>() {
    LaunchShape shape = async_grid<Shape>(phases.layer[0]);
    shape.grid.x = ceil_div(pixels, async_shapes[Shape].columns);
    shape.grid.z = count;
    launch(context, shape, conv_backward_data_implicit_gemm_async_phases<Shape>, phases);
  });
}

void run(const ConvBackwardData::Args& args, Context& context) {
  const Gathered g = conv_layer::transposed(args);
  if (is_divided(g)) return run_phases(args, context);
  const PackedFilters packed = make_packed(g, context);
  launch(context, pack_grid(g, packed), conv_backward_data_implicit_gemm_async_pack, g, packed);
  with_async_shape(plan_async(g, ConvBackwardData::cost(args), context).shape, [&]<int Shape>() {
    launch(context, async_grid<Shape>(g), conv_backward_data_implicit_gemm_async<Shape>, g, packed);
  });
}

const Rung<ConvBackwardData> self{{.name = "implicit_gemm_async",
                                   .step = 25,
                                   .after = "implicit_gemm",
                                   .backend = device_backend,
                                   .supports = supports,
                                   .estimate = estimate,
                                   .run = run}};

}  // namespace
}  // namespace rung
