// SPDX-License-Identifier: Apache-2.0
// softmax: the operator object, its rung list, and argument checks.
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

bool accepts_output(DType in, DType out) {
  return in == out || ((in == DType::f16 || in == DType::bf16) && out == DType::f32);
}

}  // namespace

RungList<Softmax>& Softmax::rungs() { return rung_list; }

void Softmax::bind(Args& args) {
  const Extents& shape = args.x.shape;
  if (shape.rank == 0) {
    reject(name, fmt::format("x has no axis; accepted: 1 to {} axes", max_rank));
  }
  args.axis = require_axis(name, args.axis, shape.rank);
  require_shape(name, args.y, "y", shape);
  require_dtype(name, args.x, "x", {DType::f32, DType::f64, DType::f16, DType::bf16});
  if (!accepts_output(args.x.dtype, args.y.dtype)) {
    reject(name, fmt::format("x is {} and y {}; accepted: the same, or f32 for y where x is f16 or "
                             "bf16",
                             to_string(args.x.dtype), to_string(args.y.dtype)));
  }
  if (!(args.scale > 0) || !std::isfinite(args.scale) ||
      !(static_cast<float>(args.scale) > 0 && std::isfinite(static_cast<float>(args.scale)))) {
    reject(name,
           fmt::format("scale is {}; accepted: above 0 and within the range of f32", args.scale));
  }
  args.rows = rows_along<2>(shape, {args.x.strides, args.y.strides}, args.axis);
}

void softmax(Context& context, const ConstTensorRef& x, const TensorRef& y,
             const SoftmaxOptions& options, Pick pick) {
  call<Softmax>(context, pick, [&]<class Call>() {
    return Call{.x = x, .y = y, .axis = options.axis, .scale = options.scale, .log = options.log};
  });
}

}  // namespace rung
