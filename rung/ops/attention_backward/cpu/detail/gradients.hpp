// SPDX-License-Identifier: Apache-2.0
// Typed views of attention_backward's operands for the CPU rungs, and the mask.
#pragma once

#include <cstdint>
#include <limits>

#include "rung/core/dtype.hpp"
#include "rung/core/view.hpp"
#include "rung/ops/attention/shared/mask.hpp"
#include "rung/ops/attention_backward/op/attention_backward.hpp"

namespace rung::attention_backward_cpu {

template <class T>
struct Gradients {
  using Element = T;
  using Sum = Accumulator<T>;

  View<const T, 4> q, k, v, o, dout;
  View<const Sum, 3> lse;
  View<T, 4> dq, dk, dv;
  View<const std::int32_t, 1> key_lengths;  // no data: all Sk keys exist
  Sum scale;
  bool causal;
  std::int64_t window;  // 0: none
  std::int64_t batch, heads, kv_heads, queries, keys, width, value_width, group;

  explicit Gradients(const AttentionBackward::Args& args)
      : q(args.q.view<const T, 4>()),
        k(args.k.view<const T, 4>()),
        v(args.v.view<const T, 4>()),
        o(args.o.view<const T, 4>()),
        dout(args.dout.view<const T, 4>()),
        lse(args.lse.view<const Sum, 3>()),
        dq(args.dq.view<T, 4>()),
        dk(args.dk.view<T, 4>()),
        dv(args.dv.view<T, 4>()),
        scale(static_cast<Sum>(args.options.scale)),
        causal(args.options.causal),
        window(args.options.window),
        batch(args.batch()),
        heads(args.heads()),
        kv_heads(args.kv_heads()),
        queries(args.queries()),
        keys(args.keys()),
        width(args.width()),
        value_width(args.value_width()),
        group(args.group()) {
    if (args.has_lengths()) key_lengths = args.options.key_lengths.view<const std::int32_t, 1>();
  }

  [[nodiscard]] KeyMask<std::int64_t> mask(std::int64_t b) const {
    const std::int64_t length =
        key_lengths.data != nullptr ? key_length(key_lengths(b), keys) : keys;
    return {queries, length, causal, window};
  }
  /// Returns sum_c dout o of a query.
  [[nodiscard]] Sum row_sum(std::int64_t b, std::int64_t h, std::int64_t i) const {
    Sum sum = 0;
    for (std::int64_t c = 0; c < value_width; ++c) {
      sum += static_cast<Sum>(dout(b, h, i, c)) * static_cast<Sum>(o(b, h, i, c));
    }
    return sum;
  }
  /// Returns a query's lse, with -infinity replaced by +infinity, so that exp(score - lse) is 0.
  [[nodiscard]] Sum finite_or_infinite_lse(std::int64_t b, std::int64_t h, std::int64_t i) const {
    constexpr Sum infinity = std::numeric_limits<Sum>::infinity();
    const Sum value = lse(b, h, i);
    return value == -infinity ? infinity : value;
  }
};

/// Calls f(Gradients<T>) with the element type of the arguments.
template <class F>
void with_gradients(const AttentionBackward::Args& args, F&& f) {
  visit<float, double, f16, bf16>(args.q.dtype, [&]<class T>() { f(Gradients<T>(args)); });
}

}  // namespace rung::attention_backward_cpu
