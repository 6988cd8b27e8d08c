// SPDX-License-Identifier: Apache-2.0
// attention: the operator object, its rung list, and argument checks.
#include "rung/ops/attention/op/attention.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/ops/attention/shared/arguments.hpp"

namespace rung {
namespace {

using namespace attention_arguments;

constexpr std::string_view op = Attention::name;

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<Attention> rung_list;
const Operator<Attention> self;

void check_shapes(const Attention::Args& args) {
  require_four_axes(op, args.q, "q", "B x H x Sq x D");
  require_four_axes(op, args.k, "k", "B x Hk x Sk x D");
  require_four_axes(op, args.v, "v", "B x Hk x Sk x Dv");
  const AttentionOptions& options = args.options;
  std::int64_t first = check_packing(op, args.q, args.k, options);  // extent of k and v
  if (is_given(options.page_table)) {
    if (is_given(options.key_offsets)) {
      reject(op, "page_table is given; accepted with key_offsets: none");
    }
    require_dtype(op, options.page_table, "page_table", {DType::i32});
    if (options.page_table.rank() != 2 || options.page_table.shape[0] != args.batch()) {
      reject(op, fmt::format("page_table has shape {}; accepted: {} x P",
                             to_string(options.page_table.shape), args.batch()));
    }
    const auto keys =
        static_cast<double>(options.page_table.shape[1]) * static_cast<double>(args.k.shape[2]);
    if (keys > 0x1p62) {
      reject(op, fmt::format("page_table has shape {} and k {}; accepted: up to 2^62 keys",
                             to_string(options.page_table.shape), to_string(args.k.shape)));
    }
    first = args.k.shape[0];  // pages
  }
  require_shape(op, args.k, "k", {first, args.kv_heads(), args.k.shape[2], args.width()});
  require_shape(op, args.v, "v", {first, args.kv_heads(), args.k.shape[2], args.value_width()});
  require_shape(op, args.o, "o",
                {args.q.shape[0], args.heads(), args.queries(), args.value_width()});
  require_widths_and_heads(op, args.width(), args.value_width(), args.heads(), args.kv_heads());
}

/// Checks the types of k and v, and the scales of e4m3 keys and values.
void check_keys(const Attention::Args& args) {
  if (!args.has_e4m3_keys()) {
    require_dtype(op, args.k, "k", {args.q.dtype, DType::e4m3});
    require_dtype(op, args.v, "v", {args.q.dtype});
    for (const auto& [scales, of] : {std::pair(args.options.k_scales, "k_scales"),
                                     std::pair(args.options.v_scales, "v_scales")}) {
      if (!is_given(scales)) continue;
      reject(op, fmt::format("{} is given for k and v of {}; accepted with e4m3 only", of,
                             to_string(args.k.dtype)));
    }
    return;
  }
  require_dtype(op, args.v, "v", {DType::e4m3});
  if (args.q.dtype == DType::f64) {
    reject(op, "k and v are e4m3 and q is f64; accepted for q: f32, f16, bf16");
  }
  const Extents per_head{args.batch(), args.kv_heads()};
  check_optional(op, args.options.k_scales, "k_scales", DType::f32, per_head);
  check_optional(op, args.options.v_scales, "v_scales", DType::f32, per_head);
}

}  // namespace

RungList<Attention>& Attention::rungs() { return rung_list; }

void Attention::bind(Args& args) {
  check_shapes(args);
  require_dtype(name, args.q, "q", {DType::f32, DType::f64, DType::f16, DType::bf16});
  check_keys(args);
  require_dtype(name, args.o, "o", {args.q.dtype});
  AttentionOptions& options = args.options;
  check_optional(name, options.key_lengths, "key_lengths", DType::i32, {args.batch()});
  const DType arithmetic = arithmetic_of(args.q.dtype);
  check_optional(name, options.lse, "lse", arithmetic,
                 {args.q.shape[0], args.heads(), args.queries()});
  check_optional(name, options.slopes, "slopes", arithmetic, {args.heads()});
  check_optional(name, options.sinks, "sinks", arithmetic, {args.heads()});
  check_optional(name, options.bias, "bias", arithmetic,
                 {args.batch(), args.heads(), args.queries(), args.keys()});
  bind_numbers(name, options, args.width(), args.keys());
}

std::int64_t Attention::Args::queries_of(std::int64_t rows) const {
  return smaller(queries(), (rows - 2) / larger(group(), std::int64_t{1}) + 2);
}

void attention(Context& context, const ConstTensorRef& q, const ConstTensorRef& k,
               const ConstTensorRef& v, const TensorRef& o, const AttentionOptions& options,
               Pick pick) {
  call<Attention>(context, {.q = q, .k = k, .v = v, .o = o, .options = options}, pick);
}

}  // namespace rung
