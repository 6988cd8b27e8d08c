// SPDX-License-Identifier: Apache-2.0
// Arguments of elementwise() as rungs receive them, and the operator's interface to the workbench.
// The contract: elementwise.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/core/collapse.hpp"
#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/elementwise/elementwise.hpp"

namespace rung {

struct RUNG_API Elementwise {
  static constexpr std::string_view name = "elementwise";
  static constexpr std::string_view summary = "z = f(x, y, w), element by element";
  static constexpr std::string_view problem_help =
      "TYPE SHAPE,FUNCTION[,options]: f32 4096x4096,add   bf16 1048576,gelu   f32 "
      "64x100,add,y=row\n"
      "functions: add, sub, mul, div, axpy, fma, relu, sigmoid, tanh, gelu, exp, silu,\n"
      "           sign; default add\n"
      "options: x=, y=, w= row | column | scalar | a shape (an operand that is broadcast),\n"
      "         alpha=X (axpy), in_place (z is x)";

  template <class In, class Out>
  struct CallOf {
    std::array<In, 3> in = {};  // x, y, w; operands beyond the arity are not given
    Out z = {};
    ElementwiseFunction function = ElementwiseFunction::add;
    double alpha = 1.0;
    bool operator==(const CallOf&) const = default;
  };
  using Call = CallOf<ConstTensorRef, TensorRef>;

  /// Validated arguments: the operands have z's shape, with stride 0 where they repeat.
  struct Args : Call {
    /// Axes of z, x, y and w (in this order), merged as far as possible; the axis along which z is
    /// densest is last. Strides of unused operands are 0.
    Collapsed<4> layout;

    [[nodiscard]] int arity() const { return rung::arity(function); }
    [[nodiscard]] std::int64_t size() const { return layout.size(); }
    /// Returns whether element i of every tensor is the i-th in memory: contiguous, no
    /// broadcasting.
    [[nodiscard]] bool flat() const {
      bool contiguous = layout.is_contiguous<0>() && layout.is_contiguous<1>();
      if (arity() > 1) contiguous = contiguous && layout.is_contiguous<2>();
      if (arity() > 2) contiguous = contiguous && layout.is_contiguous<3>();
      return contiguous;
    }
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(optional_in(call.in[0], "x"), optional_in(call.in[1], "y"), optional_in(call.in[2], "w"),
          out(call.z, "z").may_be("x", "y", "w"));
  }
  static RungList<Elementwise>& rungs();
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
