// SPDX-License-Identifier: Apache-2.0
// elementwise: operator object, list of rungs, and validation of arguments.
#include "rung/ops/elementwise/op/elementwise.hpp"

#include <fmt/format.h>

#include <string>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"

namespace rung {
namespace {

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<Elementwise> rung_list;
const Operator<Elementwise> self;

constexpr const char* operand_names[] = {"x", "y", "w"};

/// Returns an operand with z's shape, with stride 0 along repeated axes.
ConstTensorRef spread(const ConstTensorRef& operand, const TensorRef& z, const char* name) {
  ConstTensorRef result = operand;
  result.shape = z.shape;
  result.strides = z.shape;
  const int missing = z.rank() - operand.rank();
  bool fits = missing >= 0;
  std::string difference = "more axes than z has";
  for (int axis = 0; fits && axis < z.rank(); ++axis) {
    const bool there = axis >= missing;
    const bool equal = there && operand.shape[axis - missing] == z.shape[axis];
    fits = !there || equal || operand.shape[axis - missing] == 1;
    if (!fits) {
      difference = fmt::format("the extents {} (axis {}) and {} (z's axis {}) differ",
                               operand.shape[axis - missing], axis - missing, z.shape[axis], axis);
    }
    result.strides[axis] = equal ? operand.strides[axis - missing] : 0;
  }
  if (!fits) {
    reject(Elementwise::name,
           fmt::format("{} is {}, z is {}: {}; accepted: axes that, matched from the last one "
                       "backwards, equal z's or are 1",
                       name, to_string(operand.shape), to_string(z.shape), difference));
  }
  return result;
}

bool takes_integers(ElementwiseFunction function) {
  using enum ElementwiseFunction;
  return function == add || function == sub || function == mul || function == fma ||
         function == relu;
}

}  // namespace

RungList<Elementwise>& Elementwise::rungs() { return rung_list; }

void Elementwise::bind(Args& args) {
  using enum DType;
  const std::string_view function = to_string(args.function);
  require_choice(name, args.function, ElementwiseFunction::sign, "function");
  if (args.alpha != 1.0 && args.function != ElementwiseFunction::axpy) {
    reject(name, fmt::format("alpha is {}, but {} has none; accepted: 1, or the function axpy",
                             args.alpha, function));
  }
  if (takes_integers(args.function)) {
    require_dtype(name, args.z, "z", {f32, f64, f16, bf16, i32, i64, u8});
  } else if (!is_floating(args.z.dtype) || size_of(args.z.dtype) == 1) {
    reject(name, fmt::format("z is {}; accepted for {}: f32, f64, f16, bf16",
                             to_string(args.z.dtype), function));
  }
  std::array<Extents, 4> strides;
  strides[0] = args.z.strides;
  for (std::size_t i = 0; i < 3; ++i) {
    ConstTensorRef& operand = args.in[i];
    const bool wanted = static_cast<int>(i) < args.arity();
    if (is_given(operand) && !wanted) {
      reject(name, fmt::format("{} is given, but {} reads {} tensor{}", operand_names[i], function,
                               args.arity(), args.arity() == 1 ? "" : "s"));
    }
    // A tensor without axes is a scalar; one without data as well was not given.
    if (wanted && !is_given(operand) && !args.z.empty()) {
      reject(name, fmt::format("{} is missing; {} reads {} tensors", operand_names[i], function,
                               args.arity()));
    }
    if (wanted) require_dtype(name, operand, operand_names[i], {args.z.dtype});
    operand = spread(operand, args.z, operand_names[i]);
    strides[i + 1] = operand.strides;
  }
  args.layout = collapse<4>(args.z.shape, strides, all_axes, AxisOrder::by_stride);
}

void elementwise(Context& context, const ElementwiseInputs& inputs, const TensorRef& z,
                 const ElementwiseOptions& options, Pick pick) {
  call<Elementwise>(context, pick, [&]<class Call>() {
    return Call{.in = {inputs.x, inputs.y, inputs.w},
                .z = z,
                .function = options.function,
                .alpha = options.alpha};
  });
}

void add(Context& context, const ConstTensorRef& x, const ConstTensorRef& y, const TensorRef& z,
         Pick pick) {
  elementwise(context, {x, y}, z, {ElementwiseFunction::add}, pick);
}
void subtract(Context& context, const ConstTensorRef& x, const ConstTensorRef& y,
              const TensorRef& z, Pick pick) {
  elementwise(context, {x, y}, z, {ElementwiseFunction::sub}, pick);
}
void multiply(Context& context, const ConstTensorRef& x, const ConstTensorRef& y,
              const TensorRef& z, Pick pick) {
  elementwise(context, {x, y}, z, {ElementwiseFunction::mul}, pick);
}
void divide(Context& context, const ConstTensorRef& x, const ConstTensorRef& y, const TensorRef& z,
            Pick pick) {
  elementwise(context, {x, y}, z, {ElementwiseFunction::div}, pick);
}
void axpy(Context& context, double alpha, const ConstTensorRef& x, const ConstTensorRef& y,
          const TensorRef& z, Pick pick) {
  elementwise(context, {x, y}, z, {ElementwiseFunction::axpy, alpha}, pick);
}
void multiply_add(Context& context, const ConstTensorRef& x, const ConstTensorRef& y,
                  const ConstTensorRef& w, const TensorRef& z, Pick pick) {
  elementwise(context, {x, y, w}, z, {ElementwiseFunction::fma}, pick);
}
void relu(Context& context, const ConstTensorRef& x, const TensorRef& z, Pick pick) {
  elementwise(context, {x}, z, {ElementwiseFunction::relu}, pick);
}
void sigmoid(Context& context, const ConstTensorRef& x, const TensorRef& z, Pick pick) {
  elementwise(context, {x}, z, {ElementwiseFunction::sigmoid}, pick);
}
void tanh(Context& context, const ConstTensorRef& x, const TensorRef& z, Pick pick) {
  elementwise(context, {x}, z, {ElementwiseFunction::tanh}, pick);
}
void gelu(Context& context, const ConstTensorRef& x, const TensorRef& z, Pick pick) {
  elementwise(context, {x}, z, {ElementwiseFunction::gelu}, pick);
}
void silu(Context& context, const ConstTensorRef& x, const TensorRef& z, Pick pick) {
  elementwise(context, {x}, z, {ElementwiseFunction::silu}, pick);
}
void exp(Context& context, const ConstTensorRef& x, const TensorRef& z, Pick pick) {
  elementwise(context, {x}, z, {ElementwiseFunction::exp}, pick);
}
void sign(Context& context, const ConstTensorRef& x, const TensorRef& z, Pick pick) {
  elementwise(context, {x}, z, {ElementwiseFunction::sign}, pick);
}

}  // namespace rung
