// SPDX-License-Identifier: Apache-2.0
// loss: the operator object, its rung list, and argument checks.
#include "rung/ops/loss/op/loss.hpp"

#include <fmt/format.h>

#include <cmath>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"

namespace rung {
namespace {

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<Loss> rung_list;
const Operator<Loss> self;

constexpr std::string_view op = Loss::name;

Extents without(const Extents& extents, int axis) {
  Extents rest;
  for (int i = 0; i < extents.rank; ++i) {
    if (i != axis) rest[rest.rank++] = extents[i];
  }
  return rest;
}

/// Returns the strides of a tensor without the given axis, with stride 0 inserted along it.
Extents spread(const Extents& strides, int axis, int rank) {
  Extents all;
  all.rank = rank;
  for (int i = 0, from = 0; i < rank; ++i) all[i] = i == axis ? 0 : strides[from++];
  return all;
}

void check_options(const Loss::Args& args) {
  const LossOptions& options = args.options;
  require_choice(op, options.kind, LossKind::squared, "kind");
  require_choice(op, options.reduction, LossReduction::sum, "reduction");
  if (!(options.smoothing >= 0 && options.smoothing <= 1)) {
    reject(op, fmt::format("smoothing is {}; accepted: 0 to 1", options.smoothing));
  }
  if (options.smoothing != 0 && options.kind != LossKind::cross_entropy) {
    reject(op, fmt::format("smoothing is {} and kind {}; accepted: 0, unless for cross_entropy",
                           options.smoothing, to_string(options.kind)));
  }
  if (!(options.margin >= 0 && std::isfinite(static_cast<float>(options.margin)))) {
    reject(op, fmt::format("margin is {}; accepted: 0 or more, finite in f32", options.margin));
  }
  if (options.ignored_label != no_label && options.kind == LossKind::squared) {
    reject(op, "ignored_label is given and kind squared, which has no labels; accepted: none");
  }
}

LossOptions with_kind(LossOptions options, LossKind kind) {
  options.kind = kind;
  return options;
}

}  // namespace

std::string_view to_string(LossKind kind) noexcept {
  switch (kind) {
    case LossKind::cross_entropy:
      return "cross_entropy";
    case LossKind::hinge:
      return "hinge";
    case LossKind::squared:
      return "squared";
  }
  return "?";
}

RungList<Loss>& Loss::rungs() { return rung_list; }

void Loss::bind(Args& args) {
  check_options(args);
  LossOptions& options = args.options;
  const Extents& shape = args.x.shape;
  if (shape.rank == 0) reject(op, fmt::format("x has no axis; accepted: 1 to {} axes", max_rank));
  const int axis = options.axis = require_axis(op, options.axis, shape.rank);
  if (shape[axis] == 0) {
    reject(op, fmt::format("axis {} of x, the classes, is empty; accepted: 1 class or more", axis));
  }
  require_dtype(op, args.x, "x", {DType::f32, DType::f64, DType::f16, DType::bf16});
  const DType arithmetic = args.x.dtype == DType::f64 ? DType::f64 : DType::f32;
  const Extents across = without(shape, axis);
  if (args.labeled()) {
    require_shape(op, args.target, "target", across);
    require_dtype(op, args.target, "target", {DType::i64, DType::i32});
  } else {
    require_shape(op, args.target, "target", shape);
    require_dtype(op, args.target, "target", {args.x.dtype});
  }
  if (args.result.size() != 1) {
    reject(op, fmt::format("result is {}, of {} elements; accepted: one element",
                           to_string(args.result.shape), args.result.size()));
  }
  require_dtype(op, args.result, "result", {arithmetic});
  if (is_given(options.losses)) {
    require_shape(op, options.losses, "losses", across);
    require_dtype(op, options.losses, "losses", {arithmetic});
  }
  if (is_given(options.dx)) {
    require_shape(op, options.dx, "dx", shape);
    require_dtype(op, options.dx, "dx", {args.x.dtype});
  }
  const Extents& x = args.x.strides;
  const int rank = shape.rank;
  args.rows =
      rows_along<4>(shape,
                    {x, is_given(options.dx) ? options.dx.strides : x,
                     args.labeled() ? spread(args.target.strides, axis, rank) : args.target.strides,
                     is_given(options.losses) ? spread(options.losses.strides, axis, rank) : x},
                    axis);
}

void loss(Context& context, const ConstTensorRef& x, const ConstTensorRef& target,
          const TensorRef& result, const LossOptions& options, Pick pick) {
  call<Loss>(context, {x, target, result, options}, pick);
}

void cross_entropy(Context& context, const ConstTensorRef& x, const ConstTensorRef& target,
                   const TensorRef& result, const LossOptions& options, Pick pick) {
  loss(context, x, target, result, with_kind(options, LossKind::cross_entropy), pick);
}
void hinge_loss(Context& context, const ConstTensorRef& x, const ConstTensorRef& target,
                const TensorRef& result, const LossOptions& options, Pick pick) {
  loss(context, x, target, result, with_kind(options, LossKind::hinge), pick);
}
void squared_error(Context& context, const ConstTensorRef& x, const ConstTensorRef& target,
                   const TensorRef& result, const LossOptions& options, Pick pick) {
  loss(context, x, target, result, with_kind(options, LossKind::squared), pick);
}

}  // namespace rung
