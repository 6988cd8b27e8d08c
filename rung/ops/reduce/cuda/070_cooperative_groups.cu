// SPDX-License-Identifier: Apache-2.0
// reduce / cooperative groups
//
// Idea     the block is partitioned into tiles of 32 threads, objects with a size, a rank and
//          shuffles: the code names the group of threads instead of computing masks.
// Changes  against warp_shuffle: no masks and no hardware constants in the kernel; the tree works
//          for any tile size. The instructions are the same.
// Cost     as warp_shuffle.
// Limits   one sum of contiguous f32.
// Source   CUDA C++ Programming Guide, Cooperative Groups.
#include "rung/device/tile_group.hpp"
#include "rung/ops/reduce/cuda/detail/passes.hpp"

namespace rung {
namespace {

using namespace reduce_cuda;

constexpr int a_block = 2 * pass_threads;
constexpr int tile_size = 32;

struct Elements {
  float at[pass_threads];
};

/// Returns the sum of a tile's values in its first thread.
template <class Group>
__device__ __forceinline__ float tile_sum(const Group& tile, float value) {
  for (int distance = static_cast<int>(tile.size()) / 2; distance > 0; distance /= 2) {
    value += tile.shfl_down(value, static_cast<unsigned>(distance));
  }
  return value;
}

__global__ void reduce_cooperative_groups(const float* x, std::int64_t n, float* partial) {
  Elements& elements = shared<Elements>();
  const auto tile = tile_of_block<tile_size>();
  const int t = static_cast<int>(threadIdx.x);
  const std::int64_t i = std::int64_t{blockIdx.x} * a_block + t;
  const float first = i < n ? x[i] : 0.0F;
  const float second = i + pass_threads < n ? x[i + pass_threads] : 0.0F;
  elements.at[t] = first + second;
  __syncthreads();
  for (int stride = pass_threads / 2; stride >= tile_size; stride /= 2) {
    if (t < stride) elements.at[t] += elements.at[t + stride];
    __syncthreads();
  }
  if (tile.meta_group_rank() != 0) return;
  const float sum = tile_sum(tile, elements.at[tile.thread_rank()]);
  if (tile.thread_rank() == 0) partial[blockIdx.x] = sum;
}

Cost traffic(const Reduce::Args& args) { return passes_traffic(args, 4.0 / a_block); }

void run(const Reduce::Args& args, Context& context) {
  run_passes<Elements>(args, context, a_block, reduce_cooperative_groups);
}

const Rung<Reduce> self{{.name = "cooperative_groups",
                         .step = 70,
                         .after = "warp_shuffle",
                         .backend = device_backend,
                         .teaching = true,
                         .supports = require_one_f32_sum,
                         .traffic = traffic,
                         .run = run}};

}  // namespace
}  // namespace rung
