// SPDX-License-Identifier: Apache-2.0
// gemm / stream k: the kernel, compiled for a type of operands a file.
//
// Idea, Changes, Cost and Limits stand in 340_stream_k.sm90a.cu, whose rung this is a part of.
#pragma once

#include "rung/device/ptx_hopper.hpp"
#include "rung/device/ptx_memory.hpp"
#include "rung/device/ptx_thread.hpp"
#include "rung/ops/gemm/cuda/detail/consume.hpp"
#include "rung/ops/gemm/cuda/detail/tensor_job.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

constexpr int stream_rows = 64 * consumer_groups;
constexpr int stream_columns = 256;
constexpr int stream_stages = 4;  // of 48 KiB

struct StreamLayout {
  TileStage<stream_rows, stream_columns> stages[stream_stages];
  StripBoxes strips[consumer_warps];
  StageRing<stream_stages> ring;
};

/// What blocks leave to each other: of each block one tile's sums, a part for each consumer
/// warpgroup, in the order of its threads' registers; and whether they are there.
struct StreamPartials {
  float* sums;
  unsigned* flags;
};
constexpr std::int64_t stream_partial_floats = std::int64_t{stream_rows} * stream_columns;

/// A part of the products of a tile of C: steps first_step .. first_step + steps - 1 of its k.
struct StreamPiece {
  int tile;
  int first_step, steps;
  bool ends;  // with the tile's last step
};

/// All steps of all tiles in a row, cut into as many equal parts as there are blocks. A block
/// takes the pieces of its part from the last to the first: what it leaves to the next block
/// comes first, and what it takes from those in front, which started earlier, comes last.
class StreamPart {
  int steps_;   // of a tile
  int each_;    // of a block ...
  int longer_;  // ... and one more of so many blocks
  int end_;

 public:
  __device__ StreamPart(int total, int steps, int block, int blocks)
      : steps_(steps), each_(total / blocks), longer_(total % blocks), end_(begin_of(block + 1)) {}

  /// Where a block's part begins.
  [[nodiscard]] __device__ int begin_of(int block) const {
    return block * each_ + smaller(block, longer_);
  }
  [[nodiscard]] __device__ int begin_of_tile(int tile) const { return tile * steps_; }
  /// The next piece of `block`'s part; false: there is none.
  __device__ bool next(int block, StreamPiece& piece) {
    const int begin = begin_of(block);
    if (end_ <= begin) return false;
    piece.tile = (end_ - 1) / steps_;
    const int first = larger(begin, begin_of_tile(piece.tile));
    piece.first_step = first - begin_of_tile(piece.tile);
    piece.steps = end_ - first;
    piece.ends = end_ == begin_of_tile(piece.tile + 1);
    end_ = first;
    return true;
  }
};

/// The calling thread's sums of a tile, four by four, in the partial sums of `block`.
__device__ inline float* stream_sums(const StreamPartials& partials, int block, int consumer,
                                     int i) {
  constexpr int threads = 32 * consumer_warps;
  return partials.sums + block * stream_partial_floats +
         (std::int64_t{i} / 4 * threads + consumer) * 4;
}

/// Leaves the sums to a later block.
template <int Registers>
__device__ __forceinline__ void leave_sums(const StreamPartials& partials, int block, int consumer,
                                           const float (&sums)[Registers]) {
#pragma unroll
  for (int i = 0; i < Registers; i += 4) {
    store_wide(stream_sums(partials, block, consumer, i),
               Pack<float, 4>{{sums[i], sums[i + 1], sums[i + 2], sums[i + 3]}});
  }
  const int group = consumer / 128;
  ptx::barrier_sync(1 + group, 128);
  if (consumer % 128 == 0) {
    ptx::store_release(&partials.flags[block * consumer_groups + group], 1u);
  }
}
/// Waits for what the blocks from `first` to the one in front of `block` have left, and adds it up
/// in the partial sums of the latter, the latest first.
template <int Registers>
__device__ __forceinline__ void gather_sums(const StreamPartials& partials, int first, int block,
                                            int consumer) {
  const int group = consumer / 128;
  if (consumer % 128 == 0) {
    for (int other = first; other < block; ++other) {
      while (ptx::load_acquire(&partials.flags[other * consumer_groups + group]) == 0) {
        ptx::nanosleep(20);
      }
    }
  }
  ptx::barrier_sync(1 + group, 128);
  for (int other = block - 2; other >= first; --other) {
#pragma unroll 4
    for (int i = 0; i < Registers; i += 4) {
      float* const to = stream_sums(partials, block - 1, consumer, i);
      Pack<float, 4> sum = load_wide<4>(to);
      const Pack<float, 4> more = load_wide<4>(stream_sums(partials, other, consumer, i));
#pragma unroll
      for (int j = 0; j < 4; ++j) sum[j] += more[j];
      store_wide(to, sum);
    }
  }
}

