// SPDX-License-Identifier: Apache-2.0
// pool_backward: the operator's object, its list of rungs, and the dispatch of every call.
#include "rung/ops/pool_backward/op/pool_backward.hpp"

#include <string>
#include <string_view>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/ops/pool/shared/axes.hpp"

namespace rung {
namespace {

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<PoolBackward> rung_list;
const Operator<PoolBackward> self;

constexpr std::string_view op = PoolBackward::name;

/// Requires that a tensor is given if and only if the kind takes it.
void require_given(const ConstTensorRef& tensor, std::string_view name, bool taken,
                   std::string_view kind) {
  if (is_given(tensor) == taken) return;
  reject(op, std::string(name) + (taken ? " is left out" : " is given") + "; accepted: " +
                 (taken ? "given" : "left out, unless") + " where kind is " + std::string(kind));
}

PoolBackwardOptions with_kind(PoolBackwardOptions options, Pooling kind) {
  options.kind = kind;
  return options;
}

}  // namespace

RungList<PoolBackward>& PoolBackward::rungs() { return rung_list; }

void PoolBackward::bind(Args& args) {
  PoolBackwardOptions& options = args.options;
  const bool last = options.channels_last;
  require_choice(name, options.kind, Pooling::weighted, "kind");
  require_given(options.indices, "indices", options.kind == Pooling::max, "max");
  require_given(options.x, "x", options.kind == Pooling::l2, "l2");
  require_given(options.y, "y", options.kind == Pooling::l2, "l2");
  require_given(options.weights, "weights", options.kind == Pooling::weighted, "weighted");
  require_dtype(name, args.dx, "dx", {DType::f32, DType::f64, DType::f16, DType::bf16});
  const DType type = args.dx.dtype;
  const Extents image = args.dx.shape;
  pool_axes::bind_axes(name, args, "dx", args.dx);
  const Extents pooled = pool_axes::given_order(
      {args.dx.shape[0], args.dx.shape[1], args.rows.out, args.columns.out}, last);
  require_dtype(name, args.dy, "dy", {type});
  require_shape(name, args.dy, "dy", pooled);
  pool_axes::to_nchw(args.dy, last);
  switch (options.kind) {
    case Pooling::max:
      require_dtype(name, options.indices, "indices", {DType::i32, DType::i64});
      require_shape(name, options.indices, "indices", pooled);
      pool_axes::to_nchw(options.indices, last);
      break;
    case Pooling::average:
      break;
    case Pooling::l2:
      require_dtype(name, options.x, "x", {type});
      require_shape(name, options.x, "x", image);
      require_dtype(name, options.y, "y", {type});
      require_shape(name, options.y, "y", pooled);
      pool_axes::to_nchw(options.x, last);
      pool_axes::to_nchw(options.y, last);
      break;
    case Pooling::weighted:
      require_dtype(name, options.weights, "weights", {type});
      require_shape(name, options.weights, "weights", {args.rows.kernel, args.columns.kernel});
      break;
  }
}

void pool_backward(Context& context, const ConstTensorRef& dy, const TensorRef& dx,
                   const PoolBackwardOptions& options, Pick pick) {
  call<PoolBackward>(context, {.dy = dy, .dx = dx, .options = options}, pick);
}

void max_pool_backward(Context& context, const ConstTensorRef& dy, const TensorRef& dx,
                       const PoolBackwardOptions& options, Pick pick) {
  pool_backward(context, dy, dx, with_kind(options, Pooling::max), pick);
}
void average_pool_backward(Context& context, const ConstTensorRef& dy, const TensorRef& dx,
                           const PoolBackwardOptions& options, Pick pick) {
  pool_backward(context, dy, dx, with_kind(options, Pooling::average), pick);
}

}  // namespace rung
