// SPDX-License-Identifier: Apache-2.0
// reduce / few rows
//
// Idea     adjacent results have adjacent elements in each of a few long rows: a thread owns
//          columns a block apart and folds each of them over all rows. The loads of four rows are
//          issued before the first is used.
// Changes  against columns: no division of a tile's rows among warps, most of which had no row, and
//          no shared memory. Lanes load adjacent elements, so that rows may start at any address,
//          and store adjacent results.
// Cost     x is read once.
// Limits   2 to 32 rows of f32, f64, f16, bf16 or i32; 1024 contiguous columns or more; no
//          products.
#include "rung/cpu/split.hpp"  // types: float double f16 bf16 std::int32_t
#include "rung/ops/reduce/cuda/detail/row_packs.hpp"

namespace rung::reduce_cuda::inline RUNG_TARGET {
namespace {

constexpr int few_rows_at_once = 4;
constexpr Index most_few_rows = 32;
constexpr Index fewest_columns = 1024;

/// Returns the columns per thread: more states would exceed the registers at full occupancy.
constexpr int few_rows_columns(std::size_t element) { return element == 8 ? 2 : 4; }
constexpr Index few_rows_tile(std::size_t element) {
  return Index{block_threads} * few_rows_columns(element);
}

/// Contiguous columns: the innermost axis of the results.
struct FewRows {
  const void* x;
  Collapsed<2> kept;
  Collapsed<1> terms;
  Index columns;
  Index tiles;  // number of tiles across the columns
  Index rows;
};

template <class F>
__global__ void __launch_bounds__(block_threads)
    reduce_few_rows(const __grid_constant__ FewRows m, Result result, F fold) {
  using T = typename F::Element;
  constexpr int columns = few_rows_columns(sizeof(T));
  start_dependent();
  const Index outer = blockIdx.x / m.tiles;
  const Index first = (blockIdx.x - outer * m.tiles) * few_rows_tile(sizeof(T)) + threadIdx.x;
  const Index left = m.columns - first;  // columns from this thread's first to the end
  if (left <= 0) return;
  std::int64_t at[2];
  m.kept.offsets(outer * m.columns, at);
  const T* const x = static_cast<const T*>(m.x) + at[0] + first;

  typename F::State states[columns];
#pragma unroll
  for (int j = 0; j < columns; ++j) states[j] = fold.identity();
#pragma unroll 1
  for (Index row = 0; row < m.rows; row += few_rows_at_once) {
    Pack<T, few_rows_at_once> down[columns];  // all loads are issued before the first is used
#pragma unroll
    for (int u = 0; u < few_rows_at_once; ++u) {
      if (row + u >= m.rows) continue;
      const T* const from = x + m.terms.offset(row + u);
#pragma unroll
      for (int j = 0; j < columns; ++j) {
        if (j * block_threads < left) down[j][u] = from[j * block_threads];
      }
    }
    if (row + few_rows_at_once <= m.rows) {
#pragma unroll
      for (int j = 0; j < columns; ++j) fold.take(states[j], down[j], row, 1);
    } else {
#pragma unroll
      for (int u = 0; u < few_rows_at_once - 1; ++u) {
        if (row + u >= m.rows) continue;
#pragma unroll
        for (int j = 0; j < columns; ++j) {
          fold.take(states[j], Pack<T, 1>{{down[j][u]}}, row + u);
        }
      }
    }
  }
  const Index step = m.kept.strides[1][m.kept.rank - 1];
#pragma unroll
  for (int j = 0; j < columns; ++j) {
    if (j * block_threads >= left) break;
    store_state<F>(result, at[1] + (first + j * block_threads) * step, states[j], m.rows);
  }
}

FewRows few_rows_of(const Reduce::Args& args) {
  FewRows m{args.x.data, args.kept, args.terms, args.kept.shape[args.kept.rank - 1], 0, 0};
  m.tiles = ceil_div(m.columns, few_rows_tile(size_of(args.x.dtype)));
  m.rows = args.terms.size();
  return m;
}
Index blocks_of(const Reduce::Args& args, const FewRows& m) {
  return args.kept.size() / m.columns * m.tiles;
}

template <class F>
void launch_few_rows(const Reduce::Args& args, Context& context, const F& fold) {
  const FewRows m = few_rows_of(args);
  launch(context,
         {.grid = blocks_of(args, m), .block = block_threads, .dependent = can_depend(context)},
         reduce_few_rows<F>, m, result_of(args), fold);
}

}  // namespace

/// Launches the reduction of elements of T. Instantiated in T's part of this file.
template <class T>
void run_few_rows(const Reduce::Args& args, Context& context);
template <>
void run_few_rows<RUNG_SPLIT_TYPE>(const Reduce::Args& args, Context& context) {
  visit_folds<RUNG_SPLIT_TYPE, true>(
      args, [&](const auto& fold) { launch_few_rows(args, context, fold); });
}

#if RUNG_SPLIT_ONCE
namespace {

Support supports(const Reduce::Args& args, const Context&) {
  if (const Support fold = require_fast_fold(args); !fold) return fold;
  if (args.x.dtype == DType::u8) return unsupported("no columns of u8");
  if (!is_fast_columns(args)) return unsupported("contiguous columns");
  if (args.terms.size() > most_few_rows) return unsupported("at most 32 rows");
  if (args.kept.shape[args.kept.rank - 1] < fewest_columns) {
    return unsupported("1024 columns or more");
  }
  const Index most = Index{0x7fffffff} * block_threads;
  return args.results() <= most ? supported : unsupported("2^39 results and more");
}

Work work(const Reduce::Args& args, const Context&) {
  const FewRows m = few_rows_of(args);
  return {.blocks = blocks_of(args, m),
          .resident = blocks_per_sm(block_threads, args.is_arg() ? 96 : 64),
          .rounds = ceil_div(m.rows, Index{few_rows_at_once}),
          .steps = m.rows,
          .path = fold_path(args)};
}

void run(const Reduce::Args& args, Context& context) {
  visit<float, double, f16, bf16, std::int32_t>(args.x.dtype,
                                                [&]<class T>() { run_few_rows<T>(args, context); });
}

const Rung<Reduce> self{{.name = "few_rows",
                         .after = "columns",
                         .backend = device_backend,
                         .supports = supports,
                         .passes = {.loads = 1, .stores = 1},
                         .work = work,
                         .run = run}};

}  // namespace
#endif  // RUNG_SPLIT_ONCE
}  // namespace rung::reduce_cuda::inline RUNG_TARGET
