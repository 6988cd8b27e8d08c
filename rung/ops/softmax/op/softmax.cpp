// SPDX-License-Identifier: Apache-2.0
// softmax: the operator's object, its rung list, and what every call goes through.
#include "rung/ops/softmax/softmax.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "rung/core/any_operator.hpp"
#include "rung/core/require.hpp"

namespace rung {
namespace {

// Initialised before any dynamic initialiser runs, so rungs of any file may push themselves.
constinit RungList<Softmax> rung_list;
const Operator<Softmax> self;

/// The names under which a caller knows the three tensors.
struct Names {
  const char *x, *dy, *y;
};
Names names_of(const Softmax::Args& args) {
  return args.backward ? Names{"y", "dy", "dx"} : Names{"x", "", "y"};
}

Softmax::Args make_args(const ConstTensorRef& x, const ConstTensorRef& dy, const TensorRef& y,
                        const SoftmaxOptions& options, bool backward) {
  Softmax::Args args;
  args.x = x;
  args.dy = dy;
  args.y = y;
  args.scale = options.scale;
  args.log = options.log;
  args.backward = backward;
  const Names names = names_of(args);
  require_tensor(Softmax::name, x, names.x);
  if (backward) require_tensor(Softmax::name, dy, names.dy);
  require_tensor(Softmax::name, y, names.y);
  if (x.rank() == 0) {
    reject(Softmax::name, fmt::format("{} has no axis; accepted: 1 to {} axes", names.x, max_rank));
  }
  args.axis = require_axis(Softmax::name, options.axis, x.rank());
  if (backward) require_shape(Softmax::name, dy, names.dy, x.shape);
  require_shape(Softmax::name, y, names.y, x.shape);
  args.rows =
      rows_along<3>(x.shape, {x.strides, backward ? dy.strides : x.strides, y.strides}, args.axis);
  return args;
}

bool accepts_output(DType in, DType out, bool backward) {
  const auto is_small = [](DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; };
  if (in == out) return true;
  return backward ? in == DType::f32 && is_small(out) : is_small(in) && out == DType::f32;
}

}  // namespace

RungList<Softmax>& Softmax::rungs() { return rung_list; }

Softmax::Args Softmax::bind(const ConstTensorRef& x, const TensorRef& y,
                            const SoftmaxOptions& options) {
  return make_args(x, {}, y, options, false);
}
Softmax::Args Softmax::bind(const ConstTensorRef& y, const ConstTensorRef& dy, const TensorRef& dx,
                            const SoftmaxOptions& options) {
  return make_args(y, dy, dx, options, true);
}

void Softmax::validate(const Args& args, const Context& context) {
  const Names names = names_of(args);
  require_dtype(name, args.x, names.x, {DType::f32, DType::f64, DType::f16, DType::bf16});
  if (args.backward) require_dtype(name, args.dy, names.dy, {args.x.dtype});
  if (!accepts_output(args.x.dtype, args.y.dtype, args.backward)) {
    reject(name, fmt::format("{} is {} and {} {}; accepted: the same{}", names.x,
                             to_string(args.x.dtype), names.y, to_string(args.y.dtype),
                             args.backward ? ", or f16 or bf16 for dx where y and dy are f32"
                                           : ", or f32 for y where x is f16 or bf16"));
  }
  if (!(args.scale > 0) || !std::isfinite(args.scale) ||
      !(static_cast<float>(args.scale) > 0 && std::isfinite(static_cast<float>(args.scale)))) {
    reject(name,
           fmt::format("scale is {}; accepted: above 0 and within the range of f32", args.scale));
  }
  require_here(name, args.x, names.x, context);
  if (args.backward) require_here(name, args.dy, names.dy, context);
  require_here(name, args.y, names.y, context);
  require_writable(name, args.y, names.y);
}

void Softmax::check_aliasing(const Args& args) {
  const Names names = names_of(args);
  if (!same_place(args.y, args.x)) require_apart(name, args.y, names.y, args.x, names.x);
  if (args.backward && !same_place(args.y, args.dy)) {
    require_apart(name, args.y, names.y, args.dy, names.dy);
  }
}

Softmax::Given Softmax::given(const Args& args) {
  Given given{args.x, args.dy, args.y, {}, args.backward};
  given.options = {.axis = args.axis, .scale = args.scale, .log = args.log};
  return given;
}

void Softmax::call(Context& context, const Given& given) {
  if (given.backward) {
    softmax_backward(context, given.x, given.dy, given.y, given.options);
  } else {
    softmax(context, given.x, given.y, given.options);
  }
}

void softmax(Context& context, const ConstTensorRef& x, const TensorRef& y,
             const SoftmaxOptions& options, Pick pick) {
  call<Softmax>(context, pick, x, y, options);
}

void softmax_backward(Context& context, const ConstTensorRef& y, const ConstTensorRef& dy,
                      const TensorRef& dx, const SoftmaxOptions& options, Pick pick) {
  call<Softmax>(context, pick, y, dy, dx, options);
}

}  // namespace rung
