// SPDX-License-Identifier: Apache-2.0
// conv / implicit GEMM, asynchronous
//
// Idea     the product of implicit_gemm by the pipeline of gemm's simt_top: cp.async brings tiles
//          of eight terms to shared memory, four tiles ahead, and a thread multiplies up to 16 x 8
//          elements. A first kernel packs the filters by terms, so that they are copied 16 bytes at
//          a time; terms are ordered so that the eight of a tile are channels of one tap.
// Changes  against implicit_gemm: 128 multiply-adds for 6 wide loads from shared memory instead of
//          64 for 4; no table of terms - a tap moves one offset, and whether it is inside is a bit
//          per pixel -; copies to shared memory bypass the registers.
// Cost     a tile of 128 filters x 256 pixels and eight terms: per thread 1024 multiply-adds, 48
//          wide loads from shared memory, 8 copies of x and one of w; with 64 filters 16 copies of
//          x. nvcc leaves multiply-adds 83 of 100 instructions of the loop with 64 filters.
// Limits   f32, up to 32 taps. Channels are multiplied in eights: with three of them five eighths
//          are zeros. With channels last, a warp's copies of x touch a line per pixel.
// Tried    -
// Source   gemm / simt_top; CUTLASS, "Implicit GEMM convolution": predicates as bits of a mask.
#include "rung/ops/conv/shared/cuda/async_tiles.hpp"
#include "rung/ops/conv/shared/layer.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

template <int Shape>
__global__ void __launch_bounds__(async_shapes[Shape].threads(), async_shapes[Shape].blocks)
    conv_implicit_gemm_async(const __grid_constant__ Gathered g, PackedFilters packed) {
  AsyncLayer<async_shapes[Shape]>::make(g, packed);
}

__global__ void __launch_bounds__(block_threads)
    conv_implicit_gemm_async_pack(Gathered g, PackedFilters packed) {
  pack_filters(g, packed);
}

Support supports(const Conv::Args& args, const Context&) {
  return supports_async(conv_layer::forward(args));
}

double estimate(const Conv::Args& args, const Context& context) {
  return plan_async(conv_layer::forward(args), Conv::cost(args), context).seconds;
}

void run(const Conv::Args& args, Context& context) {
  const Gathered g = conv_layer::forward(args);
  const PackedFilters packed = make_packed(g, context);
  launch(context, pack_grid(g, packed), conv_implicit_gemm_async_pack, g, packed);
  with_async_shape(plan_async(g, Conv::cost(args), context).shape, [&]<int Shape>() {
    launch(context, async_grid<Shape>(g), conv_implicit_gemm_async<Shape>, g, packed);
  });
}

const Rung<Conv> self{{.name = "implicit_gemm_async",
                       .step = 65,
                       .after = "implicit_gemm",
                       .backend = device_backend,
                       .supports = supports,
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
