// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / implicit GEMM
//
// Idea     the gradient is a convolution of dy, by filters whose channels and numbers have changed
//          places, so that conv's tiles make it: 64 or 128 channels of dx by as many of its pixels,
//          dy gathered into shared memory.
// Changes  against gather: an element of dy or w is loaded once per tile, not once per
//          multiply-add.
// Cost     per multiply-add 1/64 of a load of dy and of w. The blocks of a strided layer
//          share its phases - the places of one i mod s, whose taps are the same - so that no zeros
//          are multiplied for those between.
// Limits   extents of up to 2^28, 65535 phases. Loads of single elements.
// Source   V. Dumoulin & F. Visin, A guide to convolution arithmetic for deep learning, 2016.
#include "rung/ops/conv_backward_data/cuda/020_implicit_gemm.cuh"

#include "rung/cpu/split.hpp"  // types: float double f16 bf16

namespace rung::conv_cuda::inline RUNG_TARGET {
namespace conv_backward_data {

/// Compiled with its kernels in T's part of this file.
template <class T>
void multiply(const Gathered& g, Context& context);
template <>
void multiply<RUNG_SPLIT_TYPE>(const Gathered& g, Context& context) {
  is_divided(g) ? multiply_gathered<RUNG_SPLIT_TYPE, true>(g, context)
                : multiply_gathered<RUNG_SPLIT_TYPE, false>(g, context);
}

}  // namespace conv_backward_data
}  // namespace rung::conv_cuda::inline RUNG_TARGET

#if RUNG_SPLIT_ONCE
namespace rung {
namespace {

using namespace conv_cuda;

Support supports(const ConvBackwardData::Args& args, const Context&) {
  return supports_gathered(conv_layer::transposed(args), 16, 64);
}

double estimate(const ConvBackwardData::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  const double channels = static_cast<double>(g.group_channels());
  const bool few = channels <= 16;
  const double rows = few ? 16 : 64 * static_cast<double>(ceil_div(g.group_channels(), 64));
  // Tiles of 16 rows load more for each product.
  return larger(estimate_seconds(conv_layer::phase_cost(args),
                                 {.peak = (few ? 0.11 : 0.32) * channels / rows}, context),
                waiting_seconds(conv_layer::transposed(args), context));
}

void run(const ConvBackwardData::Args& args, Context& context) {
  const Gathered g = conv_layer::transposed(args);
  visit<float, double, f16, bf16>(
      g.dtype, [&]<class T>() { conv_cuda::conv_backward_data::multiply<T>(g, context); });
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
#endif  // RUNG_SPLIT_ONCE
