// SPDX-License-Identifier: Apache-2.0
// softmax / online, across columns, 16 bytes wide
//
// Idea     A thread loads 16 bytes of adjacent rows at once, with four such packs in flight; 8
//          adjacent threads move 128 bytes, and the 1024 threads of a block split the length. If
//          columns are too few to fill the GPU, 4 threads are adjacent instead of 8.
// Changes  against online_columns: a quarter of the loads, several of them in flight, and one
//          rescaling of the sum per four elements.
// Cost     2 loads and 1 store per element, 1.5 times the compulsory traffic.
// Limits   Results of the type of x; rows adjacent in runs whose length and start are multiples of
//          16 bytes.
#include "rung/core/bounds.hpp"
#include "rung/ops/softmax/cuda/detail/column_totals.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

constexpr int columns_block_threads = 1024;
constexpr int columns_warps = columns_block_threads / warp_size;
constexpr int max_across = 8;  // threads across the columns of a block
constexpr int deep = deep_packs;

template <class T>
struct ColumnsShared {
  static constexpr int columns = max_across * vector_width<T>;
  Total<Accumulator<T>> of_warp[columns_warps][columns + 1];
  Total<Accumulator<T>> of_all[columns];
};

/// Calls f(packs, i) for batches of `deep` packs of this thread; the first pack of a batch is at
/// element i.
template <class T, class F>
__device__ __forceinline__ void for_each_deep(const T* x, std::int64_t length, std::int64_t step,
                                              F&& f) {
  const PackedWords nothing = empty_pack<T>();
  for (std::int64_t i = threadIdx.y; i < length; i += deep * blockDim.y) {
    PackedWords read[deep];
#pragma unroll
    for (int k = 0; k < deep; ++k) {
      const std::int64_t at = i + k * static_cast<int>(blockDim.y);
      read[k] = nothing;
      if (at < length) read[k] = load_wide<4>(reinterpret_cast<const unsigned*>(x + at * step));
    }
    f(read, i);
  }
}

/// Combines the totals of the threads of a warp that own the same columns.
template <class Sum>
__device__ __forceinline__ void merge_warp(Total<Sum>& mine, const Power<Sum>& power) {
  const int first = static_cast<int>(blockDim.x);
  const Sum before = mine.maximum;
  for (int distance = first; distance < warp_size; distance *= 2) {
    mine.maximum = Larger{}(mine.maximum, shuffle_xor(mine.maximum, distance));
  }
  mine.sum *= power(before - mine.maximum);
  for (int distance = first; distance < warp_size; distance *= 2) {
    mine.sum += shuffle_xor(mine.sum, distance);
  }
}

template <class T>
__global__ void __launch_bounds__(columns_block_threads)
    softmax_wide_columns(Rows<2> rows, SoftmaxCall<T, T> p, std::int64_t run, std::int64_t blocks) {
  using Sum = Accumulator<T>;
  constexpr int width = vector_width<T>;
  auto& memory = shared<ColumnsShared<T>>();
  const MergePowers<Sum> merge{Power<Sum>(p.scale)};
  const Power<Sum>& power = merge.power;
  const int columns = static_cast<int>(blockDim.x) * width;
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const int lane = thread % warp_size;
  const int warp = thread / warp_size;
  const std::int64_t blocks_a_run = (run + columns - 1) / columns;
  for (std::int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const int mine = static_cast<int>(threadIdx.x) * width;  // first column in the block
    const std::int64_t column = block % blocks_a_run * columns + mine;
    const std::int64_t row = column < run ? block / blocks_a_run * run + column : 0;
    const std::int64_t length = column < run ? rows.length : 0;
    const T* x = p.x + rows.template offset<0>(row);
    T* y = p.y + rows.template offset<1>(row);
    ColumnTotals<T> totals;
    for_each_deep(x, length, rows.steps[0],
                  [&](const auto& read, std::int64_t) { totals.add(read, power); });
#pragma unroll
    for (int j = 0; j < width; ++j) {
      merge_warp(totals.of[j], power);
      if (lane < static_cast<int>(blockDim.x)) memory.of_warp[warp][mine + j] = totals.of[j];
    }
    __syncthreads();
    for (int c = warp; c < columns; c += columns_warps) {
      const Total<Sum> all = merge(memory.of_warp[lane][c], warp_size);
      if (lane == 0) memory.of_all[c] = all;
    }
    __syncthreads();
    ColumnResults<T> results;
#pragma unroll
    for (int j = 0; j < width; ++j) results.set(j, memory.of_all[mine + j], p.log);
    for_each_deep(x, length, rows.steps[0], [&](const auto& read, std::int64_t i) {
#pragma unroll
      for (int k = 0; k < deep; ++k) {
        const std::int64_t at = i + k * static_cast<int>(blockDim.y);
        if (at >= length) continue;
        store_words_streaming(y + at * rows.steps[1], results.of(read[k], p, power));
      }
    });
  }
}

