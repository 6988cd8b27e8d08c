// SPDX-License-Identifier: Apache-2.0
// attention / online, tiled
//
// Idea     One thread per query keeps its row of q, the sum of weighted values, the running maximum
//          and the sum of exponentials in registers. A block copies tiles of 32 keys and values
//          into shared memory for its 64 queries. When a tile raises the maximum, both sums are
//          rescaled.
// Changes  against materialized: scores never leave the registers, so only q, k, v and o move; one
//          kernel instead of three.
// Cost     K and V are read from memory once per 64 queries, and from shared memory once per query:
//          one load, broadcast to the lanes of a warp, per multiply-add.
// Limits   f32, D and Dv up to 64: q and the weighted sum take 128 registers per thread. Few
//          queries leave the GPU underused.
// Source   T. Dao and others, FlashAttention, 2022, algorithm 1.
#include "rung/core/integer.hpp"
#include "rung/ops/attention/cuda/detail/heads.hpp"

namespace rung {
namespace {

using namespace attention_cuda;

constexpr int rows = 64;      // queries per block, one per thread
constexpr int key_tile = 32;  // two tiles of 8 KB of shared memory
constexpr int max_width = 64;

struct Tiles {
  float k[key_tile][max_width];
  float v[key_tile][max_width];
};

template <class K>
__global__ void __launch_bounds__(rows) attention_online_tiled(Heads<float, K> p) {
  Tiles& tiles = shared<Tiles>();
  const std::int64_t i = std::int64_t{blockIdx.x} * rows + threadIdx.x;
  const std::int64_t h = blockIdx.y;
  const std::int64_t b = blockIdx.z;
  const std::int64_t g = h / p.group;
  const ScoreRule<float> rule = p.rule_of(b, g);
  const auto mask = p.mask(b);
  const std::int64_t first_query = std::int64_t{blockIdx.x} * rows;
  if (first_query >= mask.queries) return;  // packed: this batch element has fewer queries
  const bool exists = i < mask.queries;
  const View<const float, 2> queries = p.q_of(b).at(h);
  const std::int64_t end_of_last = mask.end_key(smaller(first_query + rows, mask.queries) - 1);

  float q[max_width];
  float weighted[max_width];
#pragma unroll
  for (int d = 0; d < max_width; ++d) {
    q[d] = exists && d < p.width() ? queries(i, d) : 0.0F;
    weighted[d] = 0;
  }
  float maximum = no_maximum<float>;
  float sum = 0;
  for (std::int64_t first = mask.first_key(first_query); first < end_of_last; first += key_tile) {
    __syncthreads();  // wait until the previous tile has been read
    for (int at = static_cast<int>(threadIdx.x); at < key_tile * max_width; at += rows) {
      const int d = at % max_width;
      const std::int64_t j = first + at / max_width;
      const bool is_key = j < end_of_last;
      tiles.k[at / max_width][d] =
          is_key && d < p.width() ? widened<float>(p.key(b, g, j)(d)) : 0.0F;
      tiles.v[at / max_width][d] =
          is_key && d < p.value_width() ? widened<float>(p.value(b, g, j)(d)) : 0.0F;
    }
    __syncthreads();  // the tiles are complete
    const auto within = [&](std::int64_t key) {
      return static_cast<int>(clamped(key - first, std::int64_t{0}, std::int64_t{key_tile}));
    };
    const int from = within(mask.first_key(i));
    const int to = exists ? within(mask.end_key(i)) : 0;
    float scores[key_tile];
    float larger = maximum;
#pragma unroll
    for (int j = 0; j < key_tile; ++j) {
      float score = 0;
#pragma unroll
      for (int d = 0; d < max_width; ++d) score += q[d] * tiles.k[j][d];
      if (j < from || j >= to) continue;
      scores[j] = rule(score, b, h, i, first + j, mask.diagonal(i));
      larger = fmaxf(larger, scores[j]);  // fmaxf drops a NaN; the sum restores it
    }
    const float rescale = power(maximum - larger);
    maximum = larger;
    sum *= rescale;
#pragma unroll
    for (int d = 0; d < max_width; ++d) weighted[d] *= rescale;
#pragma unroll
    for (int j = 0; j < key_tile; ++j) {
      if (j < from || j >= to) continue;  // skip, not multiply by 0: v may be NaN
      const float weight = power(scores[j] - maximum);
      sum += weight;
#pragma unroll
      for (int d = 0; d < max_width; ++d) weighted[d] += weight * tiles.v[j][d];
    }
  }
  if (!exists) return;
  const float factor = add_sink(p, h, maximum, sum) * p.value_scale(b, g);
  const View<float, 1> result = p.o_of(b).at(h).at(i);
#pragma unroll
  for (int d = 0; d < max_width; ++d) {
    if (d < p.value_width()) result(d) = weighted[d] * factor * reciprocal(sum);
  }
  p.write_lse(b, h, i, log_sum(maximum, sum));
}

Support supports(const Attention::Args& args, const Context& context) {
  if (args.width() > max_width || args.value_width() > max_width) {
    return unsupported("D and Dv up to 64");
  }
  if (args.heads() > 0xffff || args.batch() > 0xffff ||
      ceil_div(args.queries(), rows) > 0x7fffffff) {
    return unsupported("up to 65535 heads and batch elements");
  }
  return require_f32(args, context);
}

void run(const Attention::Args& args, Context& context) {
  visit<float, e4m3>(args.k.dtype, [&]<class K>() {
    launch(context,
           {.grid = {ceil_div(args.queries(), rows), args.heads(), args.batch()},
            .block = rows,
            .shared_bytes = sizeof(Tiles)},
           attention_online_tiled<K>, attention_heads<float, K>(args));
  });
}

const Rung<Attention> self{{.name = "online_tiled",
                            .step = 20,
                            .after = "materialized",
                            .backend = device_backend,
                            .teaching = true,
                            .supports = supports,
                            .run = run}};

}  // namespace
}  // namespace rung
