// SPDX-License-Identifier: Apache-2.0
// loss's arguments as the rungs see them, and its interface to the workbench. The contract is in
// rung/ops/loss/loss.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/rows.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/loss/loss.hpp"

namespace rung {

struct RUNG_API Loss {
  static constexpr std::string_view name = "loss";
  static constexpr std::string_view summary =
      "mean of -sum q log softmax(x), of hinge or squared error, and its gradient";
  static constexpr std::string_view problem_help =
      "TYPE SHAPE[,options]: f32 4096x1000   bf16 512x32000,smoothing=0.1   f32 64x10,hinge,sum\n"
      "options: hinge | squared (default: cross entropy), axis=N (of the classes; default -1),\n"
      "         sum (default: mean), smoothing=X, margin=X, labels=i32, losses (of each row),\n"
      "         forward (no gradient), in_place (dx is x), ignored (every fourth label or so),\n"
      "         wrong (some labels are no class), masked (values: elements of -inf)";

  struct Call {
    ConstTensorRef x = {};
    ConstTensorRef target = {};
    TensorRef result = {};
    LossOptions options = {};
    bool operator==(const Call&) const = default;
  };

  /// Indices of the tensors in Args::rows.
  enum RowTensor : int { row_x, row_dx, row_target, row_losses };
  struct Args : Call {
    Rows<4> rows;  // absent tensors move with x; labels and losses have step 0 within a row

    [[nodiscard]] std::int64_t classes() const { return rows.length; }
    [[nodiscard]] std::int64_t count() const { return rows.count(); }
    [[nodiscard]] bool labeled() const { return options.kind != LossKind::squared; }
    [[nodiscard]] bool ignores() const { return labeled() && options.ignored_label != no_label; }
    /// Returns whether rows of x and target are contiguous.
    [[nodiscard]] bool reads_contiguous() const {
      return rows.length == 1 ||
             (rows.steps[row_x] == 1 && (labeled() || rows.steps[row_target] == 1));
    }
    /// Returns whether rows of dx, or of x if dx is absent, are contiguous.
    [[nodiscard]] bool writes_contiguous() const {
      return rows.length == 1 || rows.steps[row_dx] == 1;
    }
    [[nodiscard]] bool contiguous() const { return reads_contiguous() && writes_contiguous(); }
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.x, "x"), in(call.target, "target"), out(call.result, "result"),
          optional_out(call.options.losses, "losses"),
          optional_out(call.options.dx, "dx").may_be("x"));
  }
  static RungList<Loss>& rungs();
  static void bind(Args& args);

  static Cost cost(const Args& args);
  /// Stores error bounds of the contract as magnitudes; tolerance() scales them by about 1.
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
