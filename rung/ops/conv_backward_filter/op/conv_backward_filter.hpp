// SPDX-License-Identifier: Apache-2.0
// Arguments that the rungs of conv_backward_filter() get, and the workbench's view of the operator.
// The contract: conv_backward_filter.hpp.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/conv/op/conv.hpp"
#include "rung/ops/conv_backward_filter/conv_backward_filter.hpp"

namespace rung {

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
    int axes = 0;  // rank of the caller's tensors
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
  static Problem describe(const Call& call);
  static std::span<const ArgumentSpec> arguments();
  static void invoke(Context& context, Invocation& invocation, Pick pick);
};

}  // namespace rung
