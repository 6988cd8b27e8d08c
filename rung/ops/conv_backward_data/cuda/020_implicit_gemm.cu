// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / implicit GEMM
//
// Idea     the gradient is a convolution of dy, by filters whose channels and numbers have changed
//          places, so that conv's tiles make it: 64 or 128 channels of dx by as many of its pixels,
//          dy gathered into shared memory.
// Changes  against gather: an element of dy or w is loaded once per tile, not once per
//          multiply-add.
// Cost     per multiply-add 1/64 of a load of dy and of w. With a stride of s, s^2 - 1 of s^2 terms
//          are zeros that are multiplied all the same, and each costs three divisions.
// Limits   extents of up to 2^28. Loads of single elements.
// Tried    -
// Source   V. Dumoulin & F. Visin, A guide to convolution arithmetic for deep learning, 2016.
#include "rung/ops/conv/cuda/detail/implicit.hpp"
#include "rung/ops/conv_backward_data/layer.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

template <class T, class S, bool Divided>
__global__ void __launch_bounds__(block_threads) conv_backward_data_implicit_gemm(Gathered g) {
  gathered_tile<T, S, Divided>(g);
}

Support supports(const ConvBackwardData::Args& args, const Context&) {
  return supports_gathered(conv_layer::transposed(args), 16, 64);
}

double estimate(const ConvBackwardData::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  Cost cost = ConvBackwardData::cost(args);
  cost.operations = 2 * static_cast<double>(args.dx.size()) *
                    static_cast<double>(g.group_filters()) * static_cast<double>(g.taps());
  const double channels = static_cast<double>(g.group_channels());
  const double rows =
      channels <= 16 ? 16 : 64 * static_cast<double>(ceil_div(g.group_channels(), 64));
  return estimate_seconds(cost, {.peak = 0.5 * channels / rows}, context);
}

void run(const ConvBackwardData::Args& args, Context& context) {
  const Gathered g = conv_layer::transposed(args);
  with_tile(g, [&]<class T, class S>() {
    launch(context, tile_grid<S>(g, sizeof(Strips<Accumulator<T>, S>)),
           is_divided(g) ? conv_backward_data_implicit_gemm<T, S, true>
                         : conv_backward_data_implicit_gemm<T, S, false>,
           g);
  });
}

const Rung<ConvBackwardData> self{{.name = "implicit_gemm",
                                   .step = 20,
                                   .after = "gather",
                                   .backend = device_backend,
                                   .supports = supports,
                                   .estimate = estimate,
                                   .run = run}};

}  // namespace
}  // namespace rung
