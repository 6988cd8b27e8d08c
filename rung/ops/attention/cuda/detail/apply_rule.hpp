// SPDX-License-Identifier: Apache-2.0
// apply_rule(): the score rule (shared/score_rule.hpp) on accumulator registers of mma and wgmma.
#pragma once

#include <limits>

#include "rung/device/ptx/thread.hpp"
#include "rung/device/tile/accumulator.hpp"
#include "rung/ops/attention/cuda/detail/query_job.hpp"

namespace rung::attention_cuda::inline RUNG_TARGET {

/// Replaces the products of a tile by their scores times log2(e), for a call whose scores are more
/// than scaled products. The lane's first row is `query`, its second row 8 queries below; the tile
/// starts at key first_key. Scores of queries and keys that do not exist are any numbers.
template <int Registers, class T, class K>
__device__ __forceinline__ void apply_rule(float (&scores)[Registers], const QueryJob<T, K>& job,
                                           const BlockQueries& work, int query, int first_key) {
  const ScoreRule<float>& rule = job.heads.rule;
  const float scale = job.heads.rule_of(work.batch, work.head / job.heads.group).scale;
#pragma unroll
  for (int i = 0; i < Registers; ++i) scores[i] *= scale;
  if (rule.soft_cap != 0) {
    // tanh(x) = 1 - 2 / (1 + e^(2 x)): an absolute error of a few units in the last place of 1.
    const float soft_cap = rule.soft_cap;
    const float factor =
        fminf(2 * log2_e<float> / soft_cap, std::numeric_limits<float>::max());  // 0 stays 0
#pragma unroll
    for (int i = 0; i < Registers; ++i) {
      const float share = ptx::fast_reciprocal(1 + ptx::fast_exp2(scores[i] * factor));
      scores[i] = soft_cap * fmaf(-2.0F, share, 1.0F);
    }
  }
  if (rule.slopes.data != nullptr) {
    const float slope = rule.slopes(work.head);
    const int before = first_key - (query + work.length - work.queries);
#pragma unroll
    for (int i = 0; i < Registers; ++i) {
      const int distance = before + accumulator_column(i) - 8 * accumulator_row(i);
      scores[i] = fmaf(-slope, fabsf(static_cast<float>(distance)), scores[i]);
    }
  }
  if (rule.bias.data != nullptr) {
    // Clamped indices: predicates per score would spill.
    const auto bias = rule.bias.at(work.batch).at(work.head);
    const float* const upper = bias.data + min(query, work.queries - 1) * bias.strides[0];
    const float* const lower = bias.data + min(query + 8, work.queries - 1) * bias.strides[0];
    const int last = work.length - 1;
#pragma unroll
    for (int i = 0; i < Registers; ++i) {
      const int key = min(first_key + accumulator_column(i), last);
      scores[i] += (accumulator_row(i) == 0 ? upper : lower)[key * bias.strides[1]];
    }
  }
  // Scores as exponents of 2, so that a job's scale is 1 and the softmax subtracts exactly: a bias
  // may be so large that a rounded product with log2(e) would exceed the maximum.
#pragma unroll
  for (int i = 0; i < Registers; ++i) scores[i] *= log2_e<float>;
}

}  // namespace rung::attention_cuda::inline RUNG_TARGET
