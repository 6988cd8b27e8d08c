// SPDX-License-Identifier: Apache-2.0
// pool: the operator's object, its list of rungs, and the dispatch of every call.
#include "rung/ops/pool/op/pool.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/ops/pool/shared/axes.hpp"

namespace rung {
namespace {

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<Pool> rung_list;
const Operator<Pool> self;

constexpr std::string_view op = Pool::name;

void check_weights(const Pool::Args& args) {
  const PoolOptions& options = args.options;
  const bool weighted = options.kind == Pooling::weighted;
  if (is_given(options.weights) != weighted) {
    reject(op, weighted ? "weights are left out; accepted: kh x kw of them where kind is weighted"
                        : "weights are given; accepted: where kind is weighted");
  }
  if (weighted) {
    require_shape(op, options.weights, "weights", {args.rows.kernel, args.columns.kernel});
    require_dtype(op, options.weights, "weights", {args.x.dtype});
  }
}

void check_indices(const Pool::Args& args) {
  const TensorRef& indices = args.options.indices;
  if (!is_given(indices)) return;
  if (args.options.kind != Pooling::max) {
    reject(op, "indices are given; accepted: where kind is max");
  }
  require_dtype(op, indices, "indices", {DType::i32, DType::i64});
}

PoolOptions with_kind(PoolOptions options, Pooling kind) {
  options.kind = kind;
  return options;
}

}  // namespace

RungList<Pool>& Pool::rungs() { return rung_list; }

void Pool::bind(Args& args) {
  PoolOptions& options = args.options;
  require_choice(name, options.kind, Pooling::weighted, "kind");
  require_choice(name, options.activation, Activation::tanh, "activation");
  require_dtype(name, args.x, "x", {DType::f32, DType::f64, DType::f16, DType::bf16});
  require_dtype(name, args.y, "y", {args.x.dtype});
  pool_axes::bind_axes(name, args, "x", args.x);
  const Extents shape = pool_axes::given_order(
      {args.x.shape[0], args.x.shape[1], args.rows.out, args.columns.out}, options.channels_last);
  require_shape(name, args.y, "y", shape);
  if (is_given(options.indices)) require_shape(name, options.indices, "indices", shape);
  check_weights(args);
  check_indices(args);
  if (is_given(options.bias)) {
    require_shape(name, options.bias, "bias", {args.x.shape[1]});
    require_dtype(name, options.bias, "bias", {args.x.dtype});
  }
  pool_axes::to_nchw(args.y, options.channels_last);
  if (is_given(options.indices)) pool_axes::to_nchw(options.indices, options.channels_last);
}

void pool(Context& context, const ConstTensorRef& x, const TensorRef& y, const PoolOptions& options,
          Pick pick) {
  call<Pool>(context, {.x = x, .y = y, .options = options}, pick);
}

void max_pool(Context& context, const ConstTensorRef& x, const TensorRef& y,
              const PoolOptions& options, Pick pick) {
  pool(context, x, y, with_kind(options, Pooling::max), pick);
}
void average_pool(Context& context, const ConstTensorRef& x, const TensorRef& y,
                  const PoolOptions& options, Pick pick) {
  pool(context, x, y, with_kind(options, Pooling::average), pick);
}

std::int64_t pooled_extent(std::int64_t extent, int kernel, int stride, int padding, int dilation,
                           bool ceil_mode) {
  return pool_axes::axis_of(op, "axis", extent, {kernel, stride, padding, dilation, ceil_mode}).out;
}

}  // namespace rung
