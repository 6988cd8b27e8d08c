// SPDX-License-Identifier: Apache-2.0
// attention_backward / register tiled
//
// Idea     Recompute P and dS per tile of 64 queries by 64 keys and keep them in shared memory. One
//          kernel has keys in the outer loop: a block owns a tile of keys and accumulates dk and dv
//          while it loops over queries; a second kernel has queries in the outer loop and
//          accumulates dq. Blocks write disjoint elements, without atomics.
// Changes  No P or dS matrix in global memory. A thread computes 4 x 4 pairs and 4 x 8 elements of
//          a gradient (4 x 4 in f64): 16 multiply-adds per two 4-element loads, 32 per three.
// Cost     8 D + 6 Dv operations per pair, because both kernels compute S and dP; each piece of
//          128 columns (f64: 64) of a gradient recomputes them. Q, K, V and dout are read once per
//          64 rows of the outer loop.
// Limits   All valid arguments. Multiply-adds on CUDA cores have an eighth of the throughput of
//          tensor cores.
// Source   T. Dao, FlashAttention-2, 2023; NVIDIA CUTLASS, "Efficient GEMM", for register tiles.
#include "rung/core/integer.hpp"
#include "rung/device/launch.hpp"
#include "rung/device/shared.hpp"
#include "rung/ops/attention_backward/cuda/detail/row_sums.hpp"

namespace rung {
namespace {

using namespace attention_backward_cuda;

constexpr int threads = 256;
constexpr int across = 16;  // threads per row of register tiles
constexpr int patch = 4;    // rows, and columns, per thread
constexpr int tile = 64;    // queries, and keys, per block
constexpr int slice = 32;   // columns per step of the operands of S and dP
constexpr int batch = 32;   // rows per step of the operands of gradients

/// Register tiles per thread along the columns of a gradient; f64 needs twice the registers.
template <class Sum>
constexpr int patches = sizeof(Sum) == 8 ? 1 : 2;
/// Columns of a gradient per block.
template <class Sum>
constexpr int piece = patches<Sum>* across* patch;

/// Tiles in shared memory. Slices are stored by columns, so that a thread loads its 4 elements at
/// once; 4 elements of padding avoid bank conflicts on the stores.
template <class Sum>
struct BackwardTiles {
  union {
    struct {
      Sum left[slice][tile + 4], right[slice][tile + 4];
    } slices;
    struct {
      Sum q[batch][piece<Sum>], dout[batch][piece<Sum>];
    } rows;
  };
  Sum p[tile][tile + 4], ds[tile][tile + 4];  // [summation index][row of the gradient]
};

template <class Sum>
struct RegisterPatch {
  Sum at[patch];
};
template <class Sum>
__device__ __forceinline__ RegisterPatch<Sum> patch_at(const Sum* from) {
  RegisterPatch<Sum> values;
#pragma unroll
  for (int i = 0; i < patch; ++i) values.at[i] = from[i];
  return values;
}

/// Rows [first, end) of a matrix.
template <class T>
struct MatrixRows {
  View<const T, 2> matrix;
  std::int64_t first, end;
};

/// Computes sum[r][c] = left row . right row for the thread's register tile.
template <class T, class Sum>
__device__ __forceinline__ void multiply_rows(const MatrixRows<T>& left, const MatrixRows<T>& right,
                                              BackwardTiles<Sum>& tiles, Sum (&sum)[patch][patch]) {
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / across * patch;
  const int column = thread % across * patch;
  const std::int64_t width = left.matrix.shape[1];
#pragma unroll
  for (int r = 0; r < patch; ++r) {
#pragma unroll
    for (int c = 0; c < patch; ++c) sum[r][c] = 0;
  }
  for (std::int64_t from = 0; from < width; from += slice) {
    __syncthreads();  // wait until the previous slices have been read
    for (int at = thread; at < tile * slice; at += threads) {
      const int d = at % slice;
      const int line = at / slice;
      const bool in_row = from + d < width;
      const auto load = [&](const MatrixRows<T>& rows) {
        const bool exists = in_row && rows.first + line < rows.end;
        return exists ? convert<Sum>(rows.matrix(rows.first + line, from + d)) : Sum(0);
      };
      tiles.slices.left[d][line] = load(left);
      tiles.slices.right[d][line] = load(right);
    }
    __syncthreads();  // the slices are complete
    if (left.first + row >= left.end || right.first + column >= right.end) continue;
    const int there = static_cast<int>(smaller(width - from, std::int64_t{slice}));
#pragma unroll 8
    for (int d = 0; d < there; ++d) {
      const RegisterPatch<Sum> a = patch_at(&tiles.slices.left[d][row]);
      const RegisterPatch<Sum> b = patch_at(&tiles.slices.right[d][column]);
#pragma unroll
      for (int r = 0; r < patch; ++r) {
#pragma unroll
        for (int c = 0; c < patch; ++c) sum[r][c] += a.at[r] * b.at[c];
      }
    }
  }
}

/// Loads `batch` rows of a piece of columns; rows and columns past the end become zero.
template <class T, class Sum>
__device__ __forceinline__ void load_piece(const MatrixRows<T>& rows, std::int64_t first_column,
                                           Sum (&to)[batch][piece<Sum>]) {
  constexpr int columns = piece<Sum>;
  for (int at = static_cast<int>(threadIdx.x); at < batch * columns; at += threads) {
    const std::int64_t row = rows.first + at / columns;
    const std::int64_t column = first_column + at % columns;
    const bool exists = row < rows.end && column < rows.matrix.shape[1];
    to[at / columns][at % columns] = exists ? convert<Sum>(rows.matrix(row, column)) : Sum(0);
  }
}

/// A thread's elements of a gradient: 4 rows, and 4 of every 64 columns of the piece.
template <class Sum>
struct GradientPatch {
  Sum sum[patch][patch * patches<Sum>] = {};

