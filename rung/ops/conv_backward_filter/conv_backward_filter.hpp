// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter: the gradient of conv with respect to its filters.
//
//   dw[k, c, t] = sum over images n and results o of dy[n, k, o] x[n, g C/G + c, o s - p + t d],
//                 g = k / (K/G)
//
// Shapes   dw: K x C/G x kh x kw, as conv's w was; x: N x C x H x W; dy: N x K x OH x OW, as conv's
//          y; also of one and three dimensions; channels_last as in conv, dw: K x kh x kw x C/G.
//          K or C 0: nothing is written; N 0: dw = 0. dy is the gradient of what comes before bias
//          and activation; that of the bias is the sum of dy over N and the image (reduce).
// Options  strides, paddings, dilations, groups and channels_last as they were given to conv.
// Strides  any, zero (broadcast) in what is read too; dw must not overlap itself.
// Types    x, dy, dw: one of f32, f64, f16, bf16. Sums are kept in f32, f64 for f64.
// Aliasing dw overlaps nothing else. Overlap is decided by address ranges, from the lowest to the
//          highest byte that a tensor touches, so that tensors whose elements interleave are
//          refused.
// Accuracy |error| <= (n + 3) u sum |dy x|, n the results of all images per filter, u the unit
//          roundoff of the arithmetic, plus one rounding to dw's type; twice that where tensor
//          cores add. Sums are cut into slices, so that n counts as n / slices + slices in
//          practice.
// NaN      and infinities of x spread to the taps that meet them, and no further. Padding is zero,
//          or left out: taps that meet it for an infinite dy may be NaN or not.
// Repeats  the same bits from run to run and, where dy is finite, for any number of threads.
// Errors   Error(invalid_argument) for shapes, types, options, aliasing.
// Source   the chain rule.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/ops/conv/conv.hpp"

namespace rung {

struct ConvBackwardFilterOptions {
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
  bool operator==(const ConvBackwardFilterOptions&) const = default;
};

struct RUNG_API ConvBackwardFilter {
  static constexpr std::string_view name = "conv_backward_filter";
  static constexpr std::string_view summary =
      "dw = dy * x over images and pixels, the gradient of conv's w";
  static constexpr std::string_view problem_help =
      "TYPE NxCxHxW[,options], of conv's x: f32 32x64x56x56,out=64,k=3,p=1\n"
      "options: out=K (filters, default C), k, s, p, d (filter, stride, padding, dilation: N for\n"
      "         all axes, or as in 3x2; default 3, 1, 0, 1), g=G (groups), nhwc (channels last)";

  struct Call {
    ConstTensorRef x = {};
    ConstTensorRef dy = {};
    TensorRef dw = {};
    ConvBackwardFilterOptions options = {};
    bool operator==(const Call&) const = default;
  };

  /// x, dy and dw have five axes, as in Conv::Args.
  struct Args : Call {
    ConvGeometry geometry;
    int axes = 0;  // that the caller's tensors had
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.x, "x"), in(call.dy, "dy"), out(call.dw, "dw"));
  }
  static RungList<ConvBackwardFilter>& rungs();
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

RUNG_API void conv_backward_filter(Context& context, const ConstTensorRef& x,
                                   const ConstTensorRef& dy, const TensorRef& dw,
                                   const ConvBackwardFilterOptions& options = {}, Pick pick = best);

}  // namespace rung
