// SPDX-License-Identifier: Apache-2.0
// optimizer: operator object, list of rungs, and validation of arguments.
#include "rung/ops/optimizer/op/optimizer.hpp"

#include <fmt/format.h>

#include <cmath>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"

namespace rung {
namespace {

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<Optimizer> rung_list;
const Operator<Optimizer> self;

constexpr std::string_view op = Optimizer::name;

void require_not_negative(double value, std::string_view what) {
  if (value >= 0 && std::isfinite(static_cast<float>(value))) return;
  reject(op, fmt::format("{} is {}; accepted: 0 or more, finite in f32", what, value));
}
void require_below_1(double value, std::string_view what) {
  if (value >= 0 && value < 1) return;
  reject(op, fmt::format("{} is {}; accepted: 0 or more, below 1", what, value));
}

void check_numbers(const OptimizerOptions& o) {
  require_choice(op, o.kind, OptimizerKind::adam, "kind");
  require_not_negative(o.learning_rate, "learning_rate");
  require_not_negative(o.weight_decay, "weight_decay");
  require_not_negative(o.max_norm, "max_norm");
  require_not_negative(o.epsilon, "epsilon");
  require_below_1(o.momentum, "momentum");
  require_below_1(o.beta1, "beta1");
  require_below_1(o.beta2, "beta2");
  if (o.step < 1) reject(op, fmt::format("step is {}; accepted: 1 or more", o.step));
  if (o.nesterov && o.momentum == 0) {
    reject(op, "nesterov is set and momentum 0; accepted: with a momentum");
  }
  if (o.kind == OptimizerKind::adam && o.momentum != 0) {
    reject(op,
           fmt::format("momentum is {} and kind adam; accepted: 0 (adam's is beta1)", o.momentum));
  }
}

/// Throws Error if the tensor is missing although `wanted`, or given although not `wanted`, or does
/// not have the parameters' shape and the arithmetic type.
void check_state(const Optimizer::Args& args, const TensorRef& tensor, std::string_view name,
                 bool wanted, std::string_view with) {
  if (is_given(tensor) != wanted) {
    reject(op, fmt::format("{} is {}; accepted: {}", name, wanted ? "left out" : "given",
                           wanted ? fmt::format("given, {}", with)
                                  : fmt::format("left out, unless {}", with)));
  }
  if (!wanted) return;
  require_shape(op, tensor, name, args.parameters.shape);
  require_dtype(op, tensor, name, {args.parameters.dtype == DType::f64 ? DType::f64 : DType::f32});
}

OptimizerOptions with_kind(OptimizerOptions options, OptimizerKind kind) {
  options.kind = kind;
  return options;
}

}  // namespace

RungList<Optimizer>& Optimizer::rungs() { return rung_list; }

void Optimizer::bind(Args& args) {
  const OptimizerOptions& o = args.options;
  check_numbers(o);
  const DType type = args.parameters.dtype;
  require_dtype(op, args.parameters, "parameters",
                {DType::f32, DType::f64, DType::f16, DType::bf16});
  require_shape(op, args.gradients, "gradients", args.parameters.shape);
  require_dtype(op, args.gradients, "gradients", {type});
  const bool adam = o.kind == OptimizerKind::adam;
  check_state(args, o.first_moment, "first_moment", adam || o.momentum != 0,
              "with adam or a momentum");
  check_state(args, o.second_moment, "second_moment", adam, "with adam");
  if (is_given(o.master)) {
    const bool small = type == DType::f16 || type == DType::bf16;
    check_state(args, o.master, "master", small, "parameters are f16 or bf16");
  }
  if (is_given(o.norm)) {
    if (o.norm.size() != 1) {
      reject(op, fmt::format("norm is {}, of {} elements; accepted: one element",
                             to_string(o.norm.shape), o.norm.size()));
    }
    require_dtype(op, o.norm, "norm", {type == DType::f64 ? DType::f64 : DType::f32});
  }
  const auto strides = [&](const TensorRef& tensor) {
    return is_given(tensor) ? tensor.strides : args.parameters.strides;
  };
  args.elements =
      collapse<5>(args.parameters.shape,
                  {args.parameters.strides, args.gradients.strides, strides(o.first_moment),
                   strides(o.second_moment), strides(o.master)},
                  all_axes, AxisOrder::by_stride);
}

void optimizer(Context& context, const TensorRef& parameters, const ConstTensorRef& gradients,
               const OptimizerOptions& options, Pick pick) {
  call<Optimizer>(context, {parameters, gradients, options}, pick);
}

void sgd_step(Context& context, const TensorRef& parameters, const ConstTensorRef& gradients,
              const OptimizerOptions& options, Pick pick) {
  optimizer(context, parameters, gradients, with_kind(options, OptimizerKind::sgd), pick);
}
void adam_step(Context& context, const TensorRef& parameters, const ConstTensorRef& gradients,
               const OptimizerOptions& options, Pick pick) {
  optimizer(context, parameters, gradients, with_kind(options, OptimizerKind::adam), pick);
}

}  // namespace rung
