// SPDX-License-Identifier: Apache-2.0
// softmax_backward: the operator object, its rung list, and argument checks.
#include "rung/ops/softmax_backward/op/softmax_backward.hpp"

#include <fmt/format.h>

#include <cmath>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"

namespace rung {
namespace {

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<SoftmaxBackward> rung_list;
const Operator<SoftmaxBackward> self;

bool accepts_output(DType in, DType out) {
  return in == out || (in == DType::f32 && (out == DType::f16 || out == DType::bf16));
}

}  // namespace

RungList<SoftmaxBackward>& SoftmaxBackward::rungs() { return rung_list; }

void SoftmaxBackward::bind(Args& args) {
  const Extents& shape = args.y.shape;
  if (shape.rank == 0) {
    reject(name, fmt::format("y has no axis; accepted: 1 to {} axes", max_rank));
  }
  args.axis = require_axis(name, args.axis, shape.rank);
  require_shape(name, args.dy, "dy", shape);
  require_shape(name, args.dx, "dx", shape);
  require_dtype(name, args.y, "y", {DType::f32, DType::f64, DType::f16, DType::bf16});
  require_dtype(name, args.dy, "dy", {args.y.dtype});
  if (!accepts_output(args.y.dtype, args.dx.dtype)) {
    reject(name, fmt::format("y is {} and dx {}; accepted: the same, or f16 or bf16 for dx where y "
                             "and dy are f32",
                             to_string(args.y.dtype), to_string(args.dx.dtype)));
  }
  if (!(args.scale > 0) || !std::isfinite(args.scale) ||
      !(static_cast<float>(args.scale) > 0 && std::isfinite(static_cast<float>(args.scale)))) {
    reject(name,
           fmt::format("scale is {}; accepted: above 0 and within the range of f32", args.scale));
  }
  args.rows = rows_along<3>(shape, {args.y.strides, args.dy.strides, args.dx.strides}, args.axis);
}

void softmax_backward(Context& context, const ConstTensorRef& y, const ConstTensorRef& dy,
                      const TensorRef& dx, const SoftmaxOptions& options, Pick pick) {
  call<SoftmaxBackward>(context, pick, [&]<class Call>() {
    return Call{.y = y,
                .dy = dy,
                .dx = dx,
                .axis = options.axis,
                .scale = options.scale,
                .log = options.log};
  });
}

}  // namespace rung