template <class T, bool KMajorA, bool KMajorB>
__global__ void __launch_bounds__(role_threads, 1)
    gemm_stream_k(const __grid_constant__ TensorJob<T> job, StreamPartials partials) {
  using TileA = WgmmaTile<T, stream_rows, KMajorA>;
  using TileB = WgmmaTile<T, stream_columns, KMajorB>;
  auto& layout = shared<StreamLayout>();
  if (threadIdx.x == 0) {
    layout.ring.init(consumer_warps);
    ptx::tensor_prefetch_map(job.a);
    ptx::tensor_prefetch_map(job.b);
  }
  __syncthreads();
  RingPlace<stream_stages> at;
  const auto block = static_cast<int>(blockIdx.x);
  StreamPart part(job.raster.total() * job.k_tiles, job.k_tiles, block,
                  static_cast<int>(gridDim.x));
  StreamPiece piece;

  if (threadIdx.x < producer_threads) {
    ptx::release_registers<producer_registers>();
    if (threadIdx.x != 0) return;
    while (part.next(block, piece)) {
      const TileWork work = job.raster.at(piece.tile);
      produce_tiles<TileA, TileB>(layout.stages, layout.ring, at, job, work.batch,
                                  work.row * stream_rows, work.column * stream_columns,
                                  piece.first_step * TileA::depth, piece.steps);
    }
    return;
  }

  ptx::claim_registers<consumer_registers>();
  const auto consumer = static_cast<int>(threadIdx.x) - producer_threads;
  const int warp = consumer / 32;
  int turn = 0;
  while (part.next(block, piece)) {
    float sums[stream_columns / 2];
    consume_tiles<TileA, TileB>(sums, layout.stages, layout.ring, at, piece.steps, warp / 4 * 64,
                                ReleaseHere{});
    if (!piece.ends) {
      leave_sums(partials, block, consumer, sums);
      continue;
    }
    // Earlier blocks have the tile's earlier steps: always added in the same order.
    const int begin = part.begin_of_tile(piece.tile);
    int first = block;
    while (part.begin_of(first) > begin) --first;
    const bool cut = first < block;
    if (cut) gather_sums<stream_columns / 2>(partials, first, block, consumer);
    const TileWork work = job.raster.at(piece.tile);
    write_strip<stream_columns, T>(
        job, layout.strips[warp], turn, work.batch, work.row * stream_rows + 16 * warp,
        work.column * stream_columns, [&](int i) {
          // Added on the way out: as many registers as the sums have are not there.
          return sums[i] + (cut ? stream_sums(partials, block - 1, consumer, i)[i % 4] : 0.0f);
        });
  }
  if (threadIdx.x % 32 == 0) StripBoxes::drain();
}

/// Blocks for so many steps in all: one per SM, unless each would get less than a pipeline's worth.
inline std::int64_t stream_blocks(std::int64_t tiles, std::int64_t steps, std::int64_t sms) {
  return clamped<std::int64_t>(tiles * steps / stream_stages, 1, sms);
}

/// `flags`, cleared, and sums for as many blocks as the device has SMs.
void run_stream_k(Context& context, const MappedOperands<f16>& operands,
                  const StreamPartials& partials);
void run_stream_k(Context& context, const MappedOperands<bf16>& operands,
                  const StreamPartials& partials);
void run_stream_k(Context& context, const MappedOperands<float>& operands,
                  const StreamPartials& partials);

/// Its definition, for the file that compiles T's kernels.
template <class T>
void launch_stream_k(Context& context, const MappedOperands<T>& operands,
                     const StreamPartials& partials) {
  with_majors(operands, [&]<bool KMajorA, bool KMajorB>() {
    const TensorJob<T> job =
        tensor_job<WgmmaTile<T, stream_rows, KMajorA>, WgmmaTile<T, stream_columns, KMajorB>>(
            operands,
            {.rows = stream_rows,
             .columns = stream_columns,
             .slices = 1,
             .at_once = context.info().sms},
            nullptr);
    launch(context,
           {.grid = stream_blocks(job.raster.total(), job.k_tiles, context.info().sms),
            .block = role_threads,
            .shared_bytes = sizeof(StreamLayout)},
           gemm_stream_k<T, KMajorA, KMajorB>, job, partials);
  });
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