  /// Adds the outer product of 4 weights and the thread's elements of an operand row.
  __device__ __forceinline__ void add(const Sum* weights, const Sum* operand) {
    const RegisterPatch<Sum> a = patch_at(weights);
#pragma unroll
    for (int n = 0; n < patches<Sum>; ++n) {
      const RegisterPatch<Sum> b = patch_at(operand + n * across * patch);
#pragma unroll
      for (int r = 0; r < patch; ++r) {
#pragma unroll
        for (int c = 0; c < patch; ++c) sum[r][n * patch + c] += a.at[r] * b.at[c];
      }
    }
  }
  template <class T>
  __device__ __forceinline__ void store(const View<T, 2>& to, std::int64_t first_row,
                                        std::int64_t first_column, Sum factor) const {
    const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int r = 0; r < patch; ++r) {
      const std::int64_t row = first_row + thread / across * patch + r;
      if (row >= to.shape[0]) continue;
#pragma unroll
      for (int c = 0; c < patch * patches<Sum>; ++c) {
        const std::int64_t column =
            first_column + c / patch * (across * patch) + thread % across * patch + c % patch;
        if (column < to.shape[1]) to(row, column) = convert<T>(factor * sum[r][c]);
      }
    }
  }
};

/// Work item of a block: batch element, head, first row of the tile and first column of the piece.
struct BackwardItem {
  std::int64_t b, head, first, first_column;
};
/// Returns work item `at`; `rows` and `offsets` are those of the queries, or of the keys.
__device__ __forceinline__ BackwardItem item_at(std::int64_t at, std::int64_t batch_size,
                                                std::int64_t rows,
                                                const View<const std::int32_t, 1>& offsets,
                                                std::int64_t pieces, int columns) {
  const std::int64_t tiles = count_row_tiles(offsets.data != nullptr, batch_size, rows, tile);
  const RowTileAt place = row_tile_at(offsets, rows, tile, at % tiles);
  return {place.element, at / tiles / pieces, place.first, at / tiles % pieces * columns};
}

/// Computes P and dS of a query and a key from their products; lse and the score of P are times
/// log2(e).
template <class Sum>
struct Weights {
  Sum p, ds;
  template <class T>
  __device__ __forceinline__ Weights(const Gradients<T>& call, bool plain, Sum product, Sum dp,
                                     Sum lse, Sum row_sum, const BackwardItem& item, std::int64_t h,
                                     std::int64_t i, std::int64_t j, std::int64_t diagonal) {
    if (plain) {
      p = power_of_two(call.rule.scale * log2_e<Sum> * product - lse);
      ds = p * (dp - row_sum);
    } else {
      p = power_of_two(log2_e<Sum> * call.rule(product, item.b, h, i, j, diagonal) - lse);
      ds = p * call.rule.slope_at(product) * (dp - row_sum);
    }
  }
};

/// Computes dk and dv: a block owns a tile of keys and loops over the queries of all heads that
/// share it.
template <class T>
__global__ void __launch_bounds__(threads)
    attention_backward_keys_outer(Gradients<T> call, RowSums<Accumulator<T>> rows,
                                  std::int64_t items) {
  using Sum = Accumulator<T>;
  BackwardTiles<Sum>& tiles = shared<BackwardTiles<Sum>>();
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / across * patch;
  const int column = thread % across * patch;
  const bool plain = call.rule.is_plain();
  const std::int64_t widest = larger(call.width(), call.value_width());
  for (std::int64_t at = blockIdx.x; at < items; at += gridDim.x) {
    const BackwardItem item = item_at(at, call.batch(), call.keys(), call.key_offsets,
                                      ceil_div(widest, piece<Sum>), piece<Sum>);
    const auto mask = call.mask(item.b);
    const std::int64_t keys = call.key_rows(item.b).count;
    if (item.first >= keys) continue;  // the same for the whole block
    const auto k = call.of_keys(call.k, item.b).at(item.head);
    const auto v = call.of_keys(call.v, item.b).at(item.head);
    const std::int64_t first_query = mask.first_query(item.first);
    const std::int64_t end_query = mask.end_query(smaller(item.first + tile, mask.length) - 1);
    GradientPatch<Sum> dk;
    GradientPatch<Sum> dv;
    for (int head = 0; head < call.group; ++head) {
      const std::int64_t h = item.head * call.group + head;
      const auto q = call.of_queries(call.q, item.b).at(h);
      const auto dout = call.of_queries(call.dout, item.b).at(h);
      const std::int64_t sums = first_sum(call, mask, item.b, h);
      for (std::int64_t query = first_query; query < end_query; query += tile) {
        Sum scores[patch][patch];
        Sum dp[patch][patch];
        multiply_rows<T>({q, query, end_query}, {k, item.first, mask.length}, tiles, scores);
        multiply_rows<T>({dout, query, end_query}, {v, item.first, mask.length}, tiles, dp);
#pragma unroll
        for (int r = 0; r < patch; ++r) {
          const std::int64_t i = query + row + r;
          const bool exists = i < end_query;
          const std::int64_t first_key = mask.first_key(i);
          const std::int64_t end_key = exists ? mask.end_key(i) : 0;
          const Sum lse = exists ? rows.lse[sums + i] : Sum(0);
          const Sum sum = exists ? rows.sum[sums + i] : Sum(0);
#pragma unroll
          for (int c = 0; c < patch; ++c) {
            const std::int64_t j = item.first + column + c;
            const bool seen = j >= first_key && j < end_key;
            const Weights<Sum> pair(call, plain, scores[r][c], dp[r][c], lse, sum, item, h,
                                    seen ? i : 0, seen ? j : 0, mask.diagonal(i));
            tiles.p[row + r][column + c] = seen ? pair.p : Sum(0);
            tiles.ds[row + r][column + c] = seen ? pair.ds : Sum(0);
          }
        }
        const auto left = static_cast<int>(smaller(end_query - query, std::int64_t{tile}));
        for (int from = 0; from < left; from += batch) {
          __syncthreads();  // P and dS complete; previous rows read
          load_piece<T>({q, query + from, end_query}, item.first_column, tiles.rows.q);
          load_piece<T>({dout, query + from, end_query}, item.first_column, tiles.rows.dout);
          __syncthreads();  // the rows are complete
          if (item.first + row >= keys) continue;
          const int there = smaller(left - from, batch);
#pragma unroll 4
          for (int i = 0; i < there; ++i) {
            dk.add(&tiles.ds[from + i][row], &tiles.rows.q[i][column]);
            dv.add(&tiles.p[from + i][row], &tiles.rows.dout[i][column]);
          }
        }
      }
    }
    dk.store(call.of_keys(call.dk, item.b).at(item.head), item.first, item.first_column,
             call.rule.scale);
    dv.store(call.of_keys(call.dv, item.b).at(item.head), item.first, item.first_column, Sum(1));
  }
}

/// Computes dq: a block owns a tile of queries and loops over the keys that any of them sees.
template <class T>
__global__ void __launch_bounds__(threads)
    attention_backward_queries_outer(Gradients<T> call, RowSums<Accumulator<T>> rows,
                                     std::int64_t items) {
  using Sum = Accumulator<T>;
  BackwardTiles<Sum>& tiles = shared<BackwardTiles<Sum>>();
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / across * patch;
  const int column = thread % across * patch;
  const bool plain = call.rule.is_plain();
  for (std::int64_t at = blockIdx.x; at < items; at += gridDim.x) {
    const BackwardItem item = item_at(at, call.batch(), call.queries(), call.query_offsets,
                                      ceil_div(call.width(), piece<Sum>), piece<Sum>);
    const auto mask = call.mask(item.b);
    if (item.first >= mask.queries) continue;  // the same for the whole block
    const auto q = call.of_queries(call.q, item.b).at(item.head);
    const auto dout = call.of_queries(call.dout, item.b).at(item.head);
    const auto k = call.of_keys(call.k, item.b).at(item.head / call.group);
    const auto v = call.of_keys(call.v, item.b).at(item.head / call.group);
    const std::int64_t end = smaller(item.first + tile, mask.queries);
    const std::int64_t end_of_last = mask.end_key(end - 1);
    const std::int64_t sums = first_sum(call, mask, item.b, item.head);
    GradientPatch<Sum> dq;
    for (std::int64_t key = mask.first_key(item.first); key < end_of_last; key += tile) {
      Sum scores[patch][patch];
      Sum dp[patch][patch];
      multiply_rows<T>({q, item.first, end}, {k, key, end_of_last}, tiles, scores);
      multiply_rows<T>({dout, item.first, end}, {v, key, end_of_last}, tiles, dp);
#pragma unroll
      for (int r = 0; r < patch; ++r) {
        const std::int64_t i = item.first + row + r;
        const std::int64_t first_key = mask.first_key(i);
        const std::int64_t end_key = i < end ? mask.end_key(i) : 0;
        const Sum lse = i < end ? rows.lse[sums + i] : Sum(0);
        const Sum sum = i < end ? rows.sum[sums + i] : Sum(0);
#pragma unroll
        for (int c = 0; c < patch; ++c) {
          const std::int64_t j = key + column + c;
          const bool seen = j >= first_key && j < end_key;
          const Weights<Sum> pair(call, plain, scores[r][c], dp[r][c], lse, sum, item, item.head,
                                  seen ? i : 0, seen ? j : 0, mask.diagonal(i));
          tiles.ds[column + c][row + r] = seen ? pair.ds : Sum(0);
        }
      }
      const auto left = static_cast<int>(smaller(end_of_last - key, std::int64_t{tile}));
      for (int from = 0; from < left; from += batch) {
        __syncthreads();  // dS is complete, the rows before have been used
        load_piece<T>({k, key + from, end_of_last}, item.first_column, tiles.rows.q);
        __syncthreads();  // the rows are complete
        if (item.first + row >= end) continue;
        const int there = smaller(left - from, batch);
#pragma unroll 4
        for (int j = 0; j < there; ++j) {
          dq.add(&tiles.ds[from + j][row], &tiles.rows.q[j][column]);
        }
      }
    }
    dq.store(call.of_queries(call.dq, item.b).at(item.head), item.first, item.first_column,
             call.rule.scale);
  }
}

/// Work items of the two kernels, before the grid size is limited.
struct BackwardItems {
  std::int64_t keys, queries;
  explicit BackwardItems(const AttentionBackward::Args& args) {
    const std::int64_t columns = args.q.dtype == DType::f64 ? piece<double> : piece<float>;
    const std::int64_t widest = larger(args.width(), args.value_width());
    keys = count_row_tiles(args.has_key_offsets(), args.batch(), args.keys(), tile) *
           args.kv_heads() * ceil_div(widest, columns);
    queries = count_row_tiles(args.has_query_offsets(), args.batch(), args.queries(), tile) *
              args.heads() * ceil_div(args.width(), columns);
  }
};
constexpr std::int64_t max_blocks = 0x7fffffff;

Work work(const AttentionBackward::Args& args, const Context&) {
  const auto width = static_cast<double>(args.width());
  const auto value_width = static_cast<double>(args.value_width());
  const std::int64_t columns = args.q.dtype == DType::f64 ? piece<double> : piece<float>;
  const auto pieces =
      static_cast<double>(ceil_div(larger(args.width(), args.value_width()), columns));
  const std::int64_t slices = ceil_div(args.width(), slice) + ceil_div(args.value_width(), slice);
  // S and dP are computed once per piece and pass, with two barriers per slice and per batch of
  // rows.
  Work work = facts_of(
      args, {.queries = tile,
             .keys = tile,
             .rounds = static_cast<double>(2 * slices + 2 * (tile / batch)),
             .width = width + value_width,
             .operations = 4 * pieces * (width + value_width) + 4 * width + 2 * value_width,
             .resident = 1,
             .path = args.q.dtype == DType::f64 ? "f64" : ""});
  work.blocks = smaller(BackwardItems(args).keys, max_blocks);
  return work;
}

void run(const AttentionBackward::Args& args, Context& context) {
  const BackwardItems items(args);
  visit<float, double, f16, bf16>(args.q.dtype, [&]<class T>() {
    const Gradients<T> call = attention_gradients<T>(args);
    const auto rows = make_row_sums(args, context, call);
    constexpr std::size_t bytes = sizeof(BackwardTiles<Accumulator<T>>);
    launch(context,
           {.grid = smaller(items.keys, max_blocks), .block = threads, .shared_bytes = bytes},
           attention_backward_keys_outer<T>, call, rows, items.keys);
    launch(context,
           {.grid = smaller(items.queries, max_blocks), .block = threads, .shared_bytes = bytes},
           attention_backward_queries_outer<T>, call, rows, items.queries);
  });
}

const Rung<AttentionBackward> self{{.name = "register_tiled",
                                    .step = 20,
                                    .after = "naive",
                                    .backend = device_backend,
                                    .work = work,
                                    .run = run}};

}  // namespace
}  // namespace rung
