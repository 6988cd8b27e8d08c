// SPDX-License-Identifier: Apache-2.0
// elementwise: the operator's object, its rung list, and what every call goes through.
#include "rung/ops/elementwise/elementwise.hpp"

#include <fmt/format.h>

#include <string>

#include "rung/core/any_operator.hpp"
#include "rung/core/require.hpp"

namespace rung {
namespace {

// Initialised before any dynamic initialiser runs, so rungs of any file may push themselves.
constinit RungList<Elementwise> rung_list;
const Operator<Elementwise> self;

constexpr const char* operand_names[] = {"x", "y", "w"};

/// An operand with z's shape: stride 0 along axes that repeat.
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

Elementwise::Args Elementwise::bind(const ElementwiseInputs& inputs, const TensorRef& z,
                                    const ElementwiseOptions& options) {
  require_tensor(name, z, "z");
  require_choice(name, options.function, ElementwiseFunction::exp, "function");
  if (options.alpha != 1.0 && options.function != ElementwiseFunction::axpy) {
    reject(name, fmt::format("alpha is {}, but {} has none; accepted: 1, or the function axpy",
                             options.alpha, to_string(options.function)));
  }
  Args args;
  args.z = z;
  args.function = options.function;
  args.alpha = options.alpha;
  const ConstTensorRef* operands[] = {&inputs.x, &inputs.y, &inputs.w};
  std::array<Extents, 4> strides;
  strides[0] = z.strides;
  for (std::size_t i = 0; i < 3; ++i) {
    const bool given = is_given(*operands[i]);
    const bool wanted = static_cast<int>(i) < args.arity();
    if (given && !wanted) {
      reject(name,
             fmt::format("{} is given, but {} reads {} tensor{}", operand_names[i],
                         to_string(args.function), args.arity(), args.arity() == 1 ? "" : "s"));
    }
    // A tensor without axes is a scalar; one without data too was not given at all.
    if (wanted && !given && !z.empty()) {
      reject(name, fmt::format("{} is missing; {} reads {} tensors", operand_names[i],
                               to_string(args.function), args.arity()));
    }
    if (given) require_tensor(name, *operands[i], operand_names[i]);
    if (wanted) {
      args.in[i] = spread(*operands[i], z, operand_names[i]);
      strides[i + 1] = args.in[i].strides;
    } else {
      args.in[i].shape = z.shape;
      args.in[i].strides = z.shape;
      for (int axis = 0; axis < z.rank(); ++axis) args.in[i].strides[axis] = 0;
      strides[i + 1] = args.in[i].strides;
    }
  }
  args.layout = collapse<4>(z.shape, strides, all_axes, AxisOrder::by_stride);
  return args;
}

void Elementwise::validate(const Args& args, const Context& context) {
  using enum DType;
  if (takes_integers(args.function)) {
    require_dtype(name, args.z, "z", {f32, f64, f16, bf16, i32, i64, u8});
  } else if (!is_floating(args.z.dtype) || size_of(args.z.dtype) == 1) {
    reject(name, fmt::format("z is {}; accepted for {}: f32, f64, f16, bf16",
                             to_string(args.z.dtype), to_string(args.function)));
  }
  require_here(name, args.z, "z", context);
  for (int i = 0; i < args.arity(); ++i) {
    const ConstTensorRef& operand = args.in[static_cast<std::size_t>(i)];
    require_dtype(name, operand, operand_names[i], {args.z.dtype});
    require_here(name, operand, operand_names[i], context);
  }
  require_writable(name, args.z, "z");
}

void Elementwise::check_aliasing(const Args& args) {
  for (int i = 0; i < args.arity(); ++i) {
    const ConstTensorRef& operand = args.in[static_cast<std::size_t>(i)];
    if (same_place(operand, args.z)) continue;
    require_apart(name, args.z, "z", operand, operand_names[i]);
  }
}

Elementwise::Given Elementwise::given(const Args& args) {
  Given given;
  given.z = args.z;
  given.options = {.function = args.function, .alpha = args.alpha};
  given.inputs.x = args.in[0];
  if (args.arity() > 1) given.inputs.y = args.in[1];
  if (args.arity() > 2) given.inputs.w = args.in[2];
  return given;
}

void Elementwise::call(Context& context, const Given& given) {
  elementwise(context, given.inputs, given.z, given.options);
}

void elementwise(Context& context, const ElementwiseInputs& inputs, const TensorRef& z,
                 const ElementwiseOptions& options, Pick pick) {
  call<Elementwise>(context, pick, inputs, z, options);
}

}  // namespace rung
