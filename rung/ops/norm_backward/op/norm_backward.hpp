// SPDX-License-Identifier: Apache-2.0
// norm_backward's arguments as the rungs see them, and its interface to the workbench. The contract
// is in rung/ops/norm_backward/norm_backward.hpp.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/norm/op/norm.hpp"
#include "rung/ops/norm_backward/norm_backward.hpp"

namespace rung {

struct RUNG_API NormBackward {
  static constexpr std::string_view name = "norm_backward";
  static constexpr std::string_view summary = "dx = rstd (g - mean(g) - z mean(g z)), g = dy gamma";
  static constexpr std::string_view problem_help =
      "TYPE SHAPE[,options]: f32 4096x4096,gamma,weights,stats   bf16 8x512x1024,rms,gamma\n"
      "options: rms (default: layer norm), axis=N, axes=N, eps=X, gamma, f32_weights (f16, bf16),\n"
      "         weights (dgamma and dbeta too), stats (mean and rstd are given, not computed\n"
      "         again), in_place (dx is dy), offset=X (values of x: around X)";

  template <class In, class Out>
  struct CallOf {
    NormKind kind = NormKind::layer;
    int axis = -1;
    int axes = 1;
    double epsilon = 1e-5;
    In x = {};
    In dy = {};
    Out dx = {};
    In gamma = {};  // this and all below: optional
    In mean = {};
    In rstd = {};
    Out dgamma = {};
    Out dbeta = {};
    bool operator==(const CallOf&) const = default;
  };
  using Call = CallOf<ConstTensorRef, TensorRef>;

  /// Checked arguments. Every tensor is spread over x's shape with stride 0. Absent tensors have no
  /// data.
  struct Args : Call {
    AxisSet normalized = 0;
  };

  /// Indices of the tensors in Lines: rows are the other axes, columns the normalized ones.
  enum RowTensor : int { row_x, row_dy, row_dx, row_mean, row_rstd };
  enum ColumnTensor : int {
    column_x,
    column_dy,
    column_dx,
    column_gamma,
    column_dgamma,
    column_dbeta
  };
  struct Lines {
    Collapsed<5> rows;
    Collapsed<6> columns;
    /// Returns whether rows of x, dy and dx are contiguous, and gamma, dgamma and dbeta, too.
    [[nodiscard]] bool contiguous_columns() const;
  };
  static Lines lines_of(const Args& args);

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.dy, "dy"), in(call.x, "x"), optional_in(call.gamma, "gamma"),
          optional_in(call.mean, "mean"), optional_in(call.rstd, "rstd"),
          out(call.dx, "dx").may_be("dy", "x"), optional_out(call.dgamma, "dgamma"),
          optional_out(call.dbeta, "dbeta"));
  }
  static RungList<NormBackward>& rungs();
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
