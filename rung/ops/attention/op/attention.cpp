// SPDX-License-Identifier: Apache-2.0
// attention: the operator object, its rung list, and argument checks.
#include "rung/ops/attention/op/attention.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "rung/core/integer.hpp"
#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/ops/attention/shared/mask.hpp"

namespace rung {
namespace {

constexpr std::string_view op = Attention::name;

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<Attention> rung_list;
const Operator<Attention> self;

void require_four_axes(const ConstTensorRef& tensor, std::string_view name,
                       std::string_view accepted) {
  if (tensor.rank() == 4) return;
  reject(op, fmt::format("{} has shape {}; accepted: {}", name, to_string(tensor.shape), accepted));
}

/// Throws unless a list of row offsets fits the packed tensor `name`.
void check_offsets(const ConstTensorRef& offsets, std::string_view of_offsets,
                   const ConstTensorRef& tensor, std::string_view name) {
  require_dtype(op, offsets, of_offsets, {DType::i32});
  if (offsets.rank() != 1 || offsets.shape[0] < 1) {
    reject(op, fmt::format("{} has shape {}; accepted: B + 1 numbers", of_offsets,
                           to_string(offsets.shape)));
  }
  if (tensor.shape[0] == 1) return;
  reject(op, fmt::format("{} has shape {}; accepted with {}: 1 on the first axis", name,
                         to_string(tensor.shape), of_offsets));
}

void check_packing(const Attention::Args& args) {
  const AttentionOptions& options = args.options;
  const bool key_offsets = is_given(options.key_offsets);
  if (is_given(options.query_offsets)) {
    check_offsets(options.query_offsets, "query_offsets", args.q, "q");
  }
  if (key_offsets) check_offsets(options.key_offsets, "key_offsets", args.k, "k");
  if (key_offsets && is_given(options.key_lengths)) {
    reject(op, "key_lengths are given; accepted with key_offsets: none");
  }
  if (key_offsets && is_given(options.page_table)) {
    reject(op, "page_table is given; accepted with key_offsets: none");
  }
  if ((key_offsets || is_given(options.query_offsets)) && is_given(options.bias)) {
    reject(op, "bias is given; accepted with query_offsets or key_offsets: none");
  }
}

void check_shapes(const Attention::Args& args) {
  require_four_axes(args.q, "q", "B x H x Sq x D");
  require_four_axes(args.k, "k", "B x Hk x Sk x D");
  require_four_axes(args.v, "v", "B x Hk x Sk x Dv");
  check_packing(args);
  const std::int64_t heads = args.heads();
  const AttentionOptions& options = args.options;
  std::int64_t of_keys = args.batch();  // extent of the first axis of k and v
  if (is_given(options.key_offsets)) {
    of_keys = 1;
    require_shape(op, options.key_offsets, "key_offsets", {args.batch() + 1});
  }
  if (is_given(options.page_table)) {
    of_keys = args.k.shape[0];
    require_dtype(op, options.page_table, "page_table", {DType::i32});
    if (options.page_table.rank() != 2 || options.page_table.shape[0] != args.batch()) {
      reject(op, fmt::format("page_table has shape {}; accepted: {} x P",
                             to_string(options.page_table.shape), args.batch()));
    }
  }
  require_shape(op, args.k, "k", {of_keys, args.kv_heads(), args.k.shape[2], args.width()});
  require_shape(op, args.v, "v", {of_keys, args.kv_heads(), args.k.shape[2], args.value_width()});
  require_shape(op, args.o, "o", {args.q.shape[0], heads, args.queries(), args.value_width()});
  if (args.width() == 0) reject(op, "q and k have vectors of 0 elements; accepted: 1 or more");
  if (args.value_width() == 0) reject(op, "v has vectors of 0 elements; accepted: 1 or more");
  if (heads > 0 && (args.kv_heads() == 0 || heads % args.kv_heads() != 0)) {
    reject(op, fmt::format("q has {} heads, k and v {}; accepted: a divisor of {}", heads,
                           args.kv_heads(), heads));
  }
}

/// Throws unless an optional tensor of the arithmetic type has the accepted shape.
void check_optional(const ConstTensorRef& tensor, std::string_view name, DType arithmetic,
                    const Extents& accepted) {
  if (!is_given(tensor)) return;
  require_shape(op, tensor, name, accepted);
  require_dtype(op, tensor, name, {arithmetic});
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

double bound_cap(double given) {
  const auto narrow = static_cast<float>(given);
  if (given == 0 || (narrow > 0 && std::isfinite(narrow))) return given;
  reject(op, fmt::format("soft_cap is {}; accepted: 0, for none, or above 0 and within the range "
                         "of f32",
                         given));
}

std::int64_t bound_window(std::int64_t given, bool causal, std::int64_t keys) {
  if (given < 0 || (given > 0 && !causal)) {
    reject(op, fmt::format("window is {}; accepted: 0, for none, {}", given,
                           causal ? "or more" : "or with causal the number of keys of a query"));
  }
  return window_among(given, keys);
}

}  // namespace

RungList<Attention>& Attention::rungs() { return rung_list; }

void Attention::bind(Args& args) {
  check_shapes(args);
  require_dtype(name, args.q, "q", {DType::f32, DType::f64, DType::f16, DType::bf16});
  require_dtype(name, args.k, "k", {args.q.dtype});
  require_dtype(name, args.v, "v", {args.q.dtype});
  require_dtype(name, args.o, "o", {args.q.dtype});
  AttentionOptions& options = args.options;
  if (is_given(options.key_lengths)) {
    require_shape(name, options.key_lengths, "key_lengths", {args.batch()});
    require_dtype(name, options.key_lengths, "key_lengths", {DType::i32});
  }
  const DType arithmetic = args.q.dtype == DType::f64 ? DType::f64 : DType::f32;
  check_optional(options.lse, "lse", arithmetic, {args.q.shape[0], args.heads(), args.queries()});
  check_optional(options.slopes, "slopes", arithmetic, {args.heads()});
  check_optional(options.sinks, "sinks", arithmetic, {args.heads()});
  check_optional(options.bias, "bias", arithmetic,
                 {args.batch(), args.heads(), args.queries(), args.keys()});
  options.scale = bound_scale(options.scale, args.width());
  options.soft_cap = bound_cap(options.soft_cap);
  options.window = bound_window(options.window, options.causal, args.keys());
}

std::int64_t Attention::Args::typical_queries() const {
  return has_query_offsets() ? ceil_div(queries(), larger(batch(), std::int64_t{1})) : queries();
}

std::int64_t Attention::Args::typical_keys() const {
  return has_key_offsets() ? ceil_div(keys(), larger(batch(), std::int64_t{1})) : keys();
}

double Attention::Args::visible_pairs() const {
  return count_visible_pairs(typical_queries(), typical_keys(), options.causal, options.window);
}

std::int64_t Attention::Args::queries_of(std::int64_t rows) const {
  return smaller(queries(), (rows - 2) / larger(group(), std::int64_t{1}) + 2);
}

std::int64_t Attention::Args::most_keys(std::int64_t adjacent) const {
  return most_visible_keys(adjacent, keys(), options.window);
}

void attention(Context& context, const ConstTensorRef& q, const ConstTensorRef& k,
               const ConstTensorRef& v, const TensorRef& o, const AttentionOptions& options,
               Pick pick) {
  call<Attention>(context, {.q = q, .k = k, .v = v, .o = o, .options = options}, pick);
}

}  // namespace rung
