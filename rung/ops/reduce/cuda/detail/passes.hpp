// SPDX-License-Identifier: Apache-2.0
// The host side of reduce's first CUDA rungs: one sum of contiguous f32, in passes. Each pass
// leaves one partial sum per block; passes follow one another until one block is enough.
#pragma once

#include <cstdint>
#include <utility>

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/device/device.hpp"
#include "rung/ops/reduce/reduce.hpp"

namespace rung::reduce_cuda::inline RUNG_TARGET {

/// Threads a block: eight warps, enough of them on an SM to hide its latencies.
inline constexpr int pass_threads = 256;

inline Support require_one_f32_sum(const Reduce::Args& args, const Context&) {
  if (args.operation != Reduction::sum) return unsupported("sums only");
  if (args.x.dtype != DType::f32) return unsupported("f32 only");
  if (args.has_segments()) return unsupported("no segments");
  if (args.kept.size() != 1) return unsupported("all axes must be reduced");
  if (!args.terms.is_contiguous()) return unsupported("x must be contiguous");
  return supported;
}

/// pass(in, n, out, blocks) for each pass; the last one writes y. `a_block` elements of the input
/// go into one partial sum.
template <class Pass>
void in_passes(const Reduce::Args& args, Context& context, std::int64_t a_block, const Pass& pass,
               std::int64_t scratch = 0) {
  const float* in = static_cast<const float*>(args.x.data);
  std::int64_t n = args.terms.size();
  const std::int64_t first = ceil_div(n, a_block);
  const std::int64_t second = ceil_div(first, a_block);
  auto* memory = static_cast<float*>(
      context.workspace(static_cast<std::size_t>(scratch + first + second) * sizeof(float)));
  float* partial[] = {memory + scratch, memory + scratch + first};
  for (int which = 0;; which = 1 - which) {
    const std::int64_t blocks = larger<std::int64_t>(ceil_div(n, a_block), 1);
    float* out = blocks == 1 ? static_cast<float*>(args.y.data) : partial[which];
    pass(in, n, out, blocks);
    if (blocks == 1) return;
    in = out;
    n = blocks;
  }
}

/// in_passes() of blocks of pass_threads that share a Layout.
template <class Layout>
void run_passes(const Reduce::Args& args, Context& context, std::int64_t a_block,
                void (*kernel)(const float*, std::int64_t, float*)) {
  in_passes(args, context, a_block,
            [&](const float* in, std::int64_t n, float* out, std::int64_t blocks) {
              launch(context,
                     {.grid = blocks, .block = pass_threads, .shared_bytes = sizeof(Layout)},
                     kernel, in, n, out);
            });
}

/// Bytes of a sum whose passes write `written` bytes and read them again for each element of x.
inline Cost passes_traffic(const Reduce::Args& args, double written) {
  Cost cost = Reduce::cost(args);
  cost.bytes += 2 * written * cost.operations;
  return cost;
}

/// Passes whose blocks add up a copy of their elements in global memory: kernel(x, n, copy,
/// partial), where `copy` has room for pass_threads elements per block.
inline void run_global_tree(const Reduce::Args& args, Context& context,
                            void (*kernel)(const float*, std::int64_t, float*, float*)) {
  const std::int64_t scratch = round_up(larger<std::int64_t>(args.terms.size(), 1), pass_threads);
  in_passes(
      args, context, pass_threads,
      [&](const float* in, std::int64_t n, float* out, std::int64_t blocks) {
        launch(context, {.grid = blocks, .block = pass_threads}, kernel, in, n,
               static_cast<float*>(context.workspace(0)), out);
      },
      scratch);
}

}  // namespace rung::reduce_cuda::inline RUNG_TARGET
