// SPDX-License-Identifier: Apache-2.0
// softmax_backward's arguments as the rungs see them, and its interface to the workbench. The
// contract is in rung/ops/softmax_backward/softmax_backward.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/rows.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/softmax_backward/softmax_backward.hpp"

namespace rung {

struct RUNG_API SoftmaxBackward {
  static constexpr std::string_view name = "softmax_backward";
  static constexpr std::string_view summary =
      "dx = s (dy - sum dy y) y, the gradient of softmax, and of its logarithm";
  static constexpr std::string_view problem_help =
      "TYPE SHAPE[,options]: f32 4096x4096   bf16 65536x1024,log   f32 8x64x32,axis=1\n"
      "options: axis=N (default -1, the last), log, scale=X, in_place (dx is dy),\n"
      "         out=f16|bf16 (from f32), special (values of y: rows with NaN and infinities)";

  template <class In, class Out>
  struct CallOf {
    In y = {};
    In dy = {};
    Out dx = {};
    int axis = -1;  // in Args counted from the front
    double scale = 1.0;
    bool log = false;
    bool operator==(const CallOf&) const = default;
  };
  using Call = CallOf<ConstTensorRef, TensorRef>;

  /// Checked arguments, with all tensors collapsed to rows along the axis.
  struct Args : Call {
    Rows<3> rows;  // of y, dy and dx

    [[nodiscard]] std::int64_t length() const { return rows.length; }
    [[nodiscard]] std::int64_t count() const { return rows.count(); }
    [[nodiscard]] bool empty() const { return rows.length == 0 || rows.count() == 0; }
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.y, "y"), in(call.dy, "dy"), out(call.dx, "dx").may_be("dy", "y"));
  }
  static RungList<SoftmaxBackward>& rungs();
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
