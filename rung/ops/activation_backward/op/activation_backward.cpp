// SPDX-License-Identifier: Apache-2.0
// activation_backward: operator object, list of rungs, and validation of arguments.
#include "rung/ops/activation_backward/op/activation_backward.hpp"

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"

namespace rung {
namespace {

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<ActivationBackward> rung_list;
const Operator<ActivationBackward> self;

}  // namespace

std::string_view to_string(ActivationFunction function) noexcept {
  switch (function) {
    case ActivationFunction::sign:
      return "sign";
    case ActivationFunction::sigmoid:
      return "sigmoid";
    case ActivationFunction::tanh:
      return "tanh";
    case ActivationFunction::relu:
      return "relu";
    case ActivationFunction::gelu:
      return "gelu";
    case ActivationFunction::silu:
      return "silu";
  }
  return "?";
}

RungList<ActivationBackward>& ActivationBackward::rungs() { return rung_list; }

void ActivationBackward::bind(Args& args) {
  require_choice(name, args.function, ActivationFunction::silu, "function");
  require_shape(name, args.dy, "dy", args.saved.shape);
  require_shape(name, args.dx, "dx", args.saved.shape);
  require_dtype(name, args.saved, "saved", {DType::f32, DType::f64, DType::f16, DType::bf16});
  require_dtype(name, args.dy, "dy", {args.saved.dtype});
  require_dtype(name, args.dx, "dx", {args.saved.dtype});
  args.elements = collapse<3>(args.dx.shape, {args.dx.strides, args.saved.strides, args.dy.strides},
                              all_axes, AxisOrder::by_stride);
}

void activation_backward(Context& context, const ConstTensorRef& saved, const ConstTensorRef& dy,
                         const TensorRef& dx, const ActivationBackwardOptions& options, Pick pick) {
  call<ActivationBackward>(context, {saved, dy, dx, options.function}, pick);
}

void sign_backward(Context& context, const ConstTensorRef& saved, const ConstTensorRef& dy,
                   const TensorRef& dx, Pick pick) {
  activation_backward(context, saved, dy, dx, {ActivationFunction::sign}, pick);
}
void sigmoid_backward(Context& context, const ConstTensorRef& saved, const ConstTensorRef& dy,
                      const TensorRef& dx, Pick pick) {
  activation_backward(context, saved, dy, dx, {ActivationFunction::sigmoid}, pick);
}
void tanh_backward(Context& context, const ConstTensorRef& saved, const ConstTensorRef& dy,
                   const TensorRef& dx, Pick pick) {
  activation_backward(context, saved, dy, dx, {ActivationFunction::tanh}, pick);
}
void relu_backward(Context& context, const ConstTensorRef& saved, const ConstTensorRef& dy,
                   const TensorRef& dx, Pick pick) {
  activation_backward(context, saved, dy, dx, {ActivationFunction::relu}, pick);
}
void gelu_backward(Context& context, const ConstTensorRef& saved, const ConstTensorRef& dy,
                   const TensorRef& dx, Pick pick) {
  activation_backward(context, saved, dy, dx, {ActivationFunction::gelu}, pick);
}
void silu_backward(Context& context, const ConstTensorRef& saved, const ConstTensorRef& dy,
                   const TensorRef& dx, Pick pick) {
  activation_backward(context, saved, dy, dx, {ActivationFunction::silu}, pick);
}

}  // namespace rung
