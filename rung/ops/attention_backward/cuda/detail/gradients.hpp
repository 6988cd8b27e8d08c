// SPDX-License-Identifier: Apache-2.0
// Gradients: kernel arguments, arithmetic of the weights, and facts of the rungs.
#pragma once

#include <cstdint>
#include <limits>

#include "rung/core/dtype.hpp"
#include "rung/core/integer.hpp"
#include "rung/core/view.hpp"
#include "rung/device/convert.hpp"
#include "rung/device/device.hpp"
#include "rung/device/ptx/thread.hpp"
#include "rung/ops/attention_backward/shared/gradients.hpp"

namespace rung::attention_backward_cuda::inline RUNG_TARGET {

template <class T>
using Gradients = AttentionGradients<T>;

template <class Sum>
inline constexpr Sum log2_e = Sum(1.44269504088896340736L);

/// Returns 2^z; for f32, ex2.approx has a relative error of 2^-22.
__device__ __forceinline__ float power_of_two(float z) { return ptx::fast_exp2(z); }
__device__ __forceinline__ double power_of_two(double z) { return exp2(z); }

/// Returns lse log2(e), with -infinity replaced by +infinity, so that 2^(score - lse) is 0.
template <class Sum>
__device__ __forceinline__ Sum lse_as_power_of_two(Sum lse) {
  constexpr Sum infinity = std::numeric_limits<Sum>::infinity();
  return lse == -infinity ? infinity : lse * log2_e<Sum>;
}

// --- on the host ---------------------------------------------------------------------------------

/// Returns the number of rows of q over all heads and batch elements; key_rows() returns those of
/// k.
inline std::int64_t query_rows(const AttentionBackward::Args& args) {
  return args.q.shape[0] * args.heads() * args.queries();
}
inline std::int64_t key_rows(const AttentionBackward::Args& args) {
  return args.k.shape[0] * args.kv_heads() * args.keys();
}

/// Parameters of facts_of(): tile sizes and costs of the two passes that run after the row sums: dk
/// and dv by tiles of keys, then dq by tiles of queries. `width` is D + Dv as computed (padded),
/// `operations` the operations per (query, key) pair.
struct TwoPasses {
  int queries, keys;  // tile of the pass with keys in the outer loop
  double rounds;      // dependent barriers and loads per tile
  double width, operations;
  int resident;
  std::string_view path;
};
inline Work facts_of(const AttentionBackward::Args& args, const TwoPasses& passes) {
  const auto at_least_one = [](double x) { return x > 1 ? x : 1.0; };
  // With a window, each key is seen by queries one later than the key before: together a block's
  // keys are seen by keys - 1 more queries than one key.
  const double seeing =
      args.visible_pairs() / at_least_one(static_cast<double>(args.typical_keys())) +
      (args.options.window > 0 ? passes.keys - 1 : 0);
  const double tiles = __builtin_ceil(smaller(seeing, static_cast<double>(args.typical_queries())) /
                                      passes.queries) *
                       static_cast<double>(args.group());
  const double blocks = static_cast<double>(args.batch() * args.kv_heads()) *
                        static_cast<double>(ceil_div(args.typical_keys(), passes.keys));
  const bool has_queries = query_rows(args) > 0;
  return {.operations = blocks * tiles * passes.keys * passes.queries * passes.operations,
          .launches = (has_queries ? 2 : 0) + (key_rows(args) > 0 ? 1 : 0) +
                      (args.has_sink_gradient() ? 1 : 0),
          .blocks = blocks,
          .resident = passes.resident,
          .rounds = passes.rounds * tiles,
          .steps = 2 * tiles * passes.width,
          .path = passes.path};
}

}  // namespace rung::attention_backward_cuda::inline RUNG_TARGET
