// SPDX-License-Identifier: Apache-2.0
// gemm: general matrix multiply with a fused epilogue.
//
//   C = act(alpha op(A) op(B) + beta C + bias)        for each matrix of a batch
//
// Shapes   op(A): m x k, op(B): k x n, C: m x n, each optionally with a batch axis in front. A or B
//          without one (or with an extent of 1) is shared by the whole batch. A vector is a matrix
//          with one row or column. bias: n (a value a column), m x 1 (a value a row), or m x n.
// Strides  any, zero (broadcast) in A, B and bias too; C must not overlap itself.
// Types    A, B, C all f32 or all f64; A, B bf16 or f16 with C the same or f32. bias as C.
//          Sums are kept in f32 (f64 for f64). alpha and beta are rounded to that type.
// Zero     m, n or batch = 0: nothing is written. k = 0 or alpha = 0: A and B are not read.
//          beta = 0: C is not read, so that NaN in it does not survive.
// Aliasing C must not overlap A, B or bias.
// Accuracy |error| <= (k + 4) u (|alpha| |op(A)| |op(B)| + |beta C| + |bias|) elementwise, u the
//          unit roundoff of the accumulator, plus one rounding to C's type; activations add a few
//          units in the last place [N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd
//          ed., section 3.5]. f32 never becomes tf32 unless Precision::tf32 is asked for.
//          Precision::split makes f32 operands sums of three bf16 each, 24 bits in all, whose
//          products tensor cores add up: the six largest of nine, by partial sums of 64 steps of
//          k. The bound holds where operands are no less than 2^-100; an infinite operand may give
//          NaN where f32 gives infinity.
// Repeats  the same bits from run to run for one number of threads, on one machine and for one
//          layout (shape, strides, alignment). For small products another number of threads may
//          choose another rung, and so add in another order.
// Errors   Error(invalid_argument) for shapes, types, aliasing; Error(unsupported) where no rung of
//          the backend takes the call, with every rung's reason.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/core/activation.hpp"
#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

/// What may happen to f32 operands on tensor cores: nothing (the default), rounding to the 11 bits
/// of tf32, or splitting into three bf16, which keeps 24 bits.
enum class Precision : std::uint8_t { full, tf32, split };

struct GemmOptions {
  double alpha = 1.0;
  double beta = 0.0;
  bool transpose_a = false;  // a is given k x m
  bool transpose_b = false;  // b is given n x k
  ConstTensorRef bias = {};  // left out: no bias
  Activation activation = Activation::none;
  Precision precision = Precision::full;
};

struct RUNG_API Gemm {
  static constexpr std::string_view name = "gemm";
  static constexpr std::string_view summary = "C = act(alpha op(A) op(B) + beta C + bias)";
  static constexpr std::string_view problem_help =
      "TYPE MxNxK[,options]: f32 1024x1024x1024   bf16 16x4096x4096   f32 512x512x512,ta,tb\n"
      "options: ta, tb (operand stored transposed), batch=N, alpha=X, beta=X, bias, bias_rows,\n"
      "         relu | gelu | sigmoid | tanh, out=f32 (bf16 and f16 inputs), tf32, split";

  template <class In, class Out>
  struct CallOf {
    In a = {};
    In b = {};
    Out c = {};
    In bias = {};
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
  /// batch x k x n, c and bias are batch x m x n. Transposition is in the strides, and bias spans C
  /// by stride 0, or has no data.
  struct Args : Call {
    [[nodiscard]] std::int64_t batch() const { return c.shape[0]; }
    [[nodiscard]] std::int64_t m() const { return c.shape[1]; }
    [[nodiscard]] std::int64_t n() const { return c.shape[2]; }
    [[nodiscard]] std::int64_t k() const { return a.shape[2]; }
    /// Whether anything follows alpha * A * B + beta * C.
    [[nodiscard]] bool has_epilogue() const {
      return bias.data != nullptr || activation != Activation::none;
    }
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.a, "a"), in(call.b, "b"), out(call.c, "c"), optional_in(call.bias, "bias"));
  }
  static RungList<Gemm>& rungs();
  static void bind(Args& args);

  static Cost cost(const Args& args);
  /// Of a kernel that makes C in tiles of speed.rows x speed.columns and reads a strip of A and one
  /// of B for each.
  static Cost traffic(const Args& args, const Speed& speed);
  /// Its time with k cut into so many slices. The SM with the most blocks decides (wave
  /// quantization): with 133 tiles on 132 SMs, one works twice as long as it would with 132.
  static double estimate(const Args& args, const Speed& speed, const Context& context,
                         std::int64_t slices = 1);
  static void reference(const Args& args, Oracle& oracle);
  static Tolerance tolerance(const Args& args, const RungInfo& rung, Values values);
  static std::vector<Problem> check_problems(Backend backend);
  static std::vector<Problem> bench_problems(Backend backend);
  static Call make(const Problem& problem, Inputs& inputs);
  static std::span<const ArgumentSpec> arguments();
  static void invoke(Context& context, Invocation& invocation, Pick pick);
};

RUNG_API void gemm(Context& context, const ConstTensorRef& a, const ConstTensorRef& b,
                   const TensorRef& c, const GemmOptions& options = {}, Pick pick = best);

}  // namespace rung
