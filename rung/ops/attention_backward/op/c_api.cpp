// SPDX-License-Identifier: Apache-2.0
// attention_backward's C functions.
#include "rung/c/options.hpp"
#include "rung/ops/attention_backward/attention_backward.h"
#include "rung/ops/attention_backward/attention_backward.hpp"

namespace {

using namespace rung::c_api;
using C = rung_attention_backward_options;
using Cpp = rung::AttentionBackwardOptions;

constexpr auto table = options_table<C, Cpp>(
    "rung_attention_backward_options", field("scale", &C::scale, &Cpp::scale),
    field("causal", &C::causal, &Cpp::causal), field("window", &C::window, &Cpp::window),
    field("soft_cap", &C::soft_cap, &Cpp::soft_cap),
    field("key_lengths", &C::key_lengths, &Cpp::key_lengths),
    field("query_offsets", &C::query_offsets, &Cpp::query_offsets),
    field("key_offsets", &C::key_offsets, &Cpp::key_offsets),
    field("slopes", &C::slopes, &Cpp::slopes), field("bias", &C::bias, &Cpp::bias),
    field("sinks", &C::sinks, &Cpp::sinks), field("dsinks", &C::dsinks, &Cpp::dsinks));

}  // namespace

rung_status rung_attention_backward_options_init(rung_attention_backward_options* options,
                                                 size_t size) {
  return table.init(options, size);
}

rung_status rung_attention_backward(rung_context* context, const rung_tensor* q,
                                    const rung_tensor* k, const rung_tensor* v,
                                    const rung_tensor* o, const rung_tensor* lse,
                                    const rung_tensor* dout, const rung_tensor* dq,
                                    const rung_tensor* dk, const rung_tensor* dv,
                                    const rung_attention_backward_options* options) {
  return table.call(rung::attention_backward, context, options, Argument{q, "q"}, Argument{k, "k"},
                    Argument{v, "v"}, Argument{o, "o"}, Argument{lse, "lse"},
                    Argument{dout, "dout"}, Argument{dq, "dq"}, Argument{dk, "dk"},
                    Argument{dv, "dv"});
}
