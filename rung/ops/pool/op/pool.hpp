// SPDX-License-Identifier: Apache-2.0
// Arguments that the rungs of pool() get, and the workbench's view of the operator. The contract:
// pool.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/pool/pool.hpp"
#include "rung/ops/pool/shared/window.hpp"

namespace rung {

struct RUNG_API Pool {
  static constexpr std::string_view name = "pool";
  static constexpr std::string_view summary =
      "y = max | average | l2 | weighted average of windows";
  static constexpr std::string_view problem_help =
      "TYPE NxCxHxW[,options]: f32 64x64x112x112,k=3,s=2,p=1   f16 8x64x56x56,average,k=2,nhwc\n"
      "options: max (default) | average | l2 | weighted, k=N or k=NxM (window, default 2),\n"
      "         s=N or NxM (stride, default k), p=N or NxM (padding), d=N or NxM (dilation), "
      "ceil,\n"
      "         valid (padding is not counted), nhwc (tensors are N x H x W x C), "
      "indices=i32|i64,\n"
      "         bias, relu | gelu | sigmoid | tanh, nan (values: NaN, infinities, many equal)";

  struct Call {
    ConstTensorRef x = {};
    TensorRef y = {};
    PoolOptions options = {};
    bool operator==(const Call&) const = default;
  };

  /// x, y and indices have their axes in the order N, C, H, W, whatever the caller's order.
  struct Args : Call {
    PoolAxis rows;     // along H
    PoolAxis columns;  // along W

    [[nodiscard]] Pooling kind() const { return options.kind; }
    [[nodiscard]] std::int64_t images() const { return y.shape[0]; }
    [[nodiscard]] std::int64_t channels() const { return y.shape[1]; }
    [[nodiscard]] std::int64_t taps() const { return rows.kernel * columns.kernel; }
    [[nodiscard]] bool has_indices() const { return options.indices.data != nullptr; }
    /// Returns whether a bias or an activation follows the reduction.
    [[nodiscard]] bool has_epilogue() const {
      return options.bias.data != nullptr || options.activation != Activation::none;
    }
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.x, "x"), optional_in(call.options.weights, "weights"),
          optional_in(call.options.bias, "bias"), out(call.y, "y"),
          optional_out(call.options.indices, "indices"));
  }
  static RungList<Pool>& rungs();
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
