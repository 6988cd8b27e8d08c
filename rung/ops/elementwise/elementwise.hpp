// SPDX-License-Identifier: Apache-2.0
// elementwise: a function of up to three tensors, element by element.
//
//   z = f(x, y, w)      add x + y       sub x - y     mul x y     div x / y     axpy alpha x + y
//                       fma x y + w     relu max(x, 0)            exp e^x       tanh
//                       sigmoid 1 / (1 + e^-x)        gelu x Phi(x), Phi the normal distribution
//                       silu x / (1 + e^-x)           sign -1, 0 or 1
//
// Shapes   x, y, w broadcast to z's shape as in NumPy: axes are matched from the last one
//          backwards; an axis of extent 1, or one that is missing, repeats. z's shape is given.
// Strides  any; zero (broadcast) in x, y, w too. z must not overlap itself.
// Types    one for all: f32, f64, f16, bf16; add, sub, mul, fma and relu also i32, i64, u8.
//          f16 and bf16 are computed in f32 and rounded once at the end. alpha is rounded to the
//          type of the computation.
// Integers wrap: results are right modulo 2^8, 2^32, 2^64.
// Aliasing z may be x, y or w exactly (same data, shape and strides: the call works in place);
//          otherwise they must not overlap. Overlap is decided by address ranges, from the lowest
//          to the highest byte that a tensor touches, so that tensors whose elements interleave are
//          refused.
// Accuracy add, sub, mul, div are IEEE's, rounded once; fma and axpy are fused: one rounding. f16
//          and bf16 results are those of f32, rounded. exp, tanh, sigmoid: 4 units in the last
//          place of f32 or f64; silu: 5; gelu: 8. Before they are rounded to f16 or bf16, sigmoid,
//          silu and gelu may have a relative error of 2^-16. Results below the smallest normal
//          number: one unit of the smallest subnormal more; sigmoid's may be 0, as may silu's below
//          2^-119 (f64: 2^-1012). Same bits for any number of threads, in place or not.
// Values   NaN gives NaN in every function, relu too; relu(-0) = -0, sign(-0) = -0. gelu and
//          silu of -infinity are 0. x / 0 is an infinity or NaN as IEEE has it.
// Errors   Error(invalid_argument) for shapes, types, aliasing, an operand that is missing or not
//          read, an alpha that is not used.
// Source   IEEE 754-2019; gelu: D. Hendrycks and K. Gimpel, arXiv:1606.08415.
//
// A function of your own over views: transform.cuh, through the same kernels.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/core/collapse.hpp"
#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

enum class ElementwiseFunction : std::uint8_t {
  add,
  sub,
  mul,
  div,
  axpy,
  fma,
  relu,
  sigmoid,
  tanh,
  gelu,
  exp,
  silu,
  sign
};
RUNG_API std::string_view to_string(ElementwiseFunction function) noexcept;
/// How many tensors the function reads: 1 to 3.
constexpr int arity(ElementwiseFunction function) {
  if (function == ElementwiseFunction::fma) return 3;
  return function <= ElementwiseFunction::axpy ? 2 : 1;
}

/// elementwise(context, {x, y}, z, {.function = ...}); those that the function does not read stay
/// away.
struct ElementwiseInputs {
  ConstTensorRef x = {};  // broadcast to the shape of z, as are y and w
  ConstTensorRef y = {};  // left out: the function has one input
  ConstTensorRef w = {};  // of fma alone
};

struct ElementwiseOptions {
  ElementwiseFunction function = ElementwiseFunction::add;  // f, by name
  double alpha = 1.0;  // of axpy; 1 for the other functions, which have none
};

struct RUNG_API Elementwise {
  static constexpr std::string_view name = "elementwise";
  static constexpr std::string_view summary = "z = f(x, y, w), element by element";
  static constexpr std::string_view problem_help =
      "TYPE SHAPE,FUNCTION[,options]: f32 4096x4096,add   bf16 1048576,gelu   f32 "
      "64x100,add,y=row\n"
      "functions: add, sub, mul, div, axpy, fma, relu, sigmoid, tanh, gelu, exp, silu,\n"
      "           sign; default add\n"
      "options: x=, y=, w= row | column | scalar | a shape (an operand that is broadcast),\n"
      "         alpha=X (axpy), in_place (z is x)";

  template <class In, class Out>
  struct CallOf {
    std::array<In, 3> in = {};  // x, y, w; those beyond the arity are left out
    Out z = {};
    ElementwiseFunction function = ElementwiseFunction::add;
    double alpha = 1.0;
    bool operator==(const CallOf&) const = default;
  };
  using Call = CallOf<ConstTensorRef, TensorRef>;

  /// The operands have z's shape, with stride 0 where they repeat.
  struct Args : Call {
    /// The axes that z, x, y and w (in this order) share, as few as will do; the one along which z
    /// lies densest stands last. Strides of operands that are not read are 0.
    Collapsed<4> layout;

    [[nodiscard]] int arity() const { return rung::arity(function); }
    [[nodiscard]] std::int64_t size() const { return layout.size(); }
    /// Element i of every tensor is at its i-th place: no strides, no broadcasting.
    [[nodiscard]] bool flat() const {
      bool contiguous = layout.is_contiguous<0>() && layout.is_contiguous<1>();
      if (arity() > 1) contiguous = contiguous && layout.is_contiguous<2>();
      if (arity() > 2) contiguous = contiguous && layout.is_contiguous<3>();
      return contiguous;
    }
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(optional_in(call.in[0], "x"), optional_in(call.in[1], "y"), optional_in(call.in[2], "w"),
          out(call.z, "z").may_be("x", "y", "w"));
  }
  static RungList<Elementwise>& rungs();
  static void bind(Args& args);

  static Cost cost(const Args& args);
  static void reference(const Args& args, Oracle& oracle);
  static Tolerance tolerance(const Args& args, const RungInfo& rung, Values values);
  static std::vector<Problem> check_problems(Backend backend);
  static std::vector<Problem> bench_problems(Backend backend);
  static Call make(const Problem& problem, Inputs& inputs);
  static std::span<const ArgumentSpec> arguments();
  static void invoke(Context& context, Invocation& invocation, Pick pick);
};

RUNG_API void elementwise(Context& context, const ElementwiseInputs& inputs, const TensorRef& z,
                          const ElementwiseOptions& options = {}, Pick pick = best);

}  // namespace rung
