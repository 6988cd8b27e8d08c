// SPDX-License-Identifier: Apache-2.0
// norm: the operator object, its rung list, and argument checks.
#include "rung/ops/norm/op/norm.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/ops/norm/shared/axes.hpp"

namespace rung {
namespace {

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<Norm> rung_list;
const Operator<Norm> self;

constexpr std::string_view op = Norm::name;

void check_types(const Norm::Args& args) {
  const DType type = args.x.dtype;
  const DType arithmetic = type == DType::f64 ? DType::f64 : DType::f32;
  if (!norm_axes::epsilon_fits(args.epsilon, arithmetic)) {
    reject(op, fmt::format("epsilon is {}; accepted: 0 or more, finite in {}", args.epsilon,
                           to_string(arithmetic)));
  }
  require_dtype(op, args.x, "x", {DType::f32, DType::f64, DType::f16, DType::bf16});
  const auto check = [&](const ConstTensorRef& tensor, std::string_view name,
                         std::initializer_list<DType> types) {
    if (is_given(tensor)) require_dtype(op, tensor, name, types);
  };
  check(args.y, "y", {type});
  check(args.residual, "residual", {type});
  check(args.sum, "sum", {type});
  check(args.gamma, "gamma", {type, arithmetic});
  check(args.beta, "beta", {type, arithmetic});
  check(args.mean, "mean", {arithmetic});
  check(args.rstd, "rstd", {arithmetic});
  if (args.gamma.data != nullptr && args.beta.data != nullptr &&
      args.gamma.dtype != args.beta.dtype) {
    reject(op, fmt::format("gamma is {}, beta {}; accepted: one type for both",
                           to_string(args.gamma.dtype), to_string(args.beta.dtype)));
  }
}

}  // namespace

RungList<Norm>& Norm::rungs() { return rung_list; }

void Norm::bind(Args& args) {
  const Extents& shape = args.x.shape;
  args.normalized = norm_axes::chosen(op, args.axis, args.axes, shape.rank);
  require_shape(op, args.y, "y", shape);
  if (is_given(args.residual)) require_shape(op, args.residual, "residual", shape);
  if (is_given(args.sum)) require_shape(op, args.sum, "sum", shape);
  norm_axes::spread(op, args.gamma, "gamma", shape, args.normalized);
  norm_axes::spread(op, args.beta, "beta", shape, args.normalized);
  norm_axes::spread_keeping_ones(op, args.mean, "mean", shape, ~args.normalized);
  norm_axes::spread_keeping_ones(op, args.rstd, "rstd", shape, ~args.normalized);
  check_types(args);
  if (args.sum.data != nullptr && args.residual.data == nullptr) {
    reject(op, "sum is given without a residual; accepted: both, or the residual alone");
  }
  if (args.mean.data != nullptr && args.kind == NormKind::rms) {
    reject(op, "mean is given to rms_norm, which computes none; accepted: rstd alone");
  }
}

namespace {

template <class Call>
Call call_of(NormKind kind, const ConstTensorRef& x, const TensorRef& y,
             const NormOptions& options) {
  return {.kind = kind,
          .axis = options.axis,
          .axes = options.axes,
          .epsilon = options.epsilon,
          .x = x,
          .residual = options.residual,
          .y = y,
          .sum = options.sum,
          .gamma = options.gamma,
          .beta = options.beta,
          .mean = options.mean,
          .rstd = options.rstd};
}

}  // namespace

void layer_norm(Context& context, const ConstTensorRef& x, const TensorRef& y,
                const NormOptions& options, Pick pick) {
  call<Norm>(context, pick,
             [&]<class Call>() { return call_of<Call>(NormKind::layer, x, y, options); });
}

void rms_norm(Context& context, const ConstTensorRef& x, const TensorRef& y,
              const NormOptions& options, Pick pick) {
  call<Norm>(context, pick,
             [&]<class Call>() { return call_of<Call>(NormKind::rms, x, y, options); });
}

}  // namespace rung
