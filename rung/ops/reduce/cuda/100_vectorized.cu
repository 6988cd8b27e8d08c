// SPDX-License-Identifier: Apache-2.0
// reduce / vectorized
//
// Idea     16-byte loads: four elements per instruction.
// Changes  against coarsened: a quarter of the load instructions for the same bytes, and 64 bytes
//          in flight per thread. On an H100, published figures for loads of 4, 8 and 16 bytes are
//          2.3, 3.05 and 3.15 TB/s.
// Cost     one load per four elements. The elements before the first 16-byte boundary and after the
//          last are loaded one by one.
// Limits   one sum of contiguous f32; two launches.
// Source   J. Luitjens, "CUDA Pro Tip: Increase performance with vectorized memory access" (2013).
#include "rung/core/bounds.hpp"
#include "rung/device/collectives.hpp"
#include "rung/device/load.hpp"
#include "rung/device/resident.hpp"
#include "rung/ops/reduce/cuda/detail/passes.hpp"

namespace rung {
namespace {

using namespace reduce_cuda;

constexpr int width = 4;
constexpr int unrolled = 4;

using Elements = WarpValues<float, pass_threads>;

__global__ void __launch_bounds__(pass_threads)
    reduce_vectorized(const float* x, std::int64_t n, float* partial) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * pass_threads + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * pass_threads;
  const std::int64_t misaligned =
      static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(x) / sizeof(float) % width);
  const std::int64_t before = misaligned == 0 ? 0 : width - misaligned;
  const std::int64_t head = before < n ? before : n;
  const std::int64_t packs = (n - head) / width;
  float sums[unrolled] = {};
  for (std::int64_t p = thread; p < packs; p += unrolled * threads) {
#pragma unroll
    for (int u = 0; u < unrolled; ++u) {
      if (p + u * threads < packs) {
        const auto pack = load_wide<width>(x + head + (p + u * threads) * width);
        sums[u] += (pack[0] + pack[1]) + (pack[2] + pack[3]);
      }
    }
  }
  // At most three elements at either end.
  if (thread < head) sums[0] += x[thread];
  const std::int64_t tail = head + packs * width + thread;
  if (tail < n) sums[1] += x[tail];
  const float sum =
      block_reduce<pass_threads>((sums[0] + sums[1]) + (sums[2] + sums[3]),
                                 [](float a, float b) { return a + b; }, 0.0F, shared<Elements>());
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

Cost traffic(const Reduce::Args& args) { return passes_traffic(args, 0); }

void run(const Reduce::Args& args, Context& context) {
  const std::int64_t most =
      resident_blocks(context, reduce_vectorized, pass_threads, sizeof(Elements));
  const std::int64_t a_block =
      larger(ceil_div(args.terms.size(), most), std::int64_t{pass_threads} * (width * unrolled));
  run_passes<Elements>(args, context, a_block, reduce_vectorized);
}

const Rung<Reduce> self{{.name = "vectorized",
                         .step = 100,
                         .after = "coarsened",
                         .backend = device_backend,
                         .teaching = true,
                         .supports = require_one_f32_sum,
                         .traffic = traffic,
                         .run = run}};

}  // namespace
}  // namespace rung
