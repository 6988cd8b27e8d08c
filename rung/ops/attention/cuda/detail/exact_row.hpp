// SPDX-License-Identifier: Apache-2.0
// Recomputation of a row of o by one warp without tensor cores. The tensor cores multiply the
// values of hidden keys by zero, and 0 times infinity or NaN is NaN; affected rows are recomputed
// here.
#pragma once

#include "rung/device/collectives.hpp"
#include "rung/ops/attention/cuda/detail/online_softmax.hpp"
#include "rung/ops/attention/cuda/detail/query_job.hpp"

namespace rung::attention_cuda::inline RUNG_TARGET {

/// Writes lse for a warp's 16 rows, starting at query `first`, if lse was requested.
template <class T>
__device__ __forceinline__ void write_log_sums(const QueryJob<T>& job, const BlockQueries& work,
                                               int first, const RowSoftmax& softmax) {
  const int lane = lane_of_thread();
  if (job.heads.lse.data == nullptr || lane % 4 != 0) return;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const int query = first + lane / 4 + 8 * row;
    if (query >= job.queries()) continue;
    job.heads.lse(work.batch, work.head, query) = softmax.log_sum(row, job.scale);
  }
}

/// Computes one row of o over its visible keys; calls put(column, value) for each column, from one
/// lane.
template <int Width, class T, class Put>
__device__ __forceinline__ void exact_row(const QueryJob<T>& job, int batch, int head, int query,
                                          int first_key, int end_key, const Put& put) {
  constexpr int each = Width / warp_size;
  const Heads<T>& heads = job.heads;
  const int lane = lane_of_thread();
  const int shared_head = head / heads.group;
  const T* const q = &heads.q(batch, head, query, 0);
  const auto k = heads.k.at(batch).at(shared_head);
  const auto v = heads.v.at(batch).at(shared_head);
  float max = no_score;
  float sum = 0;
  float total[each] = {};
  for (int key = first_key; key < end_key; ++key) {
    float score = 0;
#pragma unroll 1
    for (int column = lane; column < job.width(); column += warp_size) {
      score = fmaf(convert<float>(q[column * heads.q.strides[3]]), convert<float>(k(key, column)),
                   score);
    }
    score = warp_reduce(score, [](float a, float b) { return a + b; });
    const float greatest = fmaxf(max, score);
    const float shift = greatest == no_score ? 0.0f : greatest * job.scale;
    const float factor = ptx::fast_exp2(fmaf(max, job.scale, -shift));
    const float power = ptx::fast_exp2(fmaf(score, job.scale, -shift));
    max = greatest;
    sum = fmaf(sum, factor, power);
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int column = lane + i * warp_size;
      if (column >= job.value_width()) continue;
      total[i] = fmaf(total[i], factor, power * convert<float>(v(key, column)));
    }
  }
#pragma unroll
  for (int i = 0; i < each; ++i) {
    const int column = lane + i * warp_size;
    // If all scores are -infinity, a NaN or an infinity in v has already made the total NaN.
    if (column < job.value_width()) put(column, sum == 0 ? total[i] : total[i] / sum);
  }
}

/// Recomputes those of a warp's 16 rows whose results are not finite; `check`, for a lane's two
/// rows, is NaN if a value is infinite or NaN. Calls put(row, column, value) for each recomputed
/// row. Does nothing unless causal: without the mask, only values past the last key are hidden, and
/// these were replaced by zeros.
template <int Width, class T, class Put>
__device__ __forceinline__ void repair_rows(const QueryJob<T>& job, const BlockQueries& work,
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
      if (first + row >= job.queries()) continue;
      exact_row<Width>(job, work.batch, work.head, first + row,
                       job.first_key(first + row, work.length),
                       job.end_key(first + row, work.length),
                       [&](int column, float value) { put(row, column, value); });
    }
  }
}

}  // namespace rung::attention_cuda::inline RUNG_TARGET
