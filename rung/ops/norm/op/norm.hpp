// SPDX-License-Identifier: Apache-2.0
// norm's arguments as the rungs see them, and its interface to the workbench. The contract is in
// rung/ops/norm/norm.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/core/collapse.hpp"
#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/norm/norm.hpp"

namespace rung {

struct RUNG_API Norm {
  static constexpr std::string_view name = "norm";
  static constexpr std::string_view summary = "y = (x + residual - mean) rstd gamma + beta";
  static constexpr std::string_view problem_help =
      "TYPE SHAPE[,options]: f32 4096x4096,gamma,beta   bf16 8x512x1024,rms,gamma,residual,sum\n"
      "options: rms (default: layer norm), axis=N (first normalized axis, default -1), axes=N "
      "(how\n"
      "         many, default 1), eps=X (default 1e-5), gamma, beta, f32_weights (f16 and bf16),\n"
      "         residual, sum, stats (mean and rstd too), in_place (y is x), in_place_sum (sum is\n"
      "         residual), offset=X, spread=X (values of x: around offset)";

  template <class In, class Out>
  struct CallOf {
    NormKind kind = NormKind::layer;
    int axis = -1;
    int axes = 1;
    double epsilon = 1e-5;
    In x = {};
    In residual = {};  // this and all below except y: optional
    Out y = {};
    Out sum = {};
    In gamma = {};
    In beta = {};
    Out mean = {};
    Out rstd = {};
    bool operator==(const CallOf&) const = default;
  };
  using Call = CallOf<ConstTensorRef, TensorRef>;

  /// Checked arguments. Every tensor is spread over x's shape with stride 0, so that they share one
  /// set of axes; `normalized` is the set of normalized ones. Absent tensors have no data.
  struct Args : Call {
    AxisSet normalized = 0;

    [[nodiscard]] bool is(AxisSet set, int at) const { return (set >> at & 1) != 0; }
    [[nodiscard]] std::int64_t extent(AxisSet set) const {
      std::int64_t product = 1;
      for (int at = 0; at < x.rank(); ++at) {
        if (is(set, at)) product *= x.shape[at];
      }
      return product;
    }
    [[nodiscard]] std::int64_t rows() const { return extent(~normalized); }
    [[nodiscard]] std::int64_t columns() const { return extent(normalized); }
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.x, "x"), optional_in(call.residual, "residual"), optional_in(call.gamma, "gamma"),
          optional_in(call.beta, "beta"), out(call.y, "y").may_be("x", "residual"),
          optional_out(call.sum, "sum").may_be("x", "residual"), optional_out(call.mean, "mean"),
          optional_out(call.rstd, "rstd"));
  }
  static RungList<Norm>& rungs();
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
