// SPDX-License-Identifier: Apache-2.0
// Arguments of transfer() as rungs receive them, and the operator's interface to the workbench.
// The contract: transfer.hpp.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/elementwise/op/elementwise.hpp"
#include "rung/ops/transfer/transfer.hpp"

namespace rung {

struct RUNG_API Transfer {
  static constexpr std::string_view name = "transfer";
  static constexpr std::string_view summary = "y = f(x), x and y in host memory, f on the GPU";
  static constexpr std::string_view problem_help =
      "TYPE SIZE,FUNCTION: f32 16777216,relu   bf16 4096x4096,gelu\n"
      "functions: relu, sigmoid, tanh, gelu, exp, silu, sign; default relu";

  template <class In, class Out>
  struct CallOf {
    In x = {};
    Out y = {};
    ElementwiseFunction function = ElementwiseFunction::relu;
    bool operator==(const CallOf&) const = default;
  };
  using Call = CallOf<ConstTensorRef, TensorRef>;
  struct Args : Call {};

  static constexpr bool operands_in_host_memory = true;
  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.x, "x"), out(call.y, "y").may_be("x"));
  }
  static RungList<Transfer>& rungs();
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
