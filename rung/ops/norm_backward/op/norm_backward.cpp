// SPDX-License-Identifier: Apache-2.0
// norm_backward: the operator object, its rung list, and argument checks.
#include "rung/ops/norm_backward/op/norm_backward.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/ops/norm/shared/axes.hpp"

namespace rung {
namespace {

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<NormBackward> rung_list;
const Operator<NormBackward> self;

constexpr std::string_view op = NormBackward::name;

void check_arguments(const NormBackward::Args& args) {
  const DType type = args.x.dtype;
  const DType arithmetic = type == DType::f64 ? DType::f64 : DType::f32;
  if (!norm_axes::epsilon_fits(args.epsilon, arithmetic)) {
    reject(op, fmt::format("epsilon is {}; accepted: 0 or more, finite in {}", args.epsilon,
                           to_string(arithmetic)));
  }
  require_dtype(op, args.x, "x", {DType::f32, DType::f64, DType::f16, DType::bf16});
  const auto check = [&](const ConstTensorRef& tensor, std::string_view tensor_name,
                         std::initializer_list<DType> types) {
    if (is_given(tensor)) require_dtype(op, tensor, tensor_name, types);
  };
  check(args.dy, "dy", {type});
  check(args.dx, "dx", {type});
  check(args.gamma, "gamma", {type, arithmetic});
  check(args.mean, "mean", {arithmetic});
  check(args.rstd, "rstd", {arithmetic});
  check(args.dgamma, "dgamma", {type, arithmetic});
  check(args.dbeta, "dbeta", {type, arithmetic});
  if (args.dgamma.data != nullptr && args.dbeta.data != nullptr &&
      args.dgamma.dtype != args.dbeta.dtype) {
    reject(op, fmt::format("dgamma is {}, dbeta {}; accepted: one type for both",
                           to_string(args.dgamma.dtype), to_string(args.dbeta.dtype)));
  }
  const bool has_mean = args.mean.data != nullptr;
  const bool has_rstd = args.rstd.data != nullptr;
  if (args.kind == NormKind::layer && has_mean != has_rstd) {
    reject(op, fmt::format("{} is given alone; accepted: mean and rstd, or neither",
                           has_mean ? "mean" : "rstd"));
  }
  if (args.kind == NormKind::rms && has_mean) {
    reject(op, "mean is given to rms_norm_backward, which uses none; accepted: rstd alone");
  }
}

}  // namespace

RungList<NormBackward>& NormBackward::rungs() { return rung_list; }

bool NormBackward::Lines::contiguous_columns() const {
  if (columns.rank == 0) return true;
  for (const auto& strides : columns.strides) {
    if (columns.rank != 1 || strides[0] != 1) return false;
  }
  return true;
}

NormBackward::Lines NormBackward::lines_of(const Args& args) {
  const auto strides = [&](const auto& tensor) {  // absent tensors move with x
    return tensor.data != nullptr ? tensor.strides : args.x.strides;
  };
  return {collapse<5>(args.x.shape,
                      {args.x.strides, args.dy.strides, args.dx.strides, strides(args.mean),
                       strides(args.rstd)},
                      ~args.normalized, AxisOrder::by_stride),
          collapse<6>(args.x.shape,
                      {args.x.strides, args.dy.strides, args.dx.strides, strides(args.gamma),
                       strides(args.dgamma), strides(args.dbeta)},
                      args.normalized, AxisOrder::by_stride)};
}

void NormBackward::bind(Args& args) {
  const Extents& shape = args.x.shape;
  args.normalized = norm_axes::chosen(op, args.axis, args.axes, shape.rank);
  require_shape(op, args.dy, "dy", shape);
  require_shape(op, args.dx, "dx", shape);
  norm_axes::spread(op, args.gamma, "gamma", shape, args.normalized);
  norm_axes::spread_keeping_ones(op, args.mean, "mean", shape, ~args.normalized);
  norm_axes::spread_keeping_ones(op, args.rstd, "rstd", shape, ~args.normalized);
  norm_axes::spread(op, args.dgamma, "dgamma", shape, args.normalized);
  norm_axes::spread(op, args.dbeta, "dbeta", shape, args.normalized);
  check_arguments(args);
}

namespace {

template <class Call>
Call call_of(NormKind kind, const ConstTensorRef& dy, const ConstTensorRef& x, const TensorRef& dx,
             const NormBackwardOptions& options) {
  return {.kind = kind,
          .axis = options.axis,
          .axes = options.axes,
          .epsilon = options.epsilon,
          .x = x,
          .dy = dy,
          .dx = dx,
          .gamma = options.gamma,
          .mean = options.mean,
          .rstd = options.rstd,
          .dgamma = options.dgamma,
          .dbeta = options.dbeta};
}

}  // namespace

void layer_norm_backward(Context& context, const ConstTensorRef& dy, const ConstTensorRef& x,
                         const TensorRef& dx, const NormBackwardOptions& options, Pick pick) {
  call<NormBackward>(context, pick, [&]<class Call>() {
    return call_of<Call>(NormKind::layer, dy, x, dx, options);
  });
}

void rms_norm_backward(Context& context, const ConstTensorRef& dy, const ConstTensorRef& x,
                       const TensorRef& dx, const NormBackwardOptions& options, Pick pick) {
  call<NormBackward>(context, pick, [&]<class Call>() {
    return call_of<Call>(NormKind::rms, dy, x, dx, options);
  });
}

}  // namespace rung
