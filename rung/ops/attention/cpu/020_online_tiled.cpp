// SPDX-License-Identifier: Apache-2.0
// attention / online, tiled
//
// Idea     Never store a whole row of scores. Keys are processed in tiles of 64; each query keeps
//          its running maximum, sum of exponentials and sum of weighted values, and rescales both
//          sums when a tile raises the maximum.
// Changes  against materialized: no matrix of scores. A tile of K and of V, 64 KB at D = 128 in
//          f32, is read from memory once per 16 queries; the first query loads it and the other 15
//          read it from L2.
// Cost     2 (D + Dv) operations per score; K and V are read Sq / 16 times.
// Limits   All valid arguments; one thread, scalar code.
// Source   M. Milakov and N. Gimelshein, Online normalizer calculation for softmax, 2018; T. Dao
//          and others, FlashAttention, 2022.
#include <algorithm>
#include <cmath>
#include <limits>

#include "rung/cpu/piece_work.hpp"
#include "rung/ops/attention/cpu/detail/heads.hpp"

namespace rung {
namespace {
using namespace attention_cpu;

constexpr std::int64_t query_tile = 16;
constexpr std::int64_t key_tile = 64;

/// Running state of a query; `weighted` has one element per column of V.
template <class Sum>
struct Running {
  Sum maximum;
  Sum sum;
  Sum* weighted;
};

/// Adds keys [first, end) to the running state of query i.
template <class T, class K>
void add_tile(const Heads<T, K>& p, std::int64_t b, std::int64_t h, std::int64_t i,
              std::int64_t first, std::int64_t end, Running<Accumulator<T>>& running) {
  using Sum = Accumulator<T>;
  const std::int64_t g = h / p.group;
  const ScoreRule<Sum> rule = p.rule_of(b, g);
  const View<const T, 1> query = p.q_of(b).at(h).at(i);
  const std::int64_t diagonal = p.mask(b).diagonal(i);
  Sum weight[key_tile];
  Sum maximum = running.maximum;
  for (std::int64_t j = first; j < end; ++j) {
    const View<const K, 1> key = p.key(b, g, j);
    Sum sum = 0;
    for (std::int64_t d = 0; d < p.width(); ++d) {
      sum += static_cast<Sum>(query(d)) * static_cast<Sum>(key(d));
    }
    weight[j - first] = rule(sum, b, h, i, j, diagonal);
    maximum = std::fmax(maximum, weight[j - first]);  // drops a NaN; the sum keeps it
  }
  const Sum rescale = std::exp(running.maximum - maximum);
  running.maximum = maximum;
  running.sum *= rescale;
  for (std::int64_t c = 0; c < p.value_width(); ++c) running.weighted[c] *= rescale;
  for (std::int64_t j = first; j < end; ++j) {
    const Sum w = std::exp(weight[j - first] - maximum);
    running.sum += w;
    const View<const K, 1> value = p.value(b, g, j);
    for (std::int64_t c = 0; c < p.value_width(); ++c) {
      running.weighted[c] += w * static_cast<Sum>(value(c));
    }
  }
}

template <class T, class K>
void attend(const Heads<T, K>& p, std::int64_t b, std::int64_t h, std::int64_t first_query,
            Accumulator<T>* scratch) {
  using Sum = Accumulator<T>;
  const auto mask = p.mask(b);
  const std::int64_t count = std::min(query_tile, mask.queries - first_query);
  Running<Sum> running[query_tile];
  for (std::int64_t i = 0; i < count; ++i) {
    // Finite, so that a score of -infinity minus it is -infinity, not NaN.
    running[i] = {std::numeric_limits<Sum>::lowest(), 0, scratch + i * p.value_width()};
    std::fill_n(running[i].weighted, p.value_width(), Sum{0});
  }
  const std::int64_t end_of_last = mask.end_key(first_query + count - 1);
  for (std::int64_t tile = mask.first_key(first_query); tile < end_of_last; tile += key_tile) {
    for (std::int64_t i = first_query; i < first_query + count; ++i) {
      const std::int64_t first = std::max(tile, mask.first_key(i));
      const std::int64_t end = std::min(tile + key_tile, mask.end_key(i));
      if (first < end) add_tile(p, b, h, i, first, end, running[i - first_query]);
    }
  }
  for (std::int64_t i = 0; i < count; ++i) {
    auto& [maximum, sum, weighted] = running[i];
    if (const Sum sink = sink_of(p, h); sink > -std::numeric_limits<Sum>::infinity()) {
      const Sum greatest = std::fmax(maximum, sink);
      const Sum rescale = std::exp(maximum - greatest);
      sum = sum * rescale + std::exp(sink - greatest);
      for (std::int64_t c = 0; c < p.value_width(); ++c) weighted[c] *= rescale;
      maximum = greatest;
    }
    const Sum divisor = divisor_of(sum);
    const Sum scale = p.value_scale(b, h / p.group);
    const View<T, 1> result = p.o_of(b).at(h).at(first_query + i);
    for (std::int64_t c = 0; c < p.value_width(); ++c) {
      result(c) = static_cast<T>(weighted[c] / divisor * scale);
    }
    p.write_lse(b, h, first_query + i,
                sum == 0 ? -std::numeric_limits<Sum>::infinity() : maximum + std::log(sum));
  }
}

Work work(const Attention::Args& args, const Context&) {
  const auto heads = static_cast<double>(args.batch() * args.heads());
  return cpu::piece_work(heads * static_cast<double>(args.queries()), heads * args.visible_pairs(),
                         1, type_path(args.q.dtype));
}

void run(const Attention::Args& args, Context& context) {
  with_heads(args, [&]<class T, class K>(const Heads<T, K>& p) {
    using Sum = Accumulator<T>;
    const auto elements = static_cast<std::size_t>(query_tile * p.value_width());
    auto* scratch = static_cast<Sum*>(context.workspace(elements * sizeof(Sum)));
    for (std::int64_t b = 0; b < p.batch(); ++b) {
      for (std::int64_t h = 0; h < p.heads(); ++h) {
        for (std::int64_t i = 0; i < p.mask(b).queries; i += query_tile)
          attend(p, b, h, i, scratch);
      }
    }
  });
}

const Rung<Attention> self{
    {.name = "online_tiled", .step = 20, .after = "materialized", .work = work, .run = run}};

}  // namespace
}  // namespace rung
