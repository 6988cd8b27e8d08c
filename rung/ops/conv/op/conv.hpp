// SPDX-License-Identifier: Apache-2.0
// Arguments that the rungs of conv() get, and the workbench's view of the operator. The contract:
// conv.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/conv/conv.hpp"
#include "rung/ops/conv/shared/window.hpp"

namespace rung {

struct RUNG_API Conv {
  static constexpr std::string_view name = "conv";
  static constexpr std::string_view summary = "y = act(w * x + bias), the convolution layer";
  static constexpr std::string_view problem_help =
      "TYPE NxCxHxW[,options]: f32 32x64x56x56,out=64,k=3,p=1   f16 8x64x56x56,k=1,nhwc\n"
      "      also NxCxW and NxCxDxHxW\n"
      "options: out=K (filters, default C), k, s, p, d (filter, stride, padding, dilation: N for\n"
      "         all axes, or as in 3x2; default 3, 1, 0, 1), g=G (groups), nhwc (channels last),\n"
      "         bias, relu | gelu | sigmoid | tanh, winograd";

  struct Call {
    ConstTensorRef x = {};
    ConstTensorRef w = {};
    TensorRef y = {};
    ConvOptions options = {};
    bool operator==(const Call&) const = default;
  };

  /// x, w and y have five axes, whatever the caller's rank: N C D H W, K C/G D H W and N K D H W.
  struct Args : Call {
    ConvGeometry geometry;
    int axes = 0;  // rank of the caller's tensors

    [[nodiscard]] bool has_bias() const { return options.bias.data != nullptr; }
    /// Returns the number of terms per element of y.
    [[nodiscard]] std::int64_t terms() const { return geometry.group_channels() * geometry.taps(); }
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.x, "x"), in(call.w, "w"), optional_in(call.options.bias, "bias"),
          out(call.y, "y"));
  }
  static RungList<Conv>& rungs();
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
