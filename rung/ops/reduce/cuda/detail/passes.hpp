// SPDX-License-Identifier: Apache-2.0
// Host code of reduce's first CUDA rungs: launches of their passes (op/passes.hpp has the rest).
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/device/device.hpp"
#include "rung/ops/reduce/op/passes.hpp"

namespace rung::reduce_cuda::inline RUNG_TARGET {

/// Threads per block: eight warps.
inline constexpr int pass_threads = 256;

using reduce_passes::in_passes;
using reduce_passes::passes_traffic;
using reduce_passes::require_one_f32_sum;

/// Runs in_passes() with blocks of pass_threads and a Layout in shared memory.
template <class Layout>
void run_passes(const Reduce::Args& args, Context& context, std::int64_t a_block,
                void (*kernel)(const float*, std::int64_t, float*)) {
  in_passes(args, context, a_block, 0,
            [&](const float* in, std::int64_t n, float* out, std::int64_t blocks, float*) {
              launch(context,
                     {.grid = blocks, .block = pass_threads, .shared_bytes = sizeof(Layout)},
                     kernel, in, n, out);
            });
}

/// Runs passes whose blocks reduce a copy of their elements in global memory: kernel(x, n, copy,
/// partial), with pass_threads elements of `copy` per block.
inline void run_global_tree(const Reduce::Args& args, Context& context,
                            void (*kernel)(const float*, std::int64_t, float*, float*)) {
  const std::int64_t scratch = round_up(larger<std::int64_t>(args.terms.size(), 1), pass_threads);
  in_passes(args, context, pass_threads, scratch,
            [&](const float* in, std::int64_t n, float* out, std::int64_t blocks, float* copy) {
              launch(context, {.grid = blocks, .block = pass_threads}, kernel, in, n, copy, out);
            });
}

}  // namespace rung::reduce_cuda::inline RUNG_TARGET
