// SPDX-License-Identifier: Apache-2.0
// Interface of gemm() to its rungs and to the workbench: arguments, costs, problems.
// rung/ops/gemm/gemm.hpp states the contract.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/gemm/gemm.hpp"

namespace rung {

/// Type in which products of T are accumulated. Unsigned integers wrap on overflow.
template <class T>
using GemmSum = std::conditional_t<std::is_same_v<T, std::int8_t>, std::uint32_t, Accumulator<T>>;

/// Returns alpha or beta of a valid call, converted to the type of the sums.
template <class Sum>
constexpr Sum gemm_factor(double factor) {
  if constexpr (std::is_integral_v<Sum>) {
    return static_cast<Sum>(static_cast<std::int64_t>(factor));
  } else {
    return static_cast<Sum>(factor);
  }
}

/// Block size along k and n of the scale factors.
inline constexpr std::int64_t gemm_scale_block = 128;

struct RUNG_API Gemm {
  static constexpr std::string_view name = "gemm";
  static constexpr std::string_view summary =
      "C = act(alpha op(A) op(B) + beta C + bias) + residual";
  static constexpr std::string_view problem_help =
      "TYPE MxNxK[,options]: f32 1024x1024x1024   bf16 16x4096x4096   f32 512x512x512,ta,tb\n"
      "         e4m3 4096x4096x4096,tb,b=e5m2,scaled,out=f32   i8 512x512x512\n"
      "options: ta, tb (operand stored transposed), batch=N, alpha=X, beta=X, bias, bias_rows,\n"
      "         relu | gelu | sigmoid | tanh, residual, out=f32 (bf16 and f16 inputs), tf32, "
      "split;\n"
      "         of e4m3 and e5m2: b=TYPE (default A's), scaled (blocks), out=f32|f16|bf16 (bf16)";

  template <class In, class Out>
  struct CallOf {
    In a = {};
    In b = {};
    Out c = {};
    In bias = {};
    In residual = {};
    In scale_a = {};
    In scale_b = {};
    double alpha = 1.0;
    double beta = 0.0;
    bool transpose_a = false;
    bool transpose_b = false;
    Activation activation = Activation::none;
    Precision precision = Precision::full;
    bool operator==(const CallOf&) const = default;
  };
  using Call = CallOf<ConstTensorRef, TensorRef>;

  /// Every tensor has three axes (batch first; stride 0 where shared): a is batch x m x k, b is
  /// batch x k x n, c, bias and residual are batch x m x n. Transposition is in the strides; bias
  /// and residual span C by stride 0, or have no data. Scales have three axes, or no data.
  struct Args : Call {
    [[nodiscard]] std::int64_t batch() const { return c.shape[0]; }
    [[nodiscard]] std::int64_t m() const { return c.shape[1]; }
    [[nodiscard]] std::int64_t n() const { return c.shape[2]; }
    [[nodiscard]] std::int64_t k() const { return a.shape[2]; }
    /// Returns whether A and B are e4m3, e5m2 or i8, which few rungs support.
    [[nodiscard]] bool has_bytes() const { return size_of(a.dtype) == 1; }
    [[nodiscard]] bool has_scales() const {
      return scale_a.data != nullptr || scale_b.data != nullptr;
    }
    /// Returns whether a bias, residual or activation follows alpha * A * B + beta * C.
    [[nodiscard]] bool has_epilogue() const {
      return bias.data != nullptr || residual.data != nullptr || activation != Activation::none;
    }
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.a, "a"), in(call.b, "b"), out(call.c, "c"), optional_in(call.bias, "bias"),
          optional_in(call.residual, "residual"), optional_in(call.scale_a, "scale_a"),
          optional_in(call.scale_b, "scale_b"));
  }
  static RungList<Gemm>& rungs();
  static void bind(Args& args);

  static Cost cost(const Args& args);
  /// Returns the traffic of a kernel that computes C in tiles of the given extents and reads a
  /// strip of A and a strip of B per tile.
  static Cost traffic(const Args& args, const TileExtents& tile);
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
