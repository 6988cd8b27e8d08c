// SPDX-License-Identifier: Apache-2.0
// Arguments of optimizer() as rungs receive them, and the operator's interface to the workbench.
// The contract: optimizer.hpp.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "rung/core/collapse.hpp"
#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/optimizer/optimizer.hpp"

namespace rung {

struct RUNG_API Optimizer {
  static constexpr std::string_view name = "optimizer";
  static constexpr std::string_view summary = "a step of SGD or Adam over all parameters";
  static constexpr std::string_view counters[] = {"step"};  // no choice depends on it
  static constexpr std::string_view problem_help =
      "TYPE SHAPE[,options]: f32 16777216,momentum=0.9   bf16 1048576,adam,master,clip=1\n"
      "options: adam (default: sgd), momentum=X, nesterov, decay=X, decoupled, step=N, clip=X\n"
      "         (max_norm), master (f16, bf16), norm";

  struct Call {
    TensorRef parameters = {};
    ConstTensorRef gradients = {};
    OptimizerOptions options = {};
    bool operator==(const Call&) const = default;
  };

  enum ElementTensor : int {
    element_parameters,
    element_gradients,
    element_first,
    element_second,
    element_master
  };
  struct Args : Call {
    /// Axes of all tensors, merged as far as possible; a missing tensor has the parameters'
    /// strides.
    Collapsed<5> elements;

    [[nodiscard]] bool needs_norm() const {
      return options.max_norm > 0 || options.norm.data != nullptr;
    }
    [[nodiscard]] bool flat() const {
      return elements.is_contiguous<0>() && elements.is_contiguous<1>() &&
             elements.is_contiguous<2>() && elements.is_contiguous<3>() &&
             elements.is_contiguous<4>();
    }
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(out(call.parameters, "parameters"), in(call.gradients, "gradients"),
          optional_out(call.options.first_moment, "first_moment"),
          optional_out(call.options.second_moment, "second_moment"),
          optional_out(call.options.master, "master"), optional_out(call.options.norm, "norm"));
  }
  static RungList<Optimizer>& rungs();
  static void bind(Args& args);

  static Cost cost(const Args& args);
  /// Computes reference results. The oracle's magnitudes are optimizer.hpp's bounds: tolerance()
  /// multiplies them by 1.
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
