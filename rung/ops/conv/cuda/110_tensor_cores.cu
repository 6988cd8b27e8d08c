// SPDX-License-Identifier: Apache-2.0
// conv / tensor cores
//
// Idea     implicit_gemm on tensor cores, for f16 and bf16 with channels last: 8 channels of a tap
//          are 16 contiguous bytes of x and of w, so that strips of both are copied as they lie,
//          and a warp multiplies 16 x 8 x 16 elements by one instruction (mma.sync), its operands
//          brought by ldmatrix. Rows are pixels, columns filters: both have their terms contiguous.
// Changes  against implicit_gemm: 16-byte loads, each decoded once for 8 terms; sums of 2048
//          multiply-adds per instruction; half the bytes.
// Cost     128 pixels x 64 filters per block, 32 terms per step: per multiply-add 1/64 of an
//          element of x and 1/128 of one of w. The next step's loads are in flight in registers
//          while this one is multiplied.
// Limits   contiguous channels, a multiple of 8 per group, all 16-byte aligned; extents of up to
//          2^28. Tensor cores truncate when they add: twice the error bound of f32.
// Tried    -
// Source   PTX ISA, "Matrix multiply-accumulate operation using mma instruction".
#include "rung/ops/conv/shared/cuda/tensor_tiles.hpp"
#include "rung/ops/conv/shared/layer.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

template <class T>
__global__ void __launch_bounds__(block_threads) conv_tensor_cores(Gathered g, TermSlices slices) {
  tensor_tile<T, false>(g, slices);
}

template <class T>
__global__ void __launch_bounds__(sum_threads)
    conv_tensor_cores_add_slices(Gathered g, const Accumulator<T>* sums, TermSlices slices) {
  finish_slices<T>(g, sums, slices);
}

Support supports(const Conv::Args& args, const Context&) {
  if (size_of(args.x.dtype) != 2) return unsupported("f16 and bf16");
  const std::int64_t channels = args.geometry.group_channels();
  if (channels < chunk || !in_eights(args.x, channels) || !in_eights(args.w, channels)) {
    return unsupported("contiguous channels, in multiples of 8 and aligned to 16 bytes");
  }
  return supports_tensor_tiles(conv_layer::forward(args));
}

double estimate(const Conv::Args& args, const Context& context) {
  // Nominal rates are those of f32; tensor cores have some fifteen times as much, of which this
  // reaches a third.
  const auto filters = static_cast<double>(args.geometry.group_filters());
  const double rows =
      static_cast<double>(round_up(args.geometry.group_filters(), std::int64_t{tile_filters}));
  // However few tiles there are, a block waits for its strips of terms, one after another.
  const auto slices = static_cast<double>(tensor_slices(conv_layer::forward(args)).count);
  const double waiting =
      6e-6 + (slices > 1 ? 3e-6 : 0) + 0.023e-6 * static_cast<double>(args.terms()) / slices;
  return larger(estimate_seconds(Conv::cost(args), {.peak = 5.0 * filters / rows}, context),
                waiting);
}

void run(const Conv::Args& args, Context& context) {
  const Gathered g = conv_layer::forward(args);
  const TermSlices slices = tensor_slices(g);
  visit<f16, bf16>(args.x.dtype, [&]<class T>() {
    with_slices<T>(g, slices, context, conv_tensor_cores_add_slices<T>, [&](const Gathered& layer) {
      launch(context, tensor_grid<T>(g, slices), conv_tensor_cores<T>, layer, slices);
    });
  });
}

const Rung<Conv> self{{.name = "tensor_cores",
                       .step = 110,
                       .after = "implicit_gemm",
                       .backend = device_backend,
                       .supports = supports,
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
