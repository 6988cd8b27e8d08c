// SPDX-License-Identifier: Apache-2.0
// norm_backward: the operator's object, its rung list, and what every call goes through.
#include "rung/ops/norm_backward/norm_backward.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "rung/core/any_operator.hpp"
#include "rung/core/require.hpp"
#include "rung/ops/norm/op/axes.hpp"

namespace rung {
namespace {

// Initialised before any dynamic initialiser runs, so rungs of any file may push themselves.
constinit RungList<NormBackward> rung_list;
const Operator<NormBackward> self;

constexpr std::string_view op = NormBackward::name;

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
  const auto strides = [&](const auto& tensor) {  // what is absent moves with x
    return tensor.data != nullptr ? tensor.strides : args.x.strides;
  };
  return {collapse<5>(args.x.shape,
                      {args.x.strides, args.dy.strides, args.dx.strides, strides(args.mean),
                       strides(args.rstd)},
                      ~args.normalised, AxisOrder::by_stride),
          collapse<6>(args.x.shape,
                      {args.x.strides, args.dy.strides, args.dx.strides, strides(args.gamma),
                       strides(args.dgamma), strides(args.dbeta)},
                      args.normalised, AxisOrder::by_stride)};
}

NormBackward::Args NormBackward::bind(NormKind kind, const ConstTensorRef& dy,
                                      const ConstTensorRef& x, const TensorRef& dx,
                                      const NormBackwardOptions& options) {
  require_tensor(op, x, "x");
  require_tensor(op, dy, "dy");
  require_tensor(op, dx, "dx");
  Args args;
  args.kind = kind;
  args.epsilon = options.epsilon;
  args.normalised = norm_axes::chosen(op, options.axis, options.axes, x.rank());
  require_shape(op, dy, "dy", x.shape);
  require_shape(op, dx, "dx", x.shape);
  require_writable(op, dx, "dx");
  args.x = x;
  args.dy = dy;
  args.dx = dx;
  const auto spread = [&](const auto& tensor, std::string_view tensor_name, AxisSet set,
                          bool keeps_ones) {
    return norm_axes::spread(op, tensor, tensor_name, x.shape, set, keeps_ones);
  };
  args.gamma = spread(options.gamma, "gamma", args.normalised, false);
  args.mean = spread(options.mean, "mean", ~args.normalised, true);
  args.rstd = spread(options.rstd, "rstd", ~args.normalised, true);
  args.dgamma = spread(options.dgamma, "dgamma", args.normalised, false);
  args.dbeta = spread(options.dbeta, "dbeta", args.normalised, false);
  return args;
}

bool NormBackward::rebase(Args& args, NormKind, const ConstTensorRef& dy, const ConstTensorRef& x,
                          const TensorRef& dx, const NormBackwardOptions& options) {
  bool changed = false;
  const auto set = [&](auto& tensor, const auto& given) {
    changed = changed || tensor.data != given.data;
    tensor.data = given.data;
  };
  set(args.x, x);
  set(args.dy, dy);
  set(args.dx, dx);
  set(args.gamma, options.gamma);
  set(args.mean, options.mean);
  set(args.rstd, options.rstd);
  set(args.dgamma, options.dgamma);
  set(args.dbeta, options.dbeta);
  return changed;
}

void NormBackward::validate(const Args& args, const Context& context) {
  const DType type = args.x.dtype;
  const DType arithmetic = type == DType::f64 ? DType::f64 : DType::f32;
  if (!norm_axes::epsilon_fits(args.epsilon, arithmetic)) {
    reject(op, fmt::format("epsilon is {}; accepted: 0 or more, finite in {}", args.epsilon,
                           to_string(arithmetic)));
  }
  require_here(op, args.x, "x", context);
  require_dtype(op, args.x, "x", {DType::f32, DType::f64, DType::f16, DType::bf16});
  const auto check = [&](const ConstTensorRef& tensor, std::string_view tensor_name,
                         std::initializer_list<DType> types) {
    if (!is_given(tensor)) return;
    require_here(op, tensor, tensor_name, context);
    require_dtype(op, tensor, tensor_name, types);
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

void NormBackward::check_aliasing(const Args& args) {
  struct Named {
    ConstTensorRef tensor;
    std::string_view name;
  };
  const auto whole = [&](const ConstTensorRef& tensor, std::string_view tensor_name, AxisSet set) {
    if (tensor.data == nullptr) return Named{{}, tensor_name};
    return Named{norm_axes::restricted(tensor, set), tensor_name};
  };
  const Named dx{args.dx, "dx"};
  const Named written[] = {dx, whole(args.dgamma, "dgamma", args.normalised),
                           whole(args.dbeta, "dbeta", args.normalised)};
  const Named read[] = {{args.dy, "dy"},
                        {args.x, "x"},
                        whole(args.gamma, "gamma", args.normalised),
                        whole(args.mean, "mean", ~args.normalised),
                        whole(args.rstd, "rstd", ~args.normalised)};
  for (const Named& out : written) {
    if (out.tensor.data == nullptr) continue;
    for (const Named& in : read) {
      if (in.tensor.data == nullptr) continue;
      const bool may_be = out.name == "dx" && (in.name == "dy" || in.name == "x");
      if (may_be && same_place(out.tensor, in.tensor)) continue;
      require_apart(op, out.tensor, out.name, in.tensor, in.name);
    }
    for (const Named& other : written) {
      if (&other <= &out || other.tensor.data == nullptr) continue;
      require_apart(op, out.tensor, out.name, other.tensor, other.name);
    }
  }
}

bool NormBackward::writes_nothing(const Args& args) {
  const auto empty = [&](const TensorRef& per_column) {
    return per_column.data == nullptr || norm_axes::restricted(per_column, args.normalised).empty();
  };
  return args.dx.empty() && empty(args.dgamma) && empty(args.dbeta);
}

NormBackward::Given NormBackward::given(const Args& args) {
  Given given{args.kind, args.dy, args.x, args.dx, {}};
  given.options.epsilon = args.epsilon;
  given.options.axis = 0;
  while (!norm_axes::holds(args.normalised, given.options.axis)) ++given.options.axis;
  given.options.axes = norm_axes::part(args.x.shape, args.normalised).rank;
  const auto restrict = [&](auto& to, const auto& from, AxisSet set) {
    if (from.data != nullptr) to = norm_axes::restricted(from, set);
  };
  restrict(given.options.gamma, args.gamma, args.normalised);
  restrict(given.options.mean, args.mean, ~args.normalised);
  restrict(given.options.rstd, args.rstd, ~args.normalised);
  restrict(given.options.dgamma, args.dgamma, args.normalised);
  restrict(given.options.dbeta, args.dbeta, args.normalised);
  return given;
}

void NormBackward::call(Context& context, const Given& given) {
  rung::call<NormBackward>(context, best, given.kind, given.dy, given.x, given.dx, given.options);
}

void layer_norm_backward(Context& context, const ConstTensorRef& dy, const ConstTensorRef& x,
                         const TensorRef& dx, const NormBackwardOptions& options, Pick pick) {
  call<NormBackward>(context, pick, NormKind::layer, dy, x, dx, options);
}

void rms_norm_backward(Context& context, const ConstTensorRef& dy, const ConstTensorRef& x,
                       const TensorRef& dx, const NormBackwardOptions& options, Pick pick) {
  call<NormBackward>(context, pick, NormKind::rms, dy, x, dx, options);
}

}  // namespace rung
