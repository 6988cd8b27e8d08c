// SPDX-License-Identifier: Apache-2.0
// attention / materialized
//
// Idea     Compute the definition, one kernel per step: scores with one thread per score, softmax
//          with one thread per row, and o with one thread per element.
// Changes  baseline.
// Cost     The Sq x Sk scores of every head are written to memory and read back three times. At
//          4096 queries and keys they take 64 MB per head; at D = 64, q, k, v and o take 4 MB
//          together.
// Limits   f32; scores up to 1 GiB. Neighboring threads read rows of K that are D elements apart,
//          uncoalesced.
// Source   A. Vaswani and others, Attention is all you need, 2017.
#include "rung/core/integer.hpp"
#include "rung/ops/attention/cuda/detail/heads.hpp"

namespace rung {
namespace {

using namespace attention_cuda;

constexpr int threads = 256;

/// Writes the scores (batch x heads x queries x keys); one thread per score.
template <class K>
__global__ void attention_scores(Heads<float, K> p, View<float, 4> scores) {
  const std::int64_t at = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (at >= scores.size()) return;
  const std::int64_t j = at % p.keys();
  const std::int64_t i = at / p.keys() % p.queries();
  const std::int64_t h = at / p.keys() / p.queries() % p.heads();
  const std::int64_t b = at / p.keys() / p.queries() / p.heads();
  const auto mask = p.mask(b);
  if (i >= mask.queries || !mask.sees(i, j)) return;
  const View<const float, 1> query = p.q_of(b).at(h).at(i);
  const View<const K, 1> key = p.key(b, h / p.group, j);
  float sum = 0;
  for (std::int64_t d = 0; d < p.width(); ++d) sum += query(d) * widened<float>(key(d));
  scores(b, h, i, j) = p.rule_of(b, h / p.group)(sum, b, h, i, j, mask.diagonal(i));
}

/// Replaces the scores of each row by their softmax and writes lse; one thread per row.
template <class K>
__global__ void attention_softmax(Heads<float, K> p, View<float, 4> scores) {
  const std::int64_t at = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  const std::int64_t i = at % p.queries();
  const std::int64_t h = at / p.queries() % p.heads();
  const std::int64_t b = at / p.queries() / p.heads();
  if (b >= p.batch() || i >= p.mask(b).queries) return;
  const std::int64_t first = p.mask(b).first_key(i);
  const std::int64_t end = p.mask(b).end_key(i);
  float* const row = end == 0 ? nullptr : &scores(b, h, i, 0);
  float maximum = no_maximum<float>;
  for (std::int64_t j = first; j < end; ++j) maximum = fmaxf(maximum, row[j]);
  float sum = 0;
  for (std::int64_t j = first; j < end; ++j) sum += row[j] = power(row[j] - maximum);
  const float factor = add_sink(p, h, maximum, sum);
  for (std::int64_t j = first; j < end; ++j) row[j] *= factor * reciprocal(sum);
  p.write_lse(b, h, i, log_sum(maximum, sum));
}

template <class K>
__global__ void attention_weighted_values(Heads<float, K> p, View<const float, 4> weights) {
  const std::int64_t at = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (at >= p.batch() * p.heads() * p.queries() * p.value_width()) return;
  const std::int64_t c = at % p.value_width();
  const std::int64_t i = at / p.value_width() % p.queries();
  const std::int64_t h = at / p.value_width() / p.queries() % p.heads();
  const std::int64_t b = at / p.value_width() / p.queries() / p.heads();
  const auto mask = p.mask(b);
  if (i >= mask.queries) return;
  float sum = 0;
  for (std::int64_t j = mask.first_key(i); j < mask.end_key(i); ++j) {
    sum += weights(b, h, i, j) * widened<float>(p.value(b, h / p.group, j)(c));
  }
  p.o_of(b).at(h).at(i)(c) = sum * p.value_scale(b, h / p.group);
}

double score_bytes(const Attention::Args& args) {
  return static_cast<double>(args.batch()) * static_cast<double>(args.heads()) *
         static_cast<double>(args.queries()) * static_cast<double>(args.keys()) * 4;
}

Support supports(const Attention::Args& args, const Context& context) {
  if (score_bytes(args) > 0x1p30) return unsupported("scores beyond 1 GiB");
  return require_f32(args, context);
}

void run(const Attention::Args& args, Context& context) {
  const Extents shape{args.batch(), args.heads(), args.queries(), args.keys()};
  auto* memory =
      static_cast<float*>(context.workspace(static_cast<std::size_t>(score_bytes(args))));
  const View<float, 4> scores = TensorRef(memory, shape, context.device()).view<float, 4>();
  const std::int64_t rows = args.batch() * args.heads() * args.queries();
  visit<float, e4m3>(args.k.dtype, [&]<class K>() {
    const Heads<float, K> p = attention_heads<float, K>(args);
    launch(context, {.grid = ceil_div(scores.size(), threads), .block = threads},
           attention_scores<K>, p, scores);
    launch(context, {.grid = ceil_div(rows, threads), .block = threads}, attention_softmax<K>, p,
           scores);
    launch(context, {.grid = ceil_div(rows * args.value_width(), threads), .block = threads},
           attention_weighted_values<K>, p, scores);
  });
}

const Rung<Attention> self{{.name = "materialized",
                            .step = 10,
                            .backend = device_backend,
                            .teaching = true,
                            .supports = supports,
                            .run = run}};

}  // namespace
}  // namespace rung
