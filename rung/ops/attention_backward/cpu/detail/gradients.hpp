// SPDX-License-Identifier: Apache-2.0
// Typed views of attention_backward's operands for the CPU rungs, and the mask.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "rung/core/dtype.hpp"
#include "rung/core/view.hpp"
#include "rung/ops/attention_backward/shared/gradients.hpp"

namespace rung::attention_backward_cpu {

template <class T>
using Gradients = AttentionGradients<T>;

/// Returns sum_c dout o of query i of a batch element.
template <class T>
Accumulator<T> row_sum(const Gradients<T>& p, std::int64_t b, std::int64_t h, std::int64_t i) {
  using Sum = Accumulator<T>;
  const View<const T, 1> dout = p.of_queries(p.dout, b).at(h).at(i);
  const View<const T, 1> o = p.of_queries(p.o, b).at(h).at(i);
  Sum sum = 0;
  for (std::int64_t c = 0; c < p.value_width(); ++c) {
    sum += static_cast<Sum>(dout(c)) * static_cast<Sum>(o(c));
  }
  return sum;
}

/// Returns a query's lse, with -infinity replaced by +infinity, so that exp(score - lse) is 0.
template <class T>
Accumulator<T> finite_or_infinite_lse(const Gradients<T>& p, std::int64_t b, std::int64_t h,
                                      std::int64_t i) {
  constexpr auto infinity = std::numeric_limits<Accumulator<T>>::infinity();
  const Accumulator<T> value = p.lse_of(b, h, i);
  return value == -infinity ? infinity : value;
}

/// Writes the gradient of the sink of head h.
template <class T>
void write_sink_gradient(const Gradients<T>& p, std::int64_t h) {
  using Sum = Accumulator<T>;
  Sum sum = 0;
  for (std::int64_t b = 0; b < p.batch(); ++b) {
    const auto mask = p.mask(b);
    for (std::int64_t i = mask.first_query(0); i < mask.queries; ++i) {
      if (mask.end_key(i) == 0) continue;
      sum -= std::exp(p.sinks(h) - finite_or_infinite_lse(p, b, h, i)) * row_sum(p, b, h, i);
    }
  }
  p.dsinks(h) = sum;
}

/// Calls f(Gradients<T>) with the element type of the arguments.
template <class F>
void with_gradients(const AttentionBackward::Args& args, F&& f) {
  visit<float, double, f16, bf16>(args.q.dtype,
                                  [&]<class T>() { f(attention_gradients<T>(args)); });
}

}  // namespace rung::attention_backward_cpu
