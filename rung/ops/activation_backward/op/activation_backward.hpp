// SPDX-License-Identifier: Apache-2.0
// Arguments of activation_backward() as rungs receive them, and the workbench's interface.
// The contract: activation_backward.hpp.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "rung/core/collapse.hpp"
#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/activation_backward/activation_backward.hpp"

namespace rung {

struct RUNG_API ActivationBackward {
  static constexpr std::string_view name = "activation_backward";
  static constexpr std::string_view summary = "dx = dy f'(x), from x or y = f(x)";
  static constexpr std::string_view problem_help =
      "TYPE SHAPE,FUNCTION[,options]: f32 4096x4096,relu   bf16 1048576,gelu\n"
      "functions: sign, sigmoid, tanh, relu, gelu, silu; default relu\n"
      "options: in_place (dx is dy), over_saved (dx is saved), special (values: NaN, infinities\n"
      "         and zeros of saved and dy, in all pairs)";

  struct Call {
    ConstTensorRef saved = {};
    ConstTensorRef dy = {};
    TensorRef dx = {};
    ActivationFunction function = ActivationFunction::relu;
    bool operator==(const Call&) const = default;
  };

  enum ElementTensor : int { element_dx, element_saved, element_dy };
  struct Args : Call {
    /// Axes of all tensors, merged as far as possible; the axis along which dx is densest is last.
    Collapsed<3> elements;

    [[nodiscard]] bool flat() const {
      return elements.is_contiguous<0>() && elements.is_contiguous<1>() &&
             elements.is_contiguous<2>();
    }
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.saved, "saved"), in(call.dy, "dy"), out(call.dx, "dx").may_be("dy", "saved"));
  }
  static RungList<ActivationBackward>& rungs();
  static void bind(Args& args);

  static Cost cost(const Args& args);
  /// Computes reference results. The oracle's magnitudes are activation_backward.hpp's bounds:
  /// tolerance() multiplies them by 1.
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
