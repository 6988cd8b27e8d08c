// SPDX-License-Identifier: Apache-2.0
// attention's C functions.
#include "rung/c/options.hpp"
#include "rung/ops/attention/attention.h"
#include "rung/ops/attention/attention.hpp"

namespace {

using namespace rung::c_api;
using C = rung_attention_options;
using Cpp = rung::AttentionOptions;

constexpr auto table = options_table<C, Cpp>(
    "rung_attention_options", field("scale", &C::scale, &Cpp::scale),
    field("causal", &C::causal, &Cpp::causal), field("window", &C::window, &Cpp::window),
    field("soft_cap", &C::soft_cap, &Cpp::soft_cap),
    field("key_lengths", &C::key_lengths, &Cpp::key_lengths),
    field("query_offsets", &C::query_offsets, &Cpp::query_offsets),
    field("key_offsets", &C::key_offsets, &Cpp::key_offsets),
    field("page_table", &C::page_table, &Cpp::page_table),
    field("slopes", &C::slopes, &Cpp::slopes), field("bias", &C::bias, &Cpp::bias),
    field("sinks", &C::sinks, &Cpp::sinks), field("k_scales", &C::k_scales, &Cpp::k_scales),
    field("v_scales", &C::v_scales, &Cpp::v_scales), field("lse", &C::lse, &Cpp::lse));

}  // namespace

rung_status rung_attention_options_init(rung_attention_options* options, size_t size) {
  return table.init(options, size);
}

rung_status rung_attention(rung_context* context, const rung_tensor* q, const rung_tensor* k,
                           const rung_tensor* v, const rung_tensor* o,
                           const rung_attention_options* options) {
  return table.call(rung::attention, context, options, Argument{q, "q"}, Argument{k, "k"},
                    Argument{v, "v"}, Argument{o, "o"});
}
