// SPDX-License-Identifier: Apache-2.0
// Typed views of attention's operands for the CPU rungs, and the mask.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "rung/core/dtype.hpp"
#include "rung/core/view.hpp"
#include "rung/ops/attention/op/attention.hpp"
#include "rung/ops/attention/shared/heads.hpp"

namespace rung::attention_cpu {

template <class T, class K = T>
using Heads = AttentionHeads<T, K>;

/// Returns the sink of head h, -infinity if there are none: a score whose weight has no value.
template <class T, class K>
Accumulator<T> sink_of(const Heads<T, K>& p, std::int64_t h) {
  return p.sinks.data != nullptr ? p.sinks(h) : -std::numeric_limits<Accumulator<T>>::infinity();
}

/// Returns the divisor of a row's weighted values, given the sum of its weights. The sum is 0 if
/// the row sees no key or only scores of -infinity; the weighted values are then already the row of
/// o: 0, or NaN from a NaN or infinity in v.
template <class Sum>
constexpr Sum divisor_of(Sum sum) {
  return sum == 0 ? Sum{1} : sum;
}

/// Adds a sink to a row's maximum (of scores times log2(e)) and sum of weights; returns the factor
/// that rescales the weighted values.
template <class Sum>
Sum add_sink(Sum sink, Sum& maximum, Sum& sum) {
  constexpr Sum log2_e = Sum(1.44269504088896340736L);
  const Sum score = sink * log2_e;
  if (!(score > -std::numeric_limits<Sum>::infinity())) return 1;
  const Sum greatest = std::fmax(maximum, score);
  const Sum rescale = std::exp2(maximum - greatest);
  sum = sum * rescale + std::exp2(score - greatest);
  maximum = greatest;
  return rescale;
}

/// Calls f(Heads<T, K>) with the element types of the arguments.
template <class F>
void with_heads(const Attention::Args& args, F&& f) {
  visit_types(args, [&]<class T, class K>() { f(attention_heads<T, K>(args)); });
}

}  // namespace rung::attention_cpu
