// SPDX-License-Identifier: Apache-2.0
// Recomputation of a row of o by one warp without tensor cores. The tensor cores multiply the
// values of hidden keys by zero, and 0 times infinity or NaN is NaN; affected rows are recomputed
// here.
#pragma once

#include "rung/device/collectives.hpp"
#include "rung/ops/attention/cuda/detail/online_softmax.hpp"
#include "rung/ops/attention/cuda/detail/query_job.hpp"

namespace rung::attention_cuda::inline RUNG_TARGET {

/// Completes the softmax of a warp's 16 rows after the last tile: adds up the lanes' sums and the
/// head's sink. Returns through `factor` what turns the weighted sums into o.
template <class T, class K>
__device__ __forceinline__ void finish_rows(const QueryJob<T, K>& job, const BlockQueries& work,
                                            RowSoftmax& softmax, float (&factor)[2]) {
  softmax.finish();
  factor[0] = factor[1] = 1;
  if (job.heads.sinks.data != nullptr) {
    // In the units of the softmax: with a rule exponents of 2, else products.
    const float sink = job.heads.sinks(work.head);
    softmax.add_score(job.ruled ? sink * log2_e<float> : sink / job.heads.rule.scale, job.scale,
                      factor);
  }
  const float scale = job.heads.value_scale(work.batch, work.head / job.heads.group);
#pragma unroll
  for (int row = 0; row < 2; ++row) factor[row] *= softmax.reciprocal(row) * scale;
}

/// Writes lse for a warp's 16 rows, starting at query `first`, if lse was requested.
template <class T, class K>
__device__ __forceinline__ void write_log_sums(const QueryJob<T, K>& job, const BlockQueries& work,
                                               int first, const RowSoftmax& softmax) {
  const int lane = lane_of_thread();
  if (job.heads.lse.data == nullptr || lane % 4 != 0) return;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const int query = first + lane / 4 + 8 * row;
    if (query >= work.queries) continue;
    job.heads.write_lse(work.batch, work.head, query, softmax.log_sum(row, job.scale));
  }
}

/// Computes one row of o over its visible keys; calls put(column, value) for each column, from one
/// lane.
template <int Width, class T, class K, class Put>
__device__ __forceinline__ void exact_row(const QueryJob<T, K>& job, const BlockQueries& work,
                                          int query, const Put& put) {
  constexpr int each = Width / warp_size;
  const Heads<T, K>& heads = job.heads;
  const int lane = lane_of_thread();
  const int shared_head = work.head / heads.group;
  const auto q = heads.q_of(work.batch).at(work.head).at(query);
  const int end_key = job.end_key(work, query);
  const ScoreRule<float> rule = heads.rule_of(work.batch, shared_head);
  const int diagonal = query + work.length - work.queries;
  float max = no_maximum<float>;
  float sum = 0;
  float total[each] = {};
#pragma unroll 1
  for (int key = job.first_key(work, query); key < end_key; ++key) {
    const auto k = heads.key(work.batch, shared_head, key);
    const auto v = heads.value(work.batch, shared_head, key);
    float product = 0;
#pragma unroll 1
    for (int column = lane; column < job.width(); column += warp_size) {
      product = fmaf(convert<float>(q(column)), widened<float>(k(column)), product);
    }
    product = warp_reduce(product, [](float a, float b) { return a + b; });
    const float score = rule(product, work.batch, work.head, query, key, diagonal);
    const float greatest = fmaxf(max, score);
    const float factor = power(max - greatest);
    const float weight = power(score - greatest);
    max = greatest;
    sum = fmaf(sum, factor, weight);
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int column = lane + i * warp_size;
      if (column >= job.value_width()) continue;
      total[i] = fmaf(total[i], factor, weight * widened<float>(v(column)));
    }
  }
  const float share =
      add_sink(heads, work.head, max, sum) * heads.value_scale(work.batch, shared_head);
#pragma unroll
  for (int i = 0; i < each; ++i) {
    const int column = lane + i * warp_size;
    // If all scores are -infinity, a NaN or an infinity in v has already made the total NaN.
    if (column < job.value_width()) put(column, total[i] * share * reciprocal(sum));
  }
}

/// Recomputes those of a warp's 16 rows whose results are not finite; `check`, for a lane's two
/// rows, is NaN if a value is infinite or NaN. Calls put(row, column, value) for each recomputed
/// row. Does nothing unless causal: without the mask, only values past the last key are hidden, and
/// these were replaced by zeros.
template <int Width, class T, class K, class Put>
__device__ __forceinline__ void repair_rows(const QueryJob<T, K>& job, const BlockQueries& work,
                                            int first, const float (&check)[2], const Put& put) {
  if (!job.heads.causal) return;
#pragma unroll 1
  for (int i = 0; i < 2; ++i) {
    const float of_row = i == 0 ? check[0] : check[1];
    unsigned lanes = __ballot_sync(all_lanes, of_row != of_row);
    while (lanes != 0) {
      const int group = (__ffs(static_cast<int>(lanes)) - 1) / 4;
      lanes &= ~(0xfu << (4 * group));
      const int row = group + 8 * i;
      if (first + row >= work.queries) continue;
      exact_row<Width>(job, work, first + row,
                       [&](int column, float value) { put(row, column, value); });
    }
  }
}

}  // namespace rung::attention_cuda::inline RUNG_TARGET
