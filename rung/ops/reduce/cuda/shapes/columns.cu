// SPDX-License-Identifier: Apache-2.0
// reduce / columns
//
// Idea     adjacent results have adjacent elements: a warp spans 512 bytes of a row of x, 16 bytes
//          per thread, and a block's eight warps walk down the rows. Narrow columns without gaps
//          are grouped: several rows of x form one row of the matrix.
// Changes  against adjacent_results: 16-byte loads instead of one element per load; against
//          single_pass_last_block: threads walk down columns, not along a row. Blocks that share
//          columns draw a ticket, and the last one joins their states in order.
// Cost     x is read once; a state per column and block if blocks share columns.
// Limits   columns of f32, f64, f16, bf16, i32, contiguous, at least 16 or without gaps; no
//          products, no index search.
#include "rung/cpu/split.hpp"  // types: float double f16 bf16 std::int32_t
#include "rung/device/block_work.hpp"
#include "rung/ops/reduce/cuda/detail/row_packs.hpp"

namespace rung::reduce_cuda::inline RUNG_TARGET {
namespace {

constexpr int lanes_across = 32;  // a warp spans 512 bytes of a row
constexpr int rows_down = block_threads / lanes_across;
constexpr int rows_at_once = 4;

/// Matrix of contiguous columns. `groups` rows of narrow columns without gaps form one row of the
/// matrix, and are joined at the end; the matrix may then end within its last row.
struct ColumnMatrix {
  const void* x;
  Collapsed<2> kept;   // the innermost axis is the columns
  Collapsed<1> terms;  // rows of the matrix, unless grouped
  Index columns = 0;
  Index width = 0;  // columns * groups
  Index rows = 0;
  Index elements = 0;  // elements of one grouped matrix
  Index tiles = 1;     // per width
  Index count = 0;     // terms per result
  Index blocks = 0;    // blocks of all matrices, per split
  int groups = 1;
  bool aligned = false;  // every row of every matrix starts on a 16-byte boundary
  int splits = 1;        // blocks that divide the rows
  void* states = nullptr;
  unsigned* tickets = nullptr;
};

template <class F>
struct ColumnScratch {
  static constexpr int width = lanes_across * vector_width<typename F::Element>;
  typename F::State at[rows_down][width];
  int is_last;
};

/// Joins the states of the block's rows of threads; stores the tile's states to scratch.at[0].
template <class F>
__device__ __forceinline__ void join_down(const F& fold, ColumnScratch<F>& scratch,
                                          const typename F::State* states) {
  constexpr int width = vector_width<typename F::Element>;
  const int lane = static_cast<int>(threadIdx.x) % lanes_across;
  const int y = static_cast<int>(threadIdx.x) / lanes_across;
#pragma unroll
  for (int j = 0; j < width; ++j) scratch.at[y][j * lanes_across + lane] = states[j];
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x); c < ColumnScratch<F>::width; c += block_threads) {
    auto state = scratch.at[0][c];
    for (int row = 1; row < rows_down; ++row) state = fold.join(state, scratch.at[row][c]);
    scratch.at[0][c] = state;
  }
  __syncthreads();
}

