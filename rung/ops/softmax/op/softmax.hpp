// SPDX-License-Identifier: Apache-2.0
// softmax's arguments as the rungs see them, and its interface to the workbench. The contract is in
// rung/ops/softmax/softmax.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/rows.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/softmax/softmax.hpp"

namespace rung {

struct RUNG_API Softmax {
  static constexpr std::string_view name = "softmax";
  static constexpr std::string_view summary =
      "y = exp(s x) / sum exp(s x) along an axis, or its logarithm";
  static constexpr std::string_view problem_help =
      "TYPE SHAPE[,options]: f32 4096x4096   bf16 65536x1024,log   f32 8x64x32,axis=1\n"
      "options: axis=N (default -1, the last), log, scale=X, in_place, out=f32 (from f16 and "
      "bf16),\n"
      "         masked | special (values: elements and rows of -inf; rows with NaN and +inf)";

  template <class In, class Out>
  struct CallOf {
    In x = {};
    Out y = {};
    int axis = -1;  // in Args counted from the front
    double scale = 1.0;
    bool log = false;
    bool operator==(const CallOf&) const = default;
  };
  using Call = CallOf<ConstTensorRef, TensorRef>;

  /// Checked arguments, with all tensors collapsed to rows along the axis.
  struct Args : Call {
    Rows<2> rows;  // of x and y

    [[nodiscard]] std::int64_t length() const { return rows.length; }
    [[nodiscard]] std::int64_t count() const { return rows.count(); }
    [[nodiscard]] bool empty() const { return rows.length == 0 || rows.count() == 0; }
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.x, "x"), out(call.y, "y").may_be("x"));
  }
  static RungList<Softmax>& rungs();
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
