// SPDX-License-Identifier: Apache-2.0
// attention_backward: the operator object, its rung list, and argument checks.
#include "rung/ops/attention_backward/op/attention_backward.hpp"

#include <fmt/format.h>

#include <string>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/ops/attention/shared/arguments.hpp"

namespace rung {
namespace {

using namespace attention_arguments;

constexpr std::string_view op = AttentionBackward::name;

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<AttentionBackward> rung_list;
const Operator<AttentionBackward> self;

void check_shapes(const AttentionBackward::Args& args) {
  require_four_axes(op, args.q, "q", "B x H x Sq x D");
  require_four_axes(op, args.k, "k", "B x Hk x Sk x D");
  require_four_axes(op, args.v, "v", "B x Hk x Sk x Dv");
  const std::int64_t first = check_packing(op, args.q, args.k, args.options);
  const Extents keys{first, args.kv_heads(), args.keys(), args.width()};
  const Extents values{first, args.kv_heads(), args.keys(), args.value_width()};
  const Extents results{args.q.shape[0], args.heads(), args.queries(), args.value_width()};
  require_shape(op, args.k, "k", keys);
  require_shape(op, args.v, "v", values);
  require_shape(op, args.o, "o", results);
  require_shape(op, args.lse, "lse", {args.q.shape[0], args.heads(), args.queries()});
  require_shape(op, args.dout, "dout", results);
  require_shape(op, args.dq, "dq", args.q.shape);
  require_shape(op, args.dk, "dk", keys);
  require_shape(op, args.dv, "dv", values);
  require_widths_and_heads(op, args.width(), args.value_width(), args.heads(), args.kv_heads());
  if (is_given(args.options.sinks) != is_given(args.options.dsinks)) {
    reject(op, fmt::format("{} alone is given; accepted: sinks and dsinks, or neither",
                           is_given(args.options.sinks) ? "sinks" : "dsinks"));
  }
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
  const DType arithmetic = arithmetic_of(dtype);
  require_dtype(name, args.lse, "lse", {arithmetic});
  require_dtype(name, args.dout, "dout", {dtype});
  require_dtype(name, args.dq, "dq", {dtype});
  require_dtype(name, args.dk, "dk", {dtype});
  require_dtype(name, args.dv, "dv", {dtype});
  AttentionBackwardOptions& options = args.options;
  check_optional(name, options.key_lengths, "key_lengths", DType::i32, {args.batch()});
  check_optional(name, options.slopes, "slopes", arithmetic, {args.heads()});
  check_optional(name, options.sinks, "sinks", arithmetic, {args.heads()});
  check_optional(name, options.dsinks, "dsinks", arithmetic, {args.heads()});
  check_optional(name, options.bias, "bias", arithmetic,
                 {args.batch(), args.heads(), args.queries(), args.keys()});
  bind_numbers(name, options, args.width(), args.keys());
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
