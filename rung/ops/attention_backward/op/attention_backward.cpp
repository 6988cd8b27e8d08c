// SPDX-License-Identifier: Apache-2.0
// attention_backward: the operator object, its rung list, and argument checks.
#include "rung/ops/attention_backward/op/attention_backward.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/ops/attention/shared/mask.hpp"

namespace rung {
namespace {

constexpr std::string_view op = AttentionBackward::name;

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<AttentionBackward> rung_list;
const Operator<AttentionBackward> self;

void require_four_axes(const ConstTensorRef& tensor, std::string_view name,
                       std::string_view accepted) {
  if (tensor.rank() == 4) return;
  reject(op, fmt::format("{} has shape {}; accepted: {}", name, to_string(tensor.shape), accepted));
}

void check_shapes(const AttentionBackward::Args& args) {
  require_four_axes(args.q, "q", "B x H x Sq x D");
  require_four_axes(args.k, "k", "B x Hk x Sk x D");
  require_four_axes(args.v, "v", "B x Hk x Sk x Dv");
  const Extents keys{args.batch(), args.kv_heads(), args.keys(), args.width()};
  const Extents values{args.batch(), args.kv_heads(), args.keys(), args.value_width()};
  const Extents results{args.batch(), args.heads(), args.queries(), args.value_width()};
  require_shape(op, args.k, "k", keys);
  require_shape(op, args.v, "v", values);
  require_shape(op, args.o, "o", results);
  require_shape(op, args.lse, "lse", {args.batch(), args.heads(), args.queries()});
  require_shape(op, args.dout, "dout", results);
  require_shape(op, args.dq, "dq", args.q.shape);
  require_shape(op, args.dk, "dk", keys);
  require_shape(op, args.dv, "dv", values);
  if (args.width() == 0) reject(op, "q and k have vectors of 0 elements; accepted: 1 or more");
  if (args.value_width() == 0) reject(op, "v has vectors of 0 elements; accepted: 1 or more");
  if (args.heads() > 0 && (args.kv_heads() == 0 || args.heads() % args.kv_heads() != 0)) {
    reject(op, fmt::format("q has {} heads, k and v {}; accepted: a divisor of {}", args.heads(),
                           args.kv_heads(), args.heads()));
  }
}

double bound_scale(double given, std::int64_t width) {
  if (given == 0) return 1 / std::sqrt(static_cast<double>(width));
  const auto narrow = static_cast<float>(given);
  if (!(narrow > 0) || !std::isfinite(narrow)) {
    reject(op, fmt::format("scale is {}; accepted: 0, for 1 / sqrt(D), or above 0 and within the "
                           "range of f32",
                           given));
  }
  return given;
}

std::int64_t bound_window(std::int64_t given, bool causal, std::int64_t keys) {
  if (given < 0 || (given > 0 && !causal)) {
    reject(op, fmt::format("window is {}; accepted: 0, for none, {}", given,
                           causal ? "or more" : "or with causal the number of keys of a query"));
  }
  return window_among(given, keys);
}

}  // namespace

RungList<AttentionBackward>& AttentionBackward::rungs() { return rung_list; }

void AttentionBackward::bind(Args& args) {
  check_shapes(args);
  const DType dtype = args.q.dtype;
  require_dtype(name, args.q, "q", {DType::f32, DType::f64, DType::f16, DType::bf16});
  require_dtype(name, args.k, "k", {dtype});
  require_dtype(name, args.v, "v", {dtype});
  require_dtype(name, args.o, "o", {dtype});
  require_dtype(name, args.lse, "lse", {dtype == DType::f64 ? DType::f64 : DType::f32});
  require_dtype(name, args.dout, "dout", {dtype});
  require_dtype(name, args.dq, "dq", {dtype});
  require_dtype(name, args.dk, "dk", {dtype});
  require_dtype(name, args.dv, "dv", {dtype});
  AttentionBackwardOptions& options = args.options;
  if (is_given(options.key_lengths)) {
    require_shape(name, options.key_lengths, "key_lengths", {args.batch()});
    require_dtype(name, options.key_lengths, "key_lengths", {DType::i32});
  }
  options.scale = bound_scale(options.scale, args.width());
  options.window = bound_window(options.window, options.causal, args.keys());
}

double AttentionBackward::Args::visible_pairs() const {
  return count_visible_pairs(queries(), keys(), options.causal, options.window);
}

std::int64_t AttentionBackward::Args::most_keys(std::int64_t adjacent) const {
  return most_visible_keys(adjacent, keys(), options.window);
}

void attention_backward(Context& context, const ConstTensorRef& q, const ConstTensorRef& k,
                        const ConstTensorRef& v, const ConstTensorRef& o, const ConstTensorRef& lse,
                        const ConstTensorRef& dout, const TensorRef& dq, const TensorRef& dk,
                        const TensorRef& dv, const AttentionBackwardOptions& options, Pick pick) {
  call<AttentionBackward>(context,
                          {.q = q,
                           .k = k,
                           .v = v,
                           .o = o,
                           .lse = lse,
                           .dout = dout,
                           .dq = dq,
                           .dk = dk,
                           .dv = dv,
                           .options = options},
                          pick);
}

}  // namespace rung
