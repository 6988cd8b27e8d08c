// SPDX-License-Identifier: Apache-2.0
// conv / implicit GEMM
//
// Idea     the product of im2col_gemm without its second matrix: what a block needs of it for a
//          step of 8 terms is gathered from x into shared memory, padding as zeros. A block makes
//          64 or 128 filters by as many pixels - of all images, so that small ones fill a tile too
//          -, a thread 4 x 4 or 8 x 8 of them in registers. Of a layer of few tiles blocks share
//          the terms, and a second kernel adds their sums in a fixed order.
// Changes  against im2col_gemm: nothing is materialized; every type, layout, group and stride.
// Cost     per multiply-add 1/64 of a load of x and of w. Where a term lies is decoded once per
//          block; an element of x then costs three additions and comparisons of places.
// Limits   extents of up to 2^28. Loads of single elements. Groups of few filters fill 1 row in 16.
// Tried    -
// Source   S. Chetlur et al., cuDNN: Efficient primitives for deep learning, 2014.
#include "rung/ops/conv/shared/cuda/implicit.hpp"
#include "rung/ops/conv/shared/layer.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

template <class T, class S>
__global__ void __launch_bounds__(block_threads) conv_implicit_gemm(Gathered g, TermSlices slices) {
  gathered_tile<T, S>(g, slices);
}

template <class T>
__global__ void __launch_bounds__(sum_threads)
    conv_implicit_gemm_add_slices(Gathered g, const Accumulator<T>* sums, TermSlices slices) {
  finish_slices<T>(g, sums, slices);
}

Support supports(const Conv::Args& args, const Context&) {
  return supports_gathered(conv_layer::forward(args), 16, 64);
}

double estimate(const Conv::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  // Rows of a tile that no filter is for.
  const double filters = static_cast<double>(g.group_filters());
  const double rows =
      filters <= 16 ? 16 : 64 * static_cast<double>(ceil_div(g.group_filters(), 64));
  // With few filters a tile is gathered for longer than it is multiplied (f32, of an H100's SM).
  const double pixels = static_cast<double>(g.images * g.axis[0].out * g.axis[1].out) *
                        static_cast<double>(g.axis[2].out);
  const double tiles = pixels / 64 * std::ceil(filters / 64) * static_cast<double>(g.groups);
  const double terms = static_cast<double>(g.group_channels() * g.taps());
  const double gathering =
      tiles / static_cast<double>(context.info().sms) * (1.2e-6 + 0.02e-6 * terms);
  return larger(larger(estimate_seconds(Conv::cost(args), {.peak = 0.5 * filters / rows}, context),
                       waiting_seconds(conv_layer::forward(args), context)),
                gathering);
}

void run(const Conv::Args& args, Context& context) {
  const Gathered g = conv_layer::forward(args);
  visit<float, double, f16, bf16>(g.dtype, [&]<class T>() {
    with_tile<T>(g, [&]<class S>() {
      const TermSlices slices = slices_of(g, tile_size(g));
      with_slices<T>(g, slices, context, conv_implicit_gemm_add_slices<T>,
                     [&](const Gathered& layer) {
                       launch(context, tile_grid<S>(g, slices, sizeof(Strips<Accumulator<T>, S>)),
                              conv_implicit_gemm<T, S>, layer, slices);
                     });
    });
  });
}

const Rung<Conv> self{{.name = "implicit_gemm",
                       .step = 60,
                       .after = "im2col_gemm",
                       .backend = device_backend,
                       .supports = supports,
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