template <class T>
bool packs_are_aligned(const Softmax::Args& args) {
  constexpr int width = vector_width<T>;
  const auto is_aligned = [](const void* p) {
    return reinterpret_cast<std::uintptr_t>(p) % 16 == 0;
  };
  bool aligned = is_aligned(args.x.data) && is_aligned(args.y.data) && args.rows.run() % width == 0;
  for (int tensor = 0; tensor < 2; ++tensor) {
    aligned = aligned && args.rows.steps[tensor] % width == 0;
    for (int axis = 0; axis + 1 < args.rows.others.rank; ++axis) {
      aligned = aligned && args.rows.others.strides[tensor][axis] % width == 0;
    }
  }
  return aligned;
}

Support supports(const Softmax::Args& args, const Context&) {
  if (args.x.dtype != args.y.dtype) return unsupported("the result's type must be that of x");
  if (!args.rows.are_adjacent()) return unsupported("rows must be adjacent");
  if (const Support scale = require_foldable_scale(args); !scale) return scale;
  const bool aligned = visit<float, double, f16, bf16>(
      args.x.dtype, [&]<class T>() { return packs_are_aligned<T>(args); });
  return aligned ? supported : unsupported("runs of rows must be multiples of 16 bytes");
}

/// Launch geometry: threads across columns, one pack each, reduced if blocks cannot fill the GPU.
struct ColumnGrid {
  int across = max_across;
  std::int64_t columns = 0;  // per block
  std::int64_t blocks = 0;
};
ColumnGrid grid_of(const Softmax::Args& args, const Context& context) {
  constexpr int min_across = 4;
  const auto width = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  const std::int64_t run = larger(args.rows.run(), std::int64_t{1});
  ColumnGrid grid;
  for (;; grid.across /= 2) {
    grid.columns = grid.across * width;
    grid.blocks = args.count() / run * ceil_div(run, grid.columns);
    const bool enough = 4 * grid.blocks >= 3 * context.info().sms;
    if (enough || grid.across <= min_across) return grid;
  }
}

Work work(const Softmax::Args& args, const Context& context) {
  const ColumnGrid grid = grid_of(args, context);
  return block_work(grid.blocks, columns_block_threads,
                    ceil_div(args.length(), deep * columns_block_threads / grid.across), "", 64);
}

void run(const Softmax::Args& args, Context& context) {
  constexpr std::int64_t max_blocks = 0x7fffffff;
  if (args.empty()) return;
  const ColumnGrid grid = grid_of(args, context);
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    launch(context,
           {.grid = smaller(grid.blocks, max_blocks),
            .block = {grid.across, columns_block_threads / grid.across},
            .shared_bytes = sizeof(ColumnsShared<T>)},
           softmax_wide_columns<T>, args.rows, call_of<T, T>(args), args.rows.run(), grid.blocks);
  });
}

const Rung<Softmax> self{{.name = "wide_columns",
                          .after = "online_columns",
                          .backend = device_backend,
                          .supports = supports,
                          .passes = {.loads = 2, .stores = 1},
                          .work = work,
                          .run = run}};

}  // namespace
}  // namespace rung
