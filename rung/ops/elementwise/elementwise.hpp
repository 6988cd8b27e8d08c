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
// Integers results are exact modulo 2^8, 2^32, 2^64 (they wrap).
// Aliasing z may be x, y or w exactly (same data, shape and strides: the call works in place);
//          otherwise they must not overlap. Overlap is decided by address ranges, from the lowest
//          to the highest byte that a tensor touches, so that tensors whose elements interleave are
//          refused.
// Accuracy add, sub, mul, div are IEEE's, rounded once; fma and axpy are fused: one rounding. f16
//          and bf16 results are those of f32, rounded. exp, tanh, sigmoid: 4 units in the last
//          place of f32 or f64; silu: 5; gelu: 8. Before they are rounded to f16 or bf16, sigmoid,
//          silu and gelu may have a relative error of 2^-16. Results below the smallest normal
//          number may err by one more unit of the smallest subnormal; sigmoid's may be 0, as may
//          silu's below 2^-119 (f64: 2^-1012). Same bits for any number of threads, in place or
//          not.
// Values   NaN gives NaN in every function, also relu; relu(-0) = -0, sign(-0) = -0. gelu and silu
//          of -infinity are 0. x / 0 is an infinity or NaN as in IEEE 754.
// Errors   Error(invalid_argument) for shapes, types, aliasing, an operand that is missing or not
//          read, an alpha that is not used.
// Source   IEEE 754-2019; gelu: D. Hendrycks and K. Gimpel, arXiv:1606.08415.
//
// For user-defined functions over views, through the same kernels, see transform.cuh.
#pragma once

#include <cstdint>
#include <string_view>

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/pick.hpp"
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
/// Returns the number of tensors that the function reads: 1 to 3.
constexpr int arity(ElementwiseFunction function) {
  if (function == ElementwiseFunction::fma) return 3;
  return function <= ElementwiseFunction::axpy ? 2 : 1;
}

/// Inputs of elementwise(context, {x, y}, z, {.function = ...}); inputs that the function does not
/// read are not given.
struct ElementwiseInputs {
  ConstTensorRef x = {};  // broadcast to the shape of z, as are y and w
  ConstTensorRef y = {};  // not given: the function has one input
  ConstTensorRef w = {};  // read by fma only
};

struct ElementwiseOptions {
  ElementwiseFunction function = ElementwiseFunction::add;  // f, by name
  double alpha = 1.0;  // factor of axpy; must be 1 for other functions
};

RUNG_API void elementwise(Context& context, const ElementwiseInputs& inputs, const TensorRef& z,
                          const ElementwiseOptions& options = {}, Pick pick = best);

/// Call elementwise() with the function in their name.
RUNG_API void add(Context& context, const ConstTensorRef& x, const ConstTensorRef& y,
                  const TensorRef& z, Pick pick = best);
RUNG_API void subtract(Context& context, const ConstTensorRef& x, const ConstTensorRef& y,
                       const TensorRef& z, Pick pick = best);
RUNG_API void multiply(Context& context, const ConstTensorRef& x, const ConstTensorRef& y,
                       const TensorRef& z, Pick pick = best);
RUNG_API void divide(Context& context, const ConstTensorRef& x, const ConstTensorRef& y,
                     const TensorRef& z, Pick pick = best);
RUNG_API void axpy(Context& context, double alpha, const ConstTensorRef& x, const ConstTensorRef& y,
                   const TensorRef& z, Pick pick = best);
RUNG_API void multiply_add(Context& context, const ConstTensorRef& x, const ConstTensorRef& y,
                           const ConstTensorRef& w, const TensorRef& z, Pick pick = best);
RUNG_API void relu(Context& context, const ConstTensorRef& x, const TensorRef& z, Pick pick = best);
RUNG_API void sigmoid(Context& context, const ConstTensorRef& x, const TensorRef& z,
                      Pick pick = best);
RUNG_API void tanh(Context& context, const ConstTensorRef& x, const TensorRef& z, Pick pick = best);
RUNG_API void gelu(Context& context, const ConstTensorRef& x, const TensorRef& z, Pick pick = best);
RUNG_API void silu(Context& context, const ConstTensorRef& x, const TensorRef& z, Pick pick = best);
RUNG_API void exp(Context& context, const ConstTensorRef& x, const TensorRef& z, Pick pick = best);
RUNG_API void sign(Context& context, const ConstTensorRef& x, const TensorRef& z, Pick pick = best);

}  // namespace rung
