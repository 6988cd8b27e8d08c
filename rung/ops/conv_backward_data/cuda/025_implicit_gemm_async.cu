// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / implicit GEMM, asynchronous
//
// Idea     conv's rung of this name, of dy and of filters whose channels and numbers have changed
//          places: they are packed by terms beforehand, so that it does not matter that w is not
//          contiguous along what is summed over.
// Changes  against implicit_gemm: tiles of up to 128 channels x 256 places by cp.async, four ahead,
//          16 x 8 elements per thread.
// Cost     per thread and tile of eight terms 1024 multiply-adds, 48 wide loads from shared memory,
//          8 or 16 copies of dy and one of w.
// Limits   f32, a stride of 1, up to 32 taps.
// Tried    -
// Source   conv / implicit_gemm_async.
#include "rung/ops/conv/cuda/detail/async_tiles.hpp"
#include "rung/ops/conv_backward_data/layer.hpp"

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

Support supports(const ConvBackwardData::Args& args, const Context&) {
  return supports_async(conv_layer::transposed(args));
}

double estimate(const ConvBackwardData::Args& args, const Context& context) {
  return plan_async(conv_layer::transposed(args), ConvBackwardData::cost(args), context).seconds;
}

void run(const ConvBackwardData::Args& args, Context& context) {
  const Gathered g = conv_layer::transposed(args);
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
