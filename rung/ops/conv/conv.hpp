// SPDX-License-Identifier: Apache-2.0
// conv: the convolution layer of neural networks, with bias and activation.
//
//   y[n, k, o] = act(bias[k] + sum over channels c of k's group and taps t of
//                    w[k, c, t] x[n, g C/G + c, o s - p + t d]),   g = k / (K/G)
//
// in one, two or three dimensions: o, t, s (stride), p (padding), d (dilation) have an entry per
// axis of the image. It is a cross-correlation, as in all frameworks: the filter is not flipped.
// Taps outside of the image count as zero.
//
// Shapes   x: N x C x W, N x C x H x W or N x C x D x H x W, extents of an image from 1 to
//          2^31 - 1; w: K x C/G x its extents; y: N x K x its extents as convolved_extent() gives
//          them, PyTorch's formula; bias: K. channels_last: N x ... x C, K x ... x C/G and
//          N x ... x K. groups G divides C and K; G = C is the depthwise layer. N or K 0: nothing
//          is written. C 0: y = act(bias).
// Options  of the axes that the image has; those of the others must keep their defaults.
// Strides  any, zero (broadcast) in what is read too; y must not overlap itself.
// Types    x, w, y, bias: one of f32, f64, f16, bf16. Sums are kept in f32, f64 for f64.
// Aliasing y overlaps nothing else. Overlap is decided by address ranges, from the lowest to the
//          highest byte that a tensor touches, so that tensors whose elements interleave are
//          refused.
// Accuracy |error| <= (n + 3) u (sum |w x| + |bias|), n = C/G times the taps of a filter, u the
//          unit roundoff of the arithmetic, plus one rounding to y's type; twice that where tensor
//          cores add (f16, bf16), for they truncate. Activations add a few units in the last place,
//          as in gemm. With `winograd`, layers of 3 x 3, stride 1, dilation 1 may be transformed,
//          and rounding errors then come from the whole tile of a pixel:
//            |error| <= (C/G + 24) u 3000 sum over c of max |w[k, c]| max |x[n, c]|,
//          the maximum of x over 5 pixels around. That is the worst case of F(4x4, 3x3); ordinary
//          numbers lose some four bits.
// NaN      and infinities of x spread to the pixels whose filters have a tap there, and no further;
//          with `winograd` to their tiles. Padding is zero, or left out: pixels whose tap of an
//          infinite weight is there may be NaN or not.
// Zeros    a sum whose products are zeros, or that has none, is +0, with a bias of -0 too, before
//          the activation. One that underflows may be either zero.
// Repeats  the same bits from run to run and, where weights are finite, for any number of threads.
// Scratch  see docs/reliability.md: on a CPU at most three times the tensors' bytes (with
//          `winograd` four), 32 MiB, and 32 MiB per thread.
// Errors   Error(invalid_argument) for shapes, types, options, aliasing.
// Source   PyTorch, torch.nn.Conv1d to Conv3d; V. Dumoulin & F. Visin, A guide to convolution
//          arithmetic for deep learning, 2016; A. Lavin & S. Gray, Fast algorithms for
//          convolutional neural networks, 2015.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/core/activation.hpp"
#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/conv/window.hpp"

namespace rung {

struct ConvOptions {
  int stride_depth = 1;        // filter step along the depth, of volumes
  int stride_height = 1;       // filter step along the height
  int stride_width = 1;        // filter step along the width
  int padding_depth = 0;       // zeros at both ends of the depth
  int padding_height = 0;      // zeros at both ends of the height
  int padding_width = 0;       // zeros at both ends of the width
  int dilation_depth = 1;      // distance between taps along the depth; 1: neighbors
  int dilation_height = 1;     // distance between taps along the height; 1: neighbors
  int dilation_width = 1;      // distance between taps along the width; 1: neighbors
  int groups = 1;              // G: channels and filters form as many independent groups
  bool channels_last = false;  // N x H x W x C
  bool winograd = false;       // may lose digits, see Accuracy
  ConstTensorRef bias = {};
  Activation activation = Activation::none;
  bool operator==(const ConvOptions&) const = default;
};

struct RUNG_API Conv {
  static constexpr std::string_view name = "conv";
  static constexpr std::string_view summary = "y = act(w * x + bias), the convolution layer";
  static constexpr std::string_view problem_help =
      "TYPE NxCxHxW[,options]: f32 32x64x56x56,out=64,k=3,p=1   f16 8x64x56x56,k=1,nhwc\n"
      "      also NxCxW and NxCxDxHxW\n"
      "options: out=K (filters, default C), k, s, p, d (filter, stride, padding, dilation: N for\n"
      "         all axes, or as in 3x2; default 3, 1, 0, 1), g=G (groups), nhwc (channels last),\n"
      "         bias, relu | gelu | sigmoid | tanh, winograd";

  struct Call {
    ConstTensorRef x = {};
    ConstTensorRef w = {};
    TensorRef y = {};
    ConvOptions options = {};
    bool operator==(const Call&) const = default;
  };

  /// x, w and y have five axes: N C D H W, K C/G D H W and N K D H W, whichever they had.
  struct Args : Call {
    ConvGeometry geometry;
    int axes = 0;  // that the caller's tensors had

    [[nodiscard]] bool has_bias() const { return options.bias.data != nullptr; }
    /// Terms of an element of y.
    [[nodiscard]] std::int64_t terms() const { return geometry.group_channels() * geometry.taps(); }
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.x, "x"), in(call.w, "w"), optional_in(call.options.bias, "bias"),
          out(call.y, "y"));
  }
  static RungList<Conv>& rungs();
  static void bind(Args& args);

  static Cost cost(const Args& args);
  static void reference(const Args& args, Oracle& oracle);
  static Tolerance tolerance(const Args& args, const RungInfo& rung, Values values);
  static std::vector<Problem> check_problems(Backend backend);
  static std::vector<Problem> bench_problems(Backend backend);
  static Call make(const Problem& problem, Inputs& inputs);
  static std::span<const ArgumentSpec> arguments();
  static void invoke(Context& context, Invocation& invocation, Pick pick);
};

RUNG_API void conv(Context& context, const ConstTensorRef& x, const ConstTensorRef& w,
                   const TensorRef& y, const ConvOptions& options = {}, Pick pick = best);

/// How many places a filter has along an axis of x: the extent of y. Throws Error(invalid_argument)
/// where there is none.
RUNG_API std::int64_t convolved_extent(std::int64_t extent, std::int64_t kernel, int stride = 1,
                                       int padding = 0, int dilation = 1);

}  // namespace rung
