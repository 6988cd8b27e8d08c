// SPDX-License-Identifier: Apache-2.0
// attention / materialized
//
// Idea     the definition, step by step: all scores of a head into a matrix, softmax of each row,
//          times V.
// Changes  baseline.
// Cost     2 (D + Dv) operations per score, and the Sq x Sk matrix of them, which is written once
//          and read four times: at 4096 queries and keys 64 MB a head, beyond any cache.
// Limits   matrices of scores up to 1 GiB; one thread, one element at a time.
// Source   A. Vaswani and others, Attention is all you need, 2017.
#include <algorithm>
#include <cmath>
#include <limits>

#include "rung/ops/attention/cpu/detail/heads.hpp"

namespace rung {
namespace {
using namespace attention_cpu;

/// Turns one row of scores into weights; returns the logarithm of the sum of their exponentials.
/// Weights of a row of -infinity are 0, where the definition would be NaN.
template <class Sum>
Sum softmax_row(Sum* row, std::int64_t count) {
  constexpr Sum infinity = std::numeric_limits<Sum>::infinity();
  Sum maximum = -infinity;
  // The comparison is written so that a NaN, once met, stays.
  for (std::int64_t j = 0; j < count; ++j) {
    if (row[j] > maximum || std::isnan(row[j])) maximum = row[j];
  }
  if (maximum == -infinity) {
    std::fill_n(row, count, Sum{0});
    return -infinity;
  }
  Sum sum = 0;
  for (std::int64_t j = 0; j < count; ++j) sum += row[j] = std::exp(row[j] - maximum);
  for (std::int64_t j = 0; j < count; ++j) row[j] /= sum;
  return maximum + std::log(sum);
}

template <class T>
void attend(const Heads<T>& p, std::int64_t b, std::int64_t h, typename Heads<T>::Sum* scores) {
  using Sum = typename Heads<T>::Sum;
  const std::int64_t g = h / p.group;
  for (std::int64_t i = 0; i < p.queries; ++i) {
    for (std::int64_t j = 0; j < p.visible(b, i); ++j) {
      Sum sum = 0;
      for (std::int64_t d = 0; d < p.width; ++d) {
        sum += static_cast<Sum>(p.q(b, h, i, d)) * static_cast<Sum>(p.k(b, g, j, d));
      }
      scores[i * p.keys + j] = p.scale * sum;
    }
  }
  for (std::int64_t i = 0; i < p.queries; ++i) {
    p.write_lse(b, h, i, softmax_row(scores + i * p.keys, p.visible(b, i)));
    for (std::int64_t c = 0; c < p.value_width; ++c) {
      Sum sum = 0;
      for (std::int64_t j = 0; j < p.visible(b, i); ++j) {
        sum += scores[i * p.keys + j] * static_cast<Sum>(p.v(b, g, j, c));
      }
      p.o(b, h, i, c) = static_cast<T>(sum);
    }
  }
}

Support supports(const Attention::Args& args, const Context&) {
  const double bytes = static_cast<double>(args.queries()) * static_cast<double>(args.keys()) * 8;
  return bytes <= 0x1p30 ? supported : unsupported("scores of one head beyond 1 GiB");
}

void run(const Attention::Args& args, Context& context) {
  with_heads(args, [&]<class T>(const Heads<T>& p) {
    using Sum = typename Heads<T>::Sum;
    const auto bytes = static_cast<std::size_t>(p.queries * p.keys) * sizeof(Sum);
    auto* scores = static_cast<Sum*>(context.workspace(bytes));
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t h = 0; h < p.heads; ++h) attend(p, b, h, scores);
    }
  });
}

const Rung<Attention> self{
    {.name = "materialized", .step = 10, .teaching = true, .supports = supports, .run = run}};

}  // namespace
}  // namespace rung
