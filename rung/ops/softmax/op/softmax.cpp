// SPDX-License-Identifier: Apache-2.0
// softmax: the operator's object, its rung list, and what every call goes through.
#include "rung/ops/softmax/op/softmax.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"

namespace rung {
namespace {

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<Softmax> rung_list;
const Operator<Softmax> self;

bool accepts_output(DType in, DType out, bool backward) {
  const auto is_small = [](DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; };
  if (in == out) return true;
  return backward ? in == DType::f32 && is_small(out) : is_small(in) && out == DType::f32;
}

}  // namespace

RungList<Softmax>& Softmax::rungs() { return rung_list; }

void Softmax::bind(Args& args) {
  const std::string_view x = args.backward ? "y" : "x";
  const std::string_view y = args.backward ? "dx" : "y";
  const Extents& shape = args.x.shape;
  if (shape.rank == 0) {
    reject(name, fmt::format("{} has no axis; accepted: 1 to {} axes", x, max_rank));
  }
  args.axis = require_axis(name, args.axis, shape.rank);
  if (args.backward) require_shape(name, args.dy, "dy", shape);
  require_shape(name, args.y, y, shape);
  require_dtype(name, args.x, x, {DType::f32, DType::f64, DType::f16, DType::bf16});
  if (args.backward) require_dtype(name, args.dy, "dy", {args.x.dtype});
  if (!accepts_output(args.x.dtype, args.y.dtype, args.backward)) {
    reject(name, fmt::format("{} is {} and {} {}; accepted: the same{}", x, to_string(args.x.dtype),
                             y, to_string(args.y.dtype),
                             args.backward ? ", or f16 or bf16 for dx where y and dy are f32"
                                           : ", or f32 for y where x is f16 or bf16"));
  }
  if (!(args.scale > 0) || !std::isfinite(args.scale) ||
      !(static_cast<float>(args.scale) > 0 && std::isfinite(static_cast<float>(args.scale)))) {
    reject(name,
           fmt::format("scale is {}; accepted: above 0 and within the range of f32", args.scale));
  }
  const Extents& dy_strides = args.backward ? args.dy.strides : args.x.strides;
  args.rows = rows_along<3>(shape, {args.x.strides, dy_strides, args.y.strides}, args.axis);
}

void softmax(Context& context, const ConstTensorRef& x, const TensorRef& y,
             const SoftmaxOptions& options, Pick pick) {
  call<Softmax>(context, pick, [&]<class Call>() {
    return Call{.x = x, .y = y, .axis = options.axis, .scale = options.scale, .log = options.log};
  });
}

void softmax_backward(Context& context, const ConstTensorRef& y, const ConstTensorRef& dy,
                      const TensorRef& dx, const SoftmaxOptions& options, Pick pick) {
  call<Softmax>(context, pick, [&]<class Call>() {
    return Call{.x = y,
                .dy = dy,
                .y = dx,
                .axis = options.axis,
                .scale = options.scale,
                .log = options.log,
                .backward = true};
  });
}

}  // namespace rung
