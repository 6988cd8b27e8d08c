// SPDX-License-Identifier: Apache-2.0
// activation_backward: the gradient of an activation function, element by element.
//
//   dx = dy f'        sigmoid  f' = y (1 - y)                       saved is y, the output of f
//                     tanh     f' = 1 - y^2                         saved is y
//                     relu     f' = 1 where saved > 0, else 0       saved is x or y
//                     gelu     f' = Phi(x) + x phi(x)               saved is x, the input of f
//                     silu     f' = s (1 + x (1 - s)), s = 1 / (1 + e^-x)          saved is x
//                     sign     f' = 1 where |x| <= 1, else 0        saved is x
//
// Phi and phi are the normal distribution function and its density. sign has no useful gradient:
// this is the straight-through estimator, the gradient of x clamped to [-1, 1].
//
// Shapes   saved, dy and dx of one shape, of any rank.
// Strides  any, also zero (broadcast) in saved and dy; dx must not overlap itself.
// Types    one for all: f32, f64, f16, bf16. f16 and bf16 are computed in f32 and rounded once.
// Aliasing dx may be dy or saved itself; otherwise they must not overlap. Overlap is decided by
//          address ranges, from the lowest to the highest byte that a tensor touches, so that
//          tensors whose elements interleave are refused.
// Accuracy with u the unit roundoff of the arithmetic: sign and relu are exact; sigmoid and tanh
//          |error| <= 6 u |dx|; gelu 16 u |dy| (Phi + |x| (1 + x^2 / 8) phi); silu
//          16 u |dy| (s + |x| (1 + |x| / 8) s (1 - s)); plus one rounding to dx's type. Results
//          below the smallest normal number may be 0.
// Values   a NaN in saved gives NaN, whatever dy is. relu and sign select: dx is dy where f' is 1,
//          and 0 where f' is 0, for a NaN or an infinity in dy, too. The other functions multiply:
//          a NaN in dy gives NaN; an infinity in dy gives NaN where f' is 0, infinity or NaN where
//          |f'| is below the smallest normal number of the arithmetic, else infinity. gelu and silu
//          take the limits at infinities: f' is 0 or 1. sigmoid and tanh follow the formula for any
//          saved, infinities included.
// Repeats  the same bits from run to run, for any number of threads, in place or not.
// Errors   Error(invalid_argument) for shapes, types, aliasing.
// Source   the chain rule; gelu: D. Hendrycks and K. Gimpel, arXiv:1606.08415; the straight-through
//          estimator: Y. Bengio and others, arXiv:1308.3432.
#pragma once

#include <cstdint>
#include <string_view>

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

enum class ActivationFunction : std::uint8_t { sign, sigmoid, tanh, relu, gelu, silu };
RUNG_API std::string_view to_string(ActivationFunction function) noexcept;

struct ActivationBackwardOptions {
  ActivationFunction function = ActivationFunction::relu;  // whose gradient is taken
};

/// Stores the gradient to dx. `saved` is the function's input or output: see the table above.
RUNG_API void activation_backward(Context& context, const ConstTensorRef& saved,
                                  const ConstTensorRef& dy, const TensorRef& dx,
                                  const ActivationBackwardOptions& options = {}, Pick pick = best);

/// Call activation_backward() with the activation function in their name.
RUNG_API void sign_backward(Context& context, const ConstTensorRef& saved, const ConstTensorRef& dy,
                            const TensorRef& dx, Pick pick = best);
RUNG_API void sigmoid_backward(Context& context, const ConstTensorRef& saved,
                               const ConstTensorRef& dy, const TensorRef& dx, Pick pick = best);
RUNG_API void tanh_backward(Context& context, const ConstTensorRef& saved, const ConstTensorRef& dy,
                            const TensorRef& dx, Pick pick = best);
RUNG_API void relu_backward(Context& context, const ConstTensorRef& saved, const ConstTensorRef& dy,
                            const TensorRef& dx, Pick pick = best);
RUNG_API void gelu_backward(Context& context, const ConstTensorRef& saved, const ConstTensorRef& dy,
                            const TensorRef& dx, Pick pick = best);
RUNG_API void silu_backward(Context& context, const ConstTensorRef& saved, const ConstTensorRef& dy,
                            const TensorRef& dx, Pick pick = best);

}  // namespace rung
