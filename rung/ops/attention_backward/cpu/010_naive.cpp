// SPDX-License-Identifier: Apache-2.0
// attention_backward / naive
//
// Idea     Compute the definition in three nested loops: queries, visible keys, columns. P is
//          recomputed from lse, so no matrix of scores is stored.
// Changes  Baseline.
// Cost     6 D + 4 Dv operations per (query, key) pair and one exp. The two dot products are
//          latency-bound chains of additions.
// Limits   All valid arguments; one thread, scalar code.
// Source   T. Dao and others, FlashAttention, 2022, algorithm 4.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/ops/attention_backward/cpu/detail/gradients.hpp"

namespace rung {
namespace {
using namespace attention_backward_cpu;

/// Accumulators: dk and dv of one head of k and v, and dq of one query.
template <class Sum>
struct NaiveSums {
  Sum* dk;  // keys x D
  Sum* dv;  // keys x Dv
  Sum* dq;  // D
};

/// Adds the terms of head h to dk and dv, and writes its dq.
template <class T>
void add_head(const Gradients<T>& p, std::int64_t b, std::int64_t h,
              const NaiveSums<Accumulator<T>>& sums) {
  using Sum = Accumulator<T>;
  const std::int64_t g = h / p.group;
  const auto mask = p.mask(b);
  const auto keys = p.of_keys(p.k, b).at(g);
  const auto values = p.of_keys(p.v, b).at(g);
  const auto queries = p.of_queries(p.q, b).at(h);
  const auto douts = p.of_queries(p.dout, b).at(h);
  const auto dqs = p.of_queries(p.dq, b).at(h);
  for (std::int64_t i = 0; i < mask.queries; ++i) {
    const std::int64_t end = mask.end_key(i);
    std::fill_n(sums.dq, p.width(), Sum{0});
    const Sum of_row = end > 0 ? row_sum(p, b, h, i) : Sum{0};
    const Sum lse = end > 0 ? finite_or_infinite_lse(p, b, h, i) : Sum{0};
    for (std::int64_t j = mask.first_key(i); j < end; ++j) {
      Sum product = 0;
      for (std::int64_t d = 0; d < p.width(); ++d) {
        product += static_cast<Sum>(queries(i, d)) * static_cast<Sum>(keys(j, d));
      }
      Sum dp = 0;
      for (std::int64_t c = 0; c < p.value_width(); ++c) {
        dp += static_cast<Sum>(douts(i, c)) * static_cast<Sum>(values(j, c));
      }
      const Sum weight = std::exp(p.rule(product, b, h, i, j, mask.diagonal(i)) - lse);
      const Sum ds = weight * p.rule.slope_at(product) * (dp - of_row);
      for (std::int64_t d = 0; d < p.width(); ++d) {
        sums.dq[d] += ds * static_cast<Sum>(keys(j, d));
        sums.dk[j * p.width() + d] += ds * static_cast<Sum>(queries(i, d));
      }
      for (std::int64_t c = 0; c < p.value_width(); ++c) {
        sums.dv[j * p.value_width() + c] += weight * static_cast<Sum>(douts(i, c));
      }
    }
    for (std::int64_t d = 0; d < p.width(); ++d) {
      dqs(i, d) = static_cast<T>(p.rule.scale * sums.dq[d]);
    }
  }
}

void run(const AttentionBackward::Args& args, Context& context) {
  with_gradients(args, [&]<class T>(const Gradients<T>& p) {
    using Sum = Accumulator<T>;
    const std::int64_t of_keys = p.keys() * (p.width() + p.value_width());
    auto* const memory = static_cast<Sum*>(
        context.workspace(static_cast<std::size_t>(of_keys + p.width()) * sizeof(Sum)));
    const NaiveSums<Sum> sums{memory, memory + p.keys() * p.width(), memory + of_keys};
    for (std::int64_t b = 0; b < p.batch(); ++b) {
      for (std::int64_t g = 0; g < p.kv_heads(); ++g) {
        const std::int64_t keys = p.key_rows(b).count;
        std::fill_n(sums.dk, keys * p.width(), Sum{0});
        std::fill_n(sums.dv, keys * p.value_width(), Sum{0});
        for (std::int64_t h = g * p.group; h < (g + 1) * p.group; ++h) add_head(p, b, h, sums);
        const auto dk = p.of_keys(p.dk, b).at(g);
        const auto dv = p.of_keys(p.dv, b).at(g);
        for (std::int64_t j = 0; j < keys; ++j) {
          for (std::int64_t d = 0; d < p.width(); ++d) {
            dk(j, d) = static_cast<T>(p.rule.scale * sums.dk[j * p.width() + d]);
          }
          for (std::int64_t c = 0; c < p.value_width(); ++c) {
            dv(j, c) = static_cast<T>(sums.dv[j * p.value_width() + c]);
          }
        }
      }
    }
    for (std::int64_t h = 0; p.dsinks.data != nullptr && h < p.heads(); ++h) {
      write_sink_gradient(p, h);
    }
  });
}

const Rung<AttentionBackward> self{{.name = "naive", .step = 10, .teaching = true, .run = run}};

}  // namespace
}  // namespace rung
