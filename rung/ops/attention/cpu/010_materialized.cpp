// SPDX-License-Identifier: Apache-2.0
// attention / materialized
//
// Idea     Compute the definition step by step: store all scores of a head in a matrix, take the
//          softmax of each row, multiply by V.
// Changes  baseline.
// Cost     2 (D + Dv) operations per score. The Sq x Sk matrix of scores is written and then read
//          in four passes: at 4096 queries and keys it takes 64 MB per head in f32, beyond most
//          caches.
// Limits   Score matrices up to 1 GiB; one thread, scalar code.
// Source   A. Vaswani and others, Attention is all you need, 2017.
#include <algorithm>
#include <cmath>
#include <limits>

#include "rung/ops/attention/cpu/detail/heads.hpp"

namespace rung {
namespace {
using namespace attention_cpu;

/// Replaces a row of scores by its softmax, with the sink as one more score; returns the log of the
/// sum of the exponentials. A row of -infinity gets zeros, where the definition gives NaN.
template <class Sum>
Sum softmax_row(Sum* row, std::int64_t count, Sum sink) {
  constexpr Sum infinity = std::numeric_limits<Sum>::infinity();
  Sum maximum = sink;
  // Written so that a NaN, once found, stays.
  for (std::int64_t j = 0; j < count; ++j) {
    if (row[j] > maximum || std::isnan(row[j])) maximum = row[j];
  }
  if (maximum == -infinity) {
    std::fill_n(row, count, Sum{0});
    return -infinity;
  }
  Sum sum = std::exp(sink - maximum);
  for (std::int64_t j = 0; j < count; ++j) sum += row[j] = std::exp(row[j] - maximum);
  for (std::int64_t j = 0; j < count; ++j) row[j] /= sum;
  return maximum + std::log(sum);
}

template <class T, class K>
void attend(const Heads<T, K>& p, std::int64_t b, std::int64_t h, Accumulator<T>* scores) {
  using Sum = Accumulator<T>;
  const std::int64_t g = h / p.group;
  const ScoreRule<Sum> rule = p.rule_of(b, g);
  const auto mask = p.mask(b);
  const View<const T, 2> queries = p.q_of(b).at(h);
  const View<T, 2> results = p.o_of(b).at(h);
  for (std::int64_t i = 0; i < mask.queries; ++i) {
    for (std::int64_t j = mask.first_key(i); j < mask.end_key(i); ++j) {
      const View<const K, 1> key = p.key(b, g, j);
      Sum sum = 0;
      for (std::int64_t d = 0; d < p.width(); ++d) {
        sum += static_cast<Sum>(queries(i, d)) * static_cast<Sum>(key(d));
      }
      scores[i * p.keys() + j] = rule(sum, b, h, i, j, mask.diagonal(i));
    }
  }
  for (std::int64_t i = 0; i < mask.queries; ++i) {
    const std::int64_t first = mask.first_key(i);
    const std::int64_t end = mask.end_key(i);
    p.write_lse(b, h, i, softmax_row(scores + i * p.keys() + first, end - first, sink_of(p, h)));
    for (std::int64_t c = 0; c < p.value_width(); ++c) {
      Sum sum = 0;
      for (std::int64_t j = first; j < end; ++j) {
        sum += scores[i * p.keys() + j] * static_cast<Sum>(p.value(b, g, j)(c));
      }
      results(i, c) = static_cast<T>(sum * p.value_scale(b, g));
    }
  }
}

Support supports(const Attention::Args& args, const Context&) {
  const double bytes = static_cast<double>(args.queries()) * static_cast<double>(args.keys()) * 8;
  return bytes <= 0x1p30 ? supported : unsupported("scores of one head beyond 1 GiB");
}

void run(const Attention::Args& args, Context& context) {
  with_heads(args, [&]<class T, class K>(const Heads<T, K>& p) {
    using Sum = Accumulator<T>;
    const auto bytes = static_cast<std::size_t>(p.queries() * p.keys()) * sizeof(Sum);
    auto* scores = static_cast<Sum*>(context.workspace(bytes));
    for (std::int64_t b = 0; b < p.batch(); ++b) {
      for (std::int64_t h = 0; h < p.heads(); ++h) attend(p, b, h, scores);
    }
  });
}

const Rung<Attention> self{
    {.name = "materialized", .step = 10, .teaching = true, .supports = supports, .run = run}};

}  // namespace
}  // namespace rung
