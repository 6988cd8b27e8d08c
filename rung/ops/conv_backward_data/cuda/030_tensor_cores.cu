// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / tensor cores
//
// Idea     the gradient as a convolution of dy by conv's tensor-core tiles, for f16 and bf16 with
//          channels last. Eight filters of a result are 16 contiguous bytes of dy; w is contiguous
//          along the channels of dx, the other way, so that its strips are in shared memory by
//          terms, and ldmatrix transposes them as it loads registers.
// Changes  against implicit_gemm: 16-byte loads, each decoded once for 8 terms; sums of 2048
//          multiply-adds per instruction; half the bytes.
// Cost     128 places x 64 channels per block, 32 terms per step; the blocks of a strided
//          layer share its phases, whose terms all meet results.
// Limits   contiguous channels and filters, multiples of 8 per group, all 16-byte aligned. Tensor
//          cores truncate when they add: twice the error bound of f32.
// Tried    -
// Source   PTX ISA, "Matrix load instruction: ldmatrix", .trans.
#include "rung/ops/conv/shared/cuda/implicit.hpp"
#include "rung/ops/conv/shared/cuda/tensor_tiles.hpp"
#include "rung/ops/conv_backward_data/op/layer.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

template <class T>
struct PhasedStrips {
  TensorStrips<T> strips;  // where tensor_tile() has them
  PhasePlace phase;
};

template <class T, bool Phases>
__global__ void __launch_bounds__(block_threads)
    conv_backward_data_tensor_cores(Gathered g, TermSlices slices) {
  if constexpr (Phases) {
    auto& place = shared<PhasedStrips<T>>().phase;
    tensor_tile<T, true>(phase_of_block<T>(g, place, slices), slices);
  } else {
    tensor_tile<T, true>(g, slices);
  }
}

template <class T>
__global__ void __launch_bounds__(sum_threads)
    conv_backward_data_tensor_cores_add_slices(Gathered g, const Accumulator<T>* sums,
                                               TermSlices slices) {
  finish_slices<T>(g, sums, slices);
}

Support supports(const ConvBackwardData::Args& args, const Context&) {
  if (size_of(args.dx.dtype) != 2) return unsupported("f16 and bf16");
  const ConvGeometry& g = args.geometry;
  const bool wide = g.group_filters() >= chunk && g.group_channels() >= chunk;
  if (!wide || !in_eights(args.dy, g.group_filters()) || !in_eights(args.w, g.group_channels())) {
    return unsupported("contiguous channels and filters, in multiples of 8, aligned to 16 bytes");
  }
  return supports_tensor_tiles(conv_layer::transposed(args));
}

double estimate(const ConvBackwardData::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  const auto channels = static_cast<double>(g.group_channels());
  const double rows = static_cast<double>(round_up(g.group_channels(), std::int64_t{tile_filters}));
  // However few tiles there are, a block waits for its strips of terms, one after another.
  const auto slices = static_cast<double>(tensor_slices(conv_layer::transposed(args)).count);
  const double waiting =
      6e-6 + (slices > 1 ? 3e-6 : 0) + 0.023e-6 * conv_layer::terms_in_a_row(args) / slices;
  return larger(
      estimate_seconds(conv_layer::phase_cost(args), {.peak = 1.4 * channels / rows}, context),
      waiting);
}

void run(const ConvBackwardData::Args& args, Context& context) {
  const Gathered g = conv_layer::transposed(args);
  const TermSlices slices = tensor_slices(g);
  visit<f16, bf16>(args.dx.dtype, [&]<class T>() {
    LaunchShape shape = tensor_grid<T>(g, slices);
    if (is_divided(g)) shape.shared_bytes = sizeof(PhasedStrips<T>);
    const auto multiply = is_divided(g) ? conv_backward_data_tensor_cores<T, true>
                                        : conv_backward_data_tensor_cores<T, false>;
    with_slices<T>(g, slices, context, conv_backward_data_tensor_cores_add_slices<T>,
                   [&](const Gathered& layer) { launch(context, shape, multiply, layer, slices); });
  });
}

const Rung<ConvBackwardData> self{{.name = "tensor_cores",
                                   .step = 30,
                                   .after = "implicit_gemm",
                                   .backend = device_backend,
                                   .supports = supports,
                                   .estimate = estimate,
                                   .run = run}};

}  // namespace
}  // namespace rung
