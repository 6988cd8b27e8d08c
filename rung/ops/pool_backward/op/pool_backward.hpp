// SPDX-License-Identifier: Apache-2.0
// Arguments that the rungs of pool_backward() get, and the workbench's view of the operator. The
// contract: pool_backward.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/pool/op/pool.hpp"
#include "rung/ops/pool_backward/pool_backward.hpp"

namespace rung {

struct RUNG_API PoolBackward {
  static constexpr std::string_view name = "pool_backward";
  static constexpr std::string_view summary = "dx = sum over windows of dy times dy / dx of pool";
  static constexpr std::string_view problem_help =
      "TYPE NxCxHxW[,options]: f32 64x64x112x112,k=3,s=2,p=1   f16 8x64x56x56,average,k=2,nhwc\n"
      "options: max (default) | average | l2 | weighted, k=N or k=NxM (window, default 2),\n"
      "         s=N or NxM (stride, default k), p=N or NxM (padding), d=N or NxM (dilation), "
      "ceil,\n"
      "         valid (padding is not counted), nhwc (tensors are N x H x W x C), indices=i32";

  struct Call {
    ConstTensorRef dy = {};
    TensorRef dx = {};
    PoolBackwardOptions options = {};
    bool operator==(const Call&) const = default;
  };

  /// All tensors but weights have their axes in the order N, C, H, W, whatever the caller's order.
  struct Args : Call {
    PoolAxis rows;     // along H
    PoolAxis columns;  // along W

    [[nodiscard]] Pooling kind() const { return options.kind; }
    [[nodiscard]] std::int64_t images() const { return dx.shape[0]; }
    [[nodiscard]] std::int64_t channels() const { return dx.shape[1]; }
    [[nodiscard]] std::int64_t taps() const { return rows.kernel * columns.kernel; }
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.dy, "dy"), optional_in(call.options.indices, "indices"),
          optional_in(call.options.x, "x"), optional_in(call.options.y, "y"),
          optional_in(call.options.weights, "weights"), out(call.dx, "dx"));
  }
  static RungList<PoolBackward>& rungs();
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
