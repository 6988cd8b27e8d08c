// SPDX-License-Identifier: Apache-2.0
// attention_backward / naive
//
// Idea     Compute the definition, one kernel per step: P and dS as matrices in memory with one
//          thread per (query, key) pair, then dq, dk and dv with one thread per element. The row
//          sum of dout o is folded into each pair: dS = P sum dout (v - o).
// Changes  Baseline.
// Cost     8 bytes per pair are written; dS is read 2 D times, P Dv times, mostly from caches. At
//          4096 queries and keys P and dS take 128 MB per head; all operands together take 8 MB at
//          D = 64.
// Limits   f32; P and dS up to 1 GiB. Adjacent threads read rows of K that are D elements apart,
//          uncoalesced.
// Source   T. Dao and others, FlashAttention, 2022, section 2.2, for the products.
#include "rung/core/integer.hpp"
#include "rung/device/launch.hpp"
#include "rung/ops/attention_backward/cuda/detail/gradients.hpp"

namespace rung {
namespace {

using namespace attention_backward_cuda;

constexpr int threads = 256;

/// P and dS, each batch x heads x queries x keys.
struct PairMatrices {
  View<float, 4> p, ds;
};

__global__ void attention_backward_pairs(Gradients<float> call, PairMatrices pairs) {
  const std::int64_t at = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (at >= pairs.p.size()) return;
  const std::int64_t j = at % call.keys();
  const std::int64_t i = at / call.keys() % call.queries();
  const std::int64_t h = at / call.keys() / call.queries() % call.heads();
  const std::int64_t b = at / call.keys() / call.queries() / call.heads();
  const std::int64_t g = h / call.group;
  const auto mask = call.mask(b);
  if (i >= mask.queries || !mask.sees(i, j)) return;
  const auto q = call.of_queries(call.q, b).at(h).at(i);
  const auto k = call.of_keys(call.k, b).at(g).at(j);
  float product = 0;
  for (std::int64_t d = 0; d < call.width(); ++d) product += q(d) * k(d);
  const auto dout = call.of_queries(call.dout, b).at(h).at(i);
  const auto o = call.of_queries(call.o, b).at(h).at(i);
  const auto v = call.of_keys(call.v, b).at(g).at(j);
  float difference = 0;  // dP minus the row sum of dout o
  for (std::int64_t c = 0; c < call.value_width(); ++c) difference += dout(c) * (v(c) - o(c));
  const float score = call.rule(product, b, h, i, j, mask.diagonal(i));
  const float lse = lse_as_power_of_two(call.lse_of(b, h, i));
  const float weight = power_of_two(log2_e<float> * score - lse);
  pairs.p(b, h, i, j) = weight;
  pairs.ds(b, h, i, j) = weight * call.rule.slope_at(product) * difference;
}

__global__ void attention_backward_of_queries(Gradients<float> call, PairMatrices pairs) {
  const std::int64_t at = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (at >= call.batch() * call.heads() * call.queries() * call.width()) return;
  const std::int64_t d = at % call.width();
  const std::int64_t i = at / call.width() % call.queries();
  const std::int64_t h = at / call.width() / call.queries() % call.heads();
  const std::int64_t b = at / call.width() / call.queries() / call.heads();
  const auto mask = call.mask(b);
  if (i >= mask.queries) return;
  const auto k = call.of_keys(call.k, b).at(h / call.group);
  float sum = 0;
  for (std::int64_t j = mask.first_key(i); j < mask.end_key(i); ++j) {
    sum += pairs.ds(b, h, i, j) * k(j, d);
  }
  call.of_queries(call.dq, b).at(h)(i, d) = call.rule.scale * sum;
}

/// Writes the gradient of a sink; one thread per head.
__global__ void attention_backward_naive_sinks(Gradients<float> call) {
  const std::int64_t h = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (h >= call.heads()) return;
  float sum = 0;
  for (std::int64_t b = 0; b < call.batch(); ++b) {
    const auto mask = call.mask(b);
    for (std::int64_t i = 0; i < mask.queries; ++i) {
      if (mask.end_key(i) == 0) continue;
      const auto dout = call.of_queries(call.dout, b).at(h).at(i);
      const auto o = call.of_queries(call.o, b).at(h).at(i);
      float row_sum = 0;
      for (std::int64_t c = 0; c < call.value_width(); ++c) row_sum += dout(c) * o(c);
      const float lse = lse_as_power_of_two(call.lse_of(b, h, i));
      sum -= power_of_two(call.sinks(h) * log2_e<float> - lse) * row_sum;
    }
  }
  call.dsinks(h) = sum;
}

/// Computes dk or dv: to(b, g, j, c) = factor sum weights(b, h, i, j) from(b, h, i, c) over the
/// queries i that see key j and the heads h that share it.
__global__ void attention_backward_of_keys(Gradients<float> call, View<const float, 4> weights,
                                           View<const float, 4> from, float factor,
                                           View<float, 4> to) {
  const std::int64_t at = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (at >= call.batch() * call.kv_heads() * call.keys() * to.shape[3]) return;
  const std::int64_t c = at % to.shape[3];
  const std::int64_t j = at / to.shape[3] % call.keys();
  const std::int64_t g = at / to.shape[3] / call.keys() % call.kv_heads();
  const std::int64_t b = at / to.shape[3] / call.keys() / call.kv_heads();
  if (j >= call.key_rows(b).count) return;
  const auto mask = call.mask(b);
  const auto rows = call.of_queries(from, b);
  const std::int64_t first = mask.first_query(j);
  const std::int64_t end = mask.end_query(j);
  float sum = 0;
  for (std::int64_t h = g * call.group; h < (g + 1) * call.group; ++h) {
    for (std::int64_t i = first; i < end; ++i) {
      sum += weights(b, h, i, j) * rows(h, i, c);
    }
  }
  call.of_keys(to, b)(g, j, c) = factor * sum;
}

double pair_bytes(const AttentionBackward::Args& args) {
  return static_cast<double>(args.batch()) * static_cast<double>(args.heads()) *
         static_cast<double>(args.queries()) * static_cast<double>(args.keys()) * 8;
}

Support supports(const AttentionBackward::Args& args, const Context&) {
  if (pair_bytes(args) > 0x1p30) return unsupported("P and dS beyond 1 GiB");
  return args.q.dtype == DType::f32 ? supported : unsupported("f32 only");
}

void run(const AttentionBackward::Args& args, Context& context) {
  const Extents shape{args.batch(), args.heads(), args.queries(), args.keys()};
  const std::int64_t count = shape.product();
  auto* const memory =
      static_cast<float*>(context.workspace(static_cast<std::size_t>(pair_bytes(args))));
  const PairMatrices pairs{TensorRef(memory, shape, context.device()).view<float, 4>(),
                           TensorRef(memory + count, shape, context.device()).view<float, 4>()};
  const Gradients<float> call = attention_gradients<float>(args);
  const auto blocks = [](std::int64_t elements) { return ceil_div(elements, threads); };
  launch(context, {.grid = blocks(count), .block = threads}, attention_backward_pairs, call, pairs);
  launch(context,
         {.grid = blocks(args.batch() * args.heads() * args.queries() * args.width()),
          .block = threads},
         attention_backward_of_queries, call, pairs);
  const std::int64_t keys = args.batch() * args.kv_heads() * args.keys();
  launch(context, {.grid = blocks(keys * args.width()), .block = threads},
         attention_backward_of_keys, call, pairs.ds, call.q, call.rule.scale, call.dk);
  launch(context, {.grid = blocks(keys * args.value_width()), .block = threads},
         attention_backward_of_keys, call, pairs.p, call.dout, 1.0F, call.dv);
  if (!args.has_sink_gradient()) return;
  launch(context, {.grid = blocks(args.heads()), .block = threads}, attention_backward_naive_sinks,
         call);
}

const Rung<AttentionBackward> self{{.name = "naive",
                                    .step = 10,
                                    .backend = device_backend,
                                    .teaching = true,
                                    .supports = supports,
                                    .run = run}};

}  // namespace
}  // namespace rung