template <class F>
__global__ void __launch_bounds__(block_threads)
    reduce_columns_kernel(ColumnMatrix m, Result result, F fold) {
  using T = typename F::Element;
  using State = typename F::State;
  constexpr int width = vector_width<T>;
  constexpr int tile_width = ColumnScratch<F>::width;
  start_dependent();
  auto& scratch = shared<ColumnScratch<F>>();
  const int lane = static_cast<int>(threadIdx.x) % lanes_across;
  const int y = static_cast<int>(threadIdx.x) / lanes_across;
  const Index tile = blockIdx.x;
  const Index outer = tile / m.tiles;
  const Index tile_begin = tile % m.tiles * tile_width;
  const Index c = tile_begin + lane * width;
  std::int64_t at[2];
  m.kept.offsets(outer * m.columns, at);
  const T* x = static_cast<const T*>(m.x) + at[0] + c;

  State states[width];
#pragma unroll
  for (int j = 0; j < width; ++j) states[j] = fold.identity();
  const auto load_row = [&](Index r, Index valid) {
    const T* p = x + (m.groups > 1 ? r * m.width : m.terms.offset(r));
    return m.aligned ? load_wide<width>(p, valid) : load<width>(p, valid);
  };
  const Index step = Index{m.splits} * rows_down;
  const Index valid = m.width - c;
  // With groups, the last row may be incomplete: it is handled after the others.
  const Index full_rows = m.groups > 1 ? m.elements / m.width : m.rows;
  Index r = Index{blockIdx.y} * rows_down + y;
  for (; valid > 0 && r + (rows_at_once - 1) * step < full_rows; r += rows_at_once * step) {
    Pack<T, width> rows[rows_at_once];
#pragma unroll
    for (int u = 0; u < rows_at_once; ++u) rows[u] = load_row(r + u * step, valid);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      Pack<T, rows_at_once> column;
#pragma unroll
      for (int u = 0; u < rows_at_once; ++u) column[u] = rows[u][j];
      fold.take(states[j], column, r, step);
    }
  }
  for (; valid > 0 && r < m.rows; r += step) {
    const Index left = m.groups > 1 ? m.elements - r * m.width - c : valid;
    const auto row = load_row(r, left < valid ? left : valid);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      if (j < left) fold.take(states[j], Pack<T, 1>{{row[j]}}, r);
    }
  }
  join_down(fold, scratch, states);

  if (m.splits > 1) {
    // Joins the tile's states from all splits, in order; a row of threads takes every eighth split.
    State* all = static_cast<State*>(m.states) + tile * m.splits * tile_width;
    for (int i = static_cast<int>(threadIdx.x); i < tile_width; i += block_threads) {
      all[Index{blockIdx.y} * tile_width + i] = scratch.at[0][i];
    }
    // The barrier orders every thread's writes before the ticket's release by one thread.
    __syncthreads();
    if (!is_last_block(m.tickets + tile, m.splits, scratch.is_last)) return;
#pragma unroll
    for (int j = 0; j < width; ++j) states[j] = fold.identity();
    for (int s = y; s < m.splits; s += rows_down) {
#pragma unroll
      for (int j = 0; j < width; ++j) {
        states[j] = fold.join(states[j], all[Index{s} * tile_width + j * lanes_across + lane]);
      }
    }
    join_down(fold, scratch, states);
  }

  // Column i of the tile is at (i % width) * 32 + i / width, which avoids bank conflicts.
  const auto of_column = [&](Index i) {
    return scratch.at[0][i % width * lanes_across + i / width];
  };
  const Index in_tile = m.columns - tile_begin < tile_width ? m.columns - tile_begin : tile_width;
  for (Index i = threadIdx.x; i < in_tile; i += block_threads) {
    State state = of_column(i);
    for (int g = 1; g < m.groups; ++g) state = fold.join(state, of_column(g * m.columns + i));
    m.kept.offsets(outer * m.columns + tile_begin + i, at);
    store_state<F>(result, at[1], state, m.count);
  }
}

