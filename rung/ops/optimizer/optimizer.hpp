// SPDX-License-Identifier: Apache-2.0
// optimizer: one step of stochastic gradient descent or of Adam, in one pass over the parameters.
//
//   n = sqrt(sum over all elements of g^2),  c = min(1, max_norm / n)       c = 1 without max_norm
//   g' = c g + decay p          decoupled: g' = c g, and p starts as (1 - rate decay) p
//   sgd    without momentum: p -= rate g'
//          m = momentum m + g';  p -= rate m,  nesterov: p -= rate (g' + momentum m)
//   adam   m = beta1 m + (1 - beta1) g',  v = beta2 v + (1 - beta2) g'^2
//          p -= rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)          t: the step
//
// All parameters of a model can be updated by one call if they are in one tensor, of which each
// layer has a view; n is then the norm of the whole gradient.
//
// Shapes   parameters, gradients, moments and master of one shape, of any rank; norm: one element.
// Options  first_moment (m): for sgd with momentum and for adam; second_moment (v): for adam. Both
//          are read and written; zeros before the first step. master: f32 values of f16 and bf16
//          parameters, read and written; the parameters themselves are then only written, rounded.
//          norm: n, written if given. decoupled with adam is AdamW.
// Strides  any, also zero (broadcast) in gradients; tensors that are written must not overlap
//          themselves.
// Types    parameters and gradients: one of f32, f64, f16, bf16. Moments, master and norm: f32, f64
//          for f64, as is the arithmetic; squares are added up in f64.
// Aliasing none: no two tensors overlap. Overlap is decided by address ranges, from the lowest to
//          the highest byte that a tensor touches, so that tensors whose elements interleave are
//          refused.
// Accuracy with u the unit roundoff of the arithmetic and G = |c g| + |decay p|:
//            sgd   |error of m| <= 8 u (|momentum m| + G)
//                  |error of p| <= 2 u |p| + 8 u rate (|momentum m| + G), nesterov: twice that
//            adam  |error of m| <= 8 u (|beta1 m| + (1 - beta1) G), of v: the same of its terms
//                  |error of p| <= 2 u |p| + 32 u rate' S M / D,  rate' = rate / (1 - beta1^t),
//                  M = |beta1 m| + (1 - beta1) G,  D the denominator in the formula of p, and
//                  S = 1 + sqrt((1 - beta2) / (1 - beta2^t)) G / D
//          plus one rounding to the type of each; without a master p is rounded at every step. The
//          error of n is at most 4 u n; for f64 (4 + N) u n with N elements, and if c < 1 the 8 and
//          32 above increase by N and 2 N. Numbers below the smallest normal one may be 0.
// Repeats  the same bits from run to run and for any number of threads (on a GPU: of one model).
// Errors   Error(invalid_argument) for shapes, types, aliasing, options out of range, and moments
//          or master that are missing or not used by the kind and types.
// Source   I. Sutskever and others, On the importance of initialization and momentum, 2013; D.
//          Kingma and J. Ba, Adam, arXiv:1412.6980; I. Loshchilov and F. Hutter, arXiv:1711.05101.
#pragma once

#include <cstdint>

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

enum class OptimizerKind : std::uint8_t { sgd, adam };

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::sgd;  // the update rule
  double learning_rate = 1e-3;              // rate, step size
  double weight_decay = 0;                  // decay, of the L2 penalty
  bool decoupled = false;                   // decay is applied to p instead of g'; with adam: AdamW
  double momentum = 0;                      // sgd only
  bool nesterov = false;                    // sgd only
  double beta1 = 0.9;                       // adam only, as are beta2 and epsilon
  double beta2 = 0.999;                     // decay of second_moment
  double epsilon = 1e-8;                    // added to the denominator
  int step = 1;                             // t, starts at 1
  double max_norm = 0;                      // 0: gradients are not clipped
  TensorRef first_moment = {};   // m, read and written; required by adam and by sgd with momentum
  TensorRef second_moment = {};  // v, read and written; required by adam
  TensorRef master = {};         // f32 copy of f16 or bf16 parameters; read and written
  TensorRef norm = {};           // n, one element; written if given
  bool operator==(const OptimizerOptions&) const = default;
};

/// Performs one step, in place.
RUNG_API void optimizer(Context& context, const TensorRef& parameters,
                        const ConstTensorRef& gradients, const OptimizerOptions& options = {},
                        Pick pick = best);

/// Call optimizer() with the kind in their name; options.kind is ignored.
RUNG_API void sgd_step(Context& context, const TensorRef& parameters,
                       const ConstTensorRef& gradients, const OptimizerOptions& options = {},
                       Pick pick = best);
RUNG_API void adam_step(Context& context, const TensorRef& parameters,
                        const ConstTensorRef& gradients, const OptimizerOptions& options = {},
                        Pick pick = best);

}  // namespace rung
