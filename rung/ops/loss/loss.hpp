// SPDX-License-Identifier: Apache-2.0
// loss: distance between a model's outputs and its targets, and the gradient, in one pass over the
// outputs.
//
//   cross_entropy   row = -sum_c q_c log p_c,  p = softmax(x),   q_c = (1 - e) [c = label] + e / C
//                   d row / dx_c = p_c - q_c                     e: smoothing
//   hinge           row = sum_c max(margin - t_c x_c, 0),        t_c = 1 where c = label, else -1
//                   d row / dx_c = -t_c where margin - t_c x_c >= 0, else 0
//   squared         row = sum_c (x_c - target_c)^2 / C
//                   d row / dx_c = 2 (x_c - target_c) / C
// result = mean or sum of row over all rows that are not ignored;  dx = d result / dx
//
// hinge is one-vs-all: the sign of x_c separates class c from all others. With a margin of 0 it is
// the perceptron loss.
//
// Shapes   x, dx: 1 to 8 axes; a row is the set of elements that differ in the given axis only, one
//          per class (at least one). target of cross_entropy and hinge: labels, shaped as x without
//          that axis; of squared: as x. losses: as x without that axis. result: one element.
// Options  dx, losses (per row): written if given. ignored_label: rows with this label are ignored:
//          their loss and their row of dx are 0, and the mean is over the other rows.
// Strides  any; inputs may have zero strides (broadcast). Outputs must not overlap themselves.
// Types    x, dx and squared's target: one of f32, f64, f16, bf16. result and losses: f32, f64 for
//          f64, as is the arithmetic; rows are added up in f64. Labels: i64 or i32.
// Special  all rows ignored: the mean and dx are 0. A label outside 0 ... C - 1 other than the
//          ignored one: the row's loss and dx are NaN, and so is the result. Cross entropy: an x of
//          -infinity has p = 0, and an infinite loss if q is not 0; the same may hold for an x
//          whose distance from the row's maximum overflows the arithmetic. +infinity or NaN in a
//          row, or only -infinity, makes its loss and dx NaN.
// Aliasing dx may be x itself; otherwise what is written overlaps nothing else. Overlap is decided
//          by address ranges, from the lowest to the highest byte that a tensor touches, so that
//          tensors whose elements interleave are refused.
// Accuracy with u the unit roundoff of the arithmetic, m a row's maximum, K = C / 8 + 48 (in
//          naive rungs C + 48):
//            cross_entropy  |error of a row| <= K u (1 + sum q_c |m - x_c| + log sum exp(x_c - m))
//                           |error of dx_c| <= K u (p_c (1 + |x_c - m|) + q_c)
//            hinge          |error of a row| <= K u sum (margin + |x_c|); dx is exact
//            squared        |error of a row| <= K u row; |error of dx_c| <= 4 u |dx_c|
//          result: the sum or mean of these bounds, and N 2^-53 times that of |row|, of N rows.
//          dx is divided by the number of rows for the mean (3 u |dx| more) and rounded to its
//          type; numbers below the smallest normal one may come out as 0.
// Repeats  the same bits from run to run and for any number of threads (on a GPU: of one model).
//          On a CPU the bits also do not depend on the strides of dx and losses, or on whether
//          these are given; on a GPU, and with other strides of x or target, the summation order
//          may differ.
// Errors   Error(invalid_argument) for shapes, types, axis, options out of range, aliasing.
// Source   cross entropy: C. Szegedy and others, Rethinking the Inception architecture, 2015
//          (smoothing); hinge: R. Rifkin and A. Klautau, In defense of one-vs-all classification,
//          2004; perceptron: F. Rosenblatt, 1958.
#pragma once

#include <climits>
#include <cstdint>
#include <string_view>

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

enum class LossKind : std::uint8_t { cross_entropy, hinge, squared };
enum class LossReduction : std::uint8_t { mean, sum };
RUNG_API std::string_view to_string(LossKind kind) noexcept;

/// Default of ignored_label: no label is ignored.
inline constexpr int no_label = INT_MIN;

struct LossOptions {
  LossKind kind = LossKind::cross_entropy;        // cross entropy, hinge or squared error
  LossReduction reduction = LossReduction::mean;  // mean or sum of the losses
  int axis = -1;                                  // axis of the classes; negative: from the end
  double smoothing = 0.0;                         // for cross_entropy: 0 to 1
  double margin = 1.0;                            // for hinge: 0 or more
  int ignored_label = no_label;                   // for cross_entropy and hinge
  TensorRef dx = {};                              // gradient, written if given
  TensorRef losses = {};
  bool operator==(const LossOptions&) const = default;
};

/// Computes a loss and, if requested, its gradient: loss(context, x, labels, result, {.dx =
/// gradient}).
RUNG_API void loss(Context& context, const ConstTensorRef& x, const ConstTensorRef& target,
                   const TensorRef& result, const LossOptions& options = {}, Pick pick = best);

/// Calls loss() with the kind in the name; options.kind is ignored.
RUNG_API void cross_entropy(Context& context, const ConstTensorRef& x, const ConstTensorRef& target,
                            const TensorRef& result, const LossOptions& options = {},
                            Pick pick = best);
RUNG_API void hinge_loss(Context& context, const ConstTensorRef& x, const ConstTensorRef& target,
                         const TensorRef& result, const LossOptions& options = {},
                         Pick pick = best);
RUNG_API void squared_error(Context& context, const ConstTensorRef& x, const ConstTensorRef& target,
                            const TensorRef& result, const LossOptions& options = {},
                            Pick pick = best);

}  // namespace rung