template <class F>
ColumnMatrix matrix_of(const Reduce::Args& args, const Context& context) {
  using T = typename F::Element;
  constexpr int tile_width = ColumnScratch<F>::width;
  constexpr Index width = vector_width<T>;
  const int last = args.kept.rank - 1;
  ColumnMatrix m;
  m.x = args.x.data;
  m.kept = args.kept;
  m.terms = args.terms;
  m.columns = args.kept.shape[last];
  m.count = args.terms.size();
  m.rows = m.count;
  const bool gapless = args.terms.rank == 1 && args.terms.strides[0][0] == m.columns;
  if (gapless && m.columns * 2 <= tile_width) {
    m.groups = static_cast<int>(smaller<Index>(tile_width / m.columns, m.count));
    // Rounded to a multiple of the pack, which keeps rows aligned.
    if (m.groups > width) m.groups = static_cast<int>(m.groups / width * width);
    m.elements = m.count * m.columns;
    m.rows = ceil_div(m.count, Index{m.groups});
  }
  m.width = m.columns * m.groups;
  m.tiles = ceil_div(m.width, Index{tile_width});
  const Index outer = args.kept.size() / m.columns;
  m.aligned = reinterpret_cast<std::uintptr_t>(m.x) % load_bytes == 0;
  for (int axis = 0; axis < last; ++axis)
    m.aligned = m.aligned && m.kept.strides[0][axis] % width == 0;
  if (m.groups > 1) {
    m.aligned = m.aligned && m.width % width == 0;
  } else {
    for (int axis = 0; axis < m.terms.rank; ++axis) {
      m.aligned = m.aligned && m.terms.strides[0][axis] % width == 0;
    }
  }
  m.blocks = outer * m.tiles;
  const Index resident =
      resident_blocks(context, reduce_columns_kernel<F>, block_threads, sizeof(ColumnScratch<F>));
  if (m.blocks > 0 && m.blocks <= max_tickets && m.blocks < resident) {
    const Index useful = m.rows / (rows_down * rows_at_once);
    constexpr Index max_splits = 264;  // the last block reads a state per column from each split
    m.splits =
        static_cast<int>(clamped<Index>(smaller(resident / m.blocks, useful), 1, max_splits));
  }
  return m;
}

template <class F>
void launch_columns(const Reduce::Args& args, Context& context, const F& fold) {
  ColumnMatrix m = matrix_of<F>(args, context);
  if (m.blocks == 0) return;
  if (m.splits > 1) {
    m.tickets = tickets_of(context);
    m.states =
        context.workspace(static_cast<std::size_t>(m.blocks * m.splits * ColumnScratch<F>::width) *
                          sizeof(typename F::State));
  }
  launch(context,
         {.grid = {m.blocks, m.splits},
          .block = block_threads,
          .shared_bytes = sizeof(ColumnScratch<F>),
          .dependent = can_depend(context)},
         reduce_columns_kernel<F>, m, result_of(args), fold);
}

}  // namespace

/// Launches the reduction of elements of T. Instantiated in T's part of this file.
template <class T>
void run_columns(const Reduce::Args& args, Context& context);
template <>
void run_columns<RUNG_SPLIT_TYPE>(const Reduce::Args& args, Context& context) {
  visit_folds<RUNG_SPLIT_TYPE, false>(
      args, [&](const auto& fold) { launch_columns(args, context, fold); });
}

template <class T>
Work columns_work(const Reduce::Args& args, const Context& context);
template <>
Work columns_work<RUNG_SPLIT_TYPE>(const Reduce::Args& args, const Context& context) {
  Work work;
  visit_folds<RUNG_SPLIT_TYPE, false>(args, [&]<class F>(const F&) {
    const ColumnMatrix m = matrix_of<F>(args, context);
    const Index trips = ceil_div(m.rows, Index{rows_down} * m.splits);
    work = block_work(m.blocks * m.splits, block_threads, trips,
                      m.aligned ? fold_path(args) : "askew");
  });
  return work;
}

#if RUNG_SPLIT_ONCE
namespace {

Support supports(const Reduce::Args& args, const Context&) {
  if (const Support fold = require_fast_fold(args); !fold) return fold;
  if (!is_fast_columns(args)) return unsupported("contiguous columns");
  if (args.x.dtype == DType::u8) return unsupported("no columns of u8");
  return args.is_arg() ? unsupported("no search down columns") : supported;
}

Work work(const Reduce::Args& args, const Context& context) {
  return visit<float, double, f16, bf16, std::int32_t>(
      args.x.dtype, [&]<class T>() { return columns_work<T>(args, context); });
}

void run(const Reduce::Args& args, Context& context) {
  visit<float, double, f16, bf16, std::int32_t>(args.x.dtype,
                                                [&]<class T>() { run_columns<T>(args, context); });
}

const Rung<Reduce> self{{.name = "columns",
                         .after = "single_pass_last_block",
                         .backend = device_backend,
                         .supports = supports,
                         .passes = {.loads = 1, .stores = 1},
                         .work = work,
                         .run = run}};

}  // namespace
#endif  // RUNG_SPLIT_ONCE
}  // namespace rung::reduce_cuda::inline RUNG_TARGET
