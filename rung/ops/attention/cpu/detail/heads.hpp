// SPDX-License-Identifier: Apache-2.0
// Typed views of attention's operands for the CPU rungs, and the mask.
#pragma once

#include <cstdint>

#include "rung/core/dtype.hpp"
#include "rung/core/view.hpp"
#include "rung/ops/attention/op/attention.hpp"
#include "rung/ops/attention/shared/mask.hpp"

namespace rung::attention_cpu {

template <class T>
struct Heads {
  using Element = T;
  using Sum = Accumulator<T>;

  View<const T, 4> q, k, v;
  View<T, 4> o;
  View<Sum, 3> lse;  // no data: not requested
  View<const std::int32_t, 1> key_lengths;
  Sum scale;
  bool causal;
  std::int64_t window;  // 0: none
  std::int64_t batch, heads, queries, keys, width, value_width, group;

  explicit Heads(const Attention::Args& args)
      : q(args.q.view<const T, 4>()),
        k(args.k.view<const T, 4>()),
        v(args.v.view<const T, 4>()),
        o(args.o.view<T, 4>()),
        scale(static_cast<Sum>(args.options.scale)),
        causal(args.options.causal),
        window(args.options.window),
        batch(args.batch()),
        heads(args.heads()),
        queries(args.queries()),
        keys(args.keys()),
        width(args.width()),
        value_width(args.value_width()),
        group(args.group()) {
    if (args.has_lse()) lse = args.options.lse.view<Sum, 3>();
    if (args.has_lengths()) key_lengths = args.options.key_lengths.view<const std::int32_t, 1>();
  }

  [[nodiscard]] KeyMask<std::int64_t> mask(std::int64_t b) const {
    const std::int64_t length =
        key_lengths.data != nullptr ? key_length(key_lengths(b), keys) : keys;
    return {queries, length, causal, window};
  }
  void write_lse(std::int64_t b, std::int64_t h, std::int64_t i, Sum value) const {
    if (lse.data != nullptr) lse(b, h, i) = value;
  }
};

/// Returns the divisor of a row's weighted values, given the sum of its weights. The sum is 0 if
/// the row sees no key or only scores of -infinity; the weighted values are then already the row of
/// o: 0, or NaN from a NaN or infinity in v.
template <class Sum>
constexpr Sum divisor_of(Sum sum) {
  return sum == 0 ? Sum{1} : sum;
}

/// Calls f(Heads<T>) with the element type of the arguments.
template <class F>
void with_heads(const Attention::Args& args, F&& f) {
  visit<float, double, f16, bf16>(args.q.dtype, [&]<class T>() { f(Heads<T>(args)); });
}

}  // namespace rung::attention_cpu
