// SPDX-License-Identifier: Apache-2.0
// norm_backward: gradients of layer norm and RMS norm (ops/norm).
//
//   g = dy gamma,  z = (x - mean) rstd                 (rms: z = x rstd)
//   layer:  dx = rstd (g - mean(g) - z mean(g z))      means over the n elements of a row
//   rms:    dx = rstd (g - z mean(g z))
//   dgamma = sum of dy z over all rows,  dbeta = sum of dy over all rows
//
// Shapes   x, dy, dx: one shape, rank 1 to 8. gamma, dgamma, dbeta: the extents of the normalized
//          axes. mean, rstd: those of the other axes, with or without a 1 for each normalized one.
//          With a residual, x is the sum that norm wrote; the gradient of both terms is dx.
// Options  gamma: none means ones. mean and rstd: what norm wrote, both (rms: rstd), or none: then
//          they are computed again, with epsilon. dgamma, dbeta: written when given.
// Strides  any; zero (broadcast) in what is read. What is written must not overlap itself.
// Types    x, dy, dx: one of f32, f64, f16, bf16. gamma, and dgamma and dbeta: that type or, for
//          f16 and bf16, f32. mean and rstd: f32, f64 for f64. Arithmetic is f32 (f64 for f64).
// Aliasing dx may be dy or x itself; otherwise what is written overlaps nothing else. Overlap is
//          decided by address ranges, from the lowest to the highest byte that a tensor touches, so
//          that tensors whose elements interleave are refused.
// Special  no rows: dgamma and dbeta are 0. A NaN or an infinity in a row of x makes its dx NaN; it
//          makes dgamma NaN where it makes y NaN in norm. A row of finite elements that overflows
//          (norm.hpp) has rstd = 0 and z = 0: its dx is 0, and it adds nothing to dgamma. So does a
//          row whose given rstd is 0, whatever its mean.
// Accuracy with u the unit roundoff of the arithmetic, K = n / 8 + 32 and R = rows / 8 + 96:
//            |error of dx| <= 3 K u rstd (|g| + mean(|g|) + |z| mean(|g z|)) + rounding to its type
//            |error of dgamma| <= R u sum(|dy z|),  |error of dbeta| <= R u sum(|dy|)
//          and, where mean and rstd are computed again, what norm.hpp says of z times what z is
//          multiplied by.
// Repeats  the same bits from run to run and for every number of threads: rows are added up in an
//          order that depends on their number alone (on a GPU also on the device).
// Errors   Error(invalid_argument) for shapes, axes, types, epsilon, aliasing; Error(unsupported)
//          where no rung of the backend takes the call, with every rung's reason.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/ops/norm/norm.hpp"

namespace rung {

struct NormBackwardOptions {
  int axis = -1;  // the first normalized axis, from the end when negative
  int axes = 1;   // how many are normalized together, from `axis` on
  double epsilon = 1e-5;  // as given to norm
  ConstTensorRef gamma = {};
  ConstTensorRef mean = {};
  ConstTensorRef rstd = {};
  TensorRef dgamma = {};
  TensorRef dbeta = {};
};

struct RUNG_API NormBackward {
  static constexpr std::string_view name = "norm_backward";
  static constexpr std::string_view summary = "dx = rstd (g - mean(g) - z mean(g z)), g = dy gamma";
  static constexpr std::string_view problem_help =
      "TYPE SHAPE[,options]: f32 4096x4096,gamma,weights,stats   bf16 8x512x1024,rms,gamma\n"
      "options: rms (default: layer norm), axis=N, axes=N, eps=X, gamma, f32_weights (f16, bf16),\n"
      "         weights (dgamma and dbeta too), stats (mean and rstd are given, not computed\n"
      "         again), in_place (dx is dy), offset=X (values of x: around X)";

  template <class In, class Out>
  struct CallOf {
    NormKind kind = NormKind::layer;
    int axis = -1;
    int axes = 1;
    double epsilon = 1e-5;
    In x = {};
    In dy = {};
    Out dx = {};
    In gamma = {};  // or left out, as all that follow
    In mean = {};
    In rstd = {};
    Out dgamma = {};
    Out dbeta = {};
    bool operator==(const CallOf&) const = default;
  };
  using Call = CallOf<ConstTensorRef, TensorRef>;

  /// Every tensor is spread over x's shape by stride 0. What is left out has no data.
  struct Args : Call {
    AxisSet normalized = 0;
  };

  /// Every tensor's place in memory: rows are the other axes, columns the normalized ones.
  enum RowTensor : int { row_x, row_dy, row_dx, row_mean, row_rstd };
  enum ColumnTensor : int {
    column_x,
    column_dy,
    column_dx,
    column_gamma,
    column_dgamma,
    column_dbeta
  };
  struct Lines {
    Collapsed<5> rows;
    Collapsed<6> columns;
    /// x, dy and dx have contiguous rows, and gamma, dgamma and dbeta are contiguous.
    [[nodiscard]] bool contiguous_columns() const;
  };
  static Lines lines_of(const Args& args);

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.dy, "dy"), in(call.x, "x"), optional_in(call.gamma, "gamma"),
          optional_in(call.mean, "mean"), optional_in(call.rstd, "rstd"),
          out(call.dx, "dx").may_be("dy", "x"), optional_out(call.dgamma, "dgamma"),
          optional_out(call.dbeta, "dbeta"));
  }
  static RungList<NormBackward>& rungs();
  static void bind(Args& args);

  static Cost cost(const Args& args);
  /// The oracle's magnitudes are the bounds promised above: tolerance() multiplies them by one.
  static void reference(const Args& args, Oracle& oracle);
  static Tolerance tolerance(const Args& args, const RungInfo& rung, Values values);
  static std::vector<Problem> check_problems(Backend backend);
  static std::vector<Problem> bench_problems(Backend backend);
  static Call make(const Problem& problem, Inputs& inputs);
  static std::span<const ArgumentSpec> arguments();
  static void invoke(Context& context, Invocation& invocation, Pick pick);
};

RUNG_API void layer_norm_backward(Context& context, const ConstTensorRef& dy,
                                  const ConstTensorRef& x, const TensorRef& dx,
                                  const NormBackwardOptions& options = {}, Pick pick = best);
RUNG_API void rms_norm_backward(Context& context, const ConstTensorRef& dy, const ConstTensorRef& x,
                                const TensorRef& dx, const NormBackwardOptions& options = {},
                                Pick pick = best);

}  // namespace rung
