// SPDX-License-Identifier: Apache-2.0
// norm: the operator's object, its rung list, and what every call goes through.
#include "rung/ops/norm/norm.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "rung/core/any_operator.hpp"
#include "rung/core/require.hpp"
#include "rung/ops/norm/op/axes.hpp"

namespace rung {
namespace {

// Initialised before any dynamic initialiser runs, so rungs of any file may push themselves.
constinit RungList<Norm> rung_list;
const Operator<Norm> self;

constexpr std::string_view op = Norm::name;

void require_like_x(const ConstTensorRef& tensor, std::string_view name, const ConstTensorRef& x) {
  require_tensor(op, tensor, name);
  require_shape(op, tensor, name, x.shape);
}

/// The same elements in the same places, or none in common.
void require_in_place_or_apart(const ConstTensorRef& written, std::string_view written_name,
                               const ConstTensorRef& read, std::string_view read_name) {
  if (read.data == nullptr || same_place(written, read)) return;
  if (!byte_range(written).overlaps(byte_range(read))) return;
  reject(op, fmt::format("{} overlaps {} without being the same tensor; accepted: the same, or "
                         "disjoint memory",
                         written_name, read_name));
}

}  // namespace

RungList<Norm>& Norm::rungs() { return rung_list; }

Norm::Args Norm::bind(NormKind kind, const ConstTensorRef& x, const TensorRef& y,
                      const NormOptions& options) {
  require_tensor(op, x, "x");
  Args args;
  args.kind = kind;
  args.epsilon = options.epsilon;
  args.normalised = norm_axes::chosen(op, options.axis, options.axes, x.rank());
  args.x = x;
  require_like_x(y, "y", x);
  require_writable(op, y, "y");
  args.y = y;
  if (is_given(options.residual)) {
    require_like_x(options.residual, "residual", x);
    args.residual = options.residual;
  }
  if (is_given(options.sum)) {
    require_like_x(options.sum, "sum", x);
    require_writable(op, options.sum, "sum");
    args.sum = options.sum;
  }
  const auto spread = [&](const auto& tensor, std::string_view tensor_name, AxisSet set,
                          bool keeps_ones) {
    return norm_axes::spread(op, tensor, tensor_name, x.shape, set, keeps_ones);
  };
  args.gamma = spread(options.gamma, "gamma", args.normalised, false);
  args.beta = spread(options.beta, "beta", args.normalised, false);
  args.mean = spread(options.mean, "mean", ~args.normalised, true);
  args.rstd = spread(options.rstd, "rstd", ~args.normalised, true);
  return args;
}

bool Norm::rebase(Args& args, NormKind, const ConstTensorRef& x, const TensorRef& y,
                  const NormOptions& options) {
  bool changed = false;
  const auto set = [&](auto& tensor, const auto& given) {
    changed = changed || tensor.data != given.data;
    tensor.data = given.data;
  };
  set(args.x, x);
  set(args.y, y);
  set(args.residual, options.residual);
  set(args.sum, options.sum);
  set(args.gamma, options.gamma);
  set(args.beta, options.beta);
  set(args.mean, options.mean);
  set(args.rstd, options.rstd);
  return changed;
}

void Norm::validate(const Args& args, const Context& context) {
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
  if (args.sum.data != nullptr && args.residual.data == nullptr) {
    reject(op, "sum is given without a residual; accepted: both, or the residual alone");
  }
  if (args.mean.data != nullptr && args.kind == NormKind::rms) {
    reject(op, "mean is given to rms_norm, which computes none; accepted: rstd alone");
  }
}

void Norm::check_aliasing(const Args& args) {
  const auto whole = [&](const ConstTensorRef& tensor, AxisSet set) {
    return tensor.data == nullptr ? ConstTensorRef{} : norm_axes::restricted(tensor, set);
  };
  const ConstTensorRef mean = whole(args.mean, ~args.normalised);
  const ConstTensorRef rstd = whole(args.rstd, ~args.normalised);
  const ConstTensorRef gamma = whole(args.gamma, args.normalised);
  const ConstTensorRef beta = whole(args.beta, args.normalised);
  struct Named {
    ConstTensorRef tensor;
    std::string_view name;
  };
  const Named written[] = {{args.y, "y"}, {args.sum, "sum"}, {mean, "mean"}, {rstd, "rstd"}};
  for (const Named& out : written) {
    if (out.tensor.data == nullptr) continue;
    const bool elementwise = out.name == "y" || out.name == "sum";
    for (const Named& in : {Named{args.x, "x"}, Named{args.residual, "residual"}}) {
      if (in.tensor.data == nullptr) continue;
      if (elementwise) {
        require_in_place_or_apart(out.tensor, out.name, in.tensor, in.name);
      } else {
        require_apart(op, out.tensor, out.name, in.tensor, in.name);
      }
    }
    for (const Named& in : {Named{gamma, "gamma"}, Named{beta, "beta"}}) {
      if (in.tensor.data != nullptr) require_apart(op, out.tensor, out.name, in.tensor, in.name);
    }
    for (const Named& other : written) {
      if (&other <= &out || other.tensor.data == nullptr) continue;
      require_apart(op, out.tensor, out.name, other.tensor, other.name);
    }
  }
}

bool Norm::writes_nothing(const Args& args) {
  const auto empty = [&](const TensorRef& per_row) {
    return per_row.data == nullptr || norm_axes::restricted(per_row, ~args.normalised).empty();
  };
  return args.y.empty() && empty(args.mean) && empty(args.rstd);
}

Norm::Given Norm::given(const Args& args) {
  Given given{args.kind, args.x, args.y, {}};
  given.options.epsilon = args.epsilon;
  given.options.axis = 0;
  while (!norm_axes::holds(args.normalised, given.options.axis)) ++given.options.axis;
  given.options.axes = norm_axes::part(args.x.shape, args.normalised).rank;
  given.options.residual = args.residual;
  given.options.sum = args.sum;
  const auto restrict = [&](auto& to, const auto& from, AxisSet set) {
    if (from.data != nullptr) to = norm_axes::restricted(from, set);
  };
  restrict(given.options.gamma, args.gamma, args.normalised);
  restrict(given.options.beta, args.beta, args.normalised);
  restrict(given.options.mean, args.mean, ~args.normalised);
  restrict(given.options.rstd, args.rstd, ~args.normalised);
  return given;
}

void Norm::call(Context& context, const Given& given) {
  rung::call<Norm>(context, best, given.kind, given.x, given.y, given.options);
}

void layer_norm(Context& context, const ConstTensorRef& x, const TensorRef& y,
                const NormOptions& options, Pick pick) {
  call<Norm>(context, pick, NormKind::layer, x, y, options);
}

void rms_norm(Context& context, const ConstTensorRef& x, const TensorRef& y,
              const NormOptions& options, Pick pick) {
  call<Norm>(context, pick, NormKind::rms, x, y, options);
}

}  // namespace rung
