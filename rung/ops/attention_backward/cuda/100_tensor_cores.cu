// SPDX-License-Identifier: Apache-2.0
// attention_backward / tensor cores
//
// Idea     Compute all products with mma.sync, in two kernels. With keys in the outer loop, a warp
//          owns 16 keys; P^T and dS^T stay in its registers, where they are the A operands of dv +=
//          P^T dout and dk += dS^T q. With queries in the outer loop, a warp owns 16 queries, and
//          dS is the A operand of dq += dS k.
// Changes  16-bit operands on tensor cores; ldmatrix fragments from swizzled tiles; P and dS never
//          leave registers; cp.async prefetches the next tile during the products.
// Cost     Seven products per pair instead of five: each kernel computes S and dP, which avoids
//          atomic additions to dq. Every warp loads each tile twice from shared memory for its 16
//          rows.
// Limits   f16 and bf16, D and Dv up to 128, contiguous rows. Unaligned rows are loaded as aligned
//          chunks and shifted in registers, which is slower.
// Source   T. Dao, FlashAttention-2, 2023; PTX ISA, "Matrix fragments for mma.m16n8k16".
#include "rung/device/launch.hpp"
#include "rung/device/shared.hpp"
#include "rung/device/tile/accumulator.hpp"
#include "rung/ops/attention/shared/cuda/row_tile.hpp"
#include "rung/ops/attention_backward/cuda/detail/row_sums.hpp"
#include "rung/ops/attention_backward/cuda/detail/tensor_cores.hpp"

namespace rung {
namespace {

using namespace attention_backward_cuda;

constexpr int warps = 4;
constexpr int tensor_threads = 32 * warps;
constexpr int warp_rows = 16;
constexpr int block_rows = warps * warp_rows;  // keys, or queries, per block

/// Queries per tile of the kernel with keys in the outer loop. A thread holds Width / 2 sums of
/// each of dk and dv (128 of its 255 registers at a width of 128), and query_tile / 2 values each
/// of S and dP.
template <int Width>
constexpr int query_tile = Width == 64 ? 64 : 32;
/// Keys per tile of the kernel with queries in the outer loop, which holds only the sums of dq.
constexpr int key_tile = 64;

/// Arguments of both kernels. wide_q, ...: every row of the operand is 16-byte aligned.
template <class T>
struct TensorCall {
  Gradients<T> call;
  RowSums<float> rows;
  float exponent_scale;  // scale log2(e): scores to exponents of 2
  bool wide_q, wide_k, wide_v, wide_dout;
};

template <class T, int Width>
struct KeysOuterLayout {
  using Keys = RowTile<T, block_rows, Width>;
  using Queries = RowTile<T, query_tile<Width>, Width>;
  alignas(1024) unsigned char k[Keys::bytes];
  alignas(1024) unsigned char v[Keys::bytes];
  alignas(1024) unsigned char q[2][Queries::bytes];
  alignas(1024) unsigned char dout[2][Queries::bytes];
  float lse[2][query_tile<Width>];
  float row_sum[2][query_tile<Width>];
};

template <class T, int Width>
struct QueriesOuterLayout {
  using Queries = RowTile<T, block_rows, Width>;
  using Keys = RowTile<T, key_tile, Width>;
  alignas(1024) unsigned char q[Queries::bytes];
  alignas(1024) unsigned char dout[Queries::bytes];
  alignas(1024) unsigned char k[2][Keys::bytes];
  alignas(1024) unsigned char v[2][Keys::bytes];
};

/// Computes product += left right^T for 16 rows of `left` from `row` on and all Columns rows of
/// `right`, over `width` columns of each.
template <class T, class Left, class Right, int Width, int Columns>
__device__ __forceinline__ void multiply_by_rows(float (&product)[Columns / 2],
                                                 const unsigned char* left, int row,
                                                 const unsigned char* right, int width) {
#pragma unroll
  for (int column = 0; column < Width; column += 16) {
    if (column >= width) break;
    std::uint32_t a[4];
    Left::load(a, left, row, column);
#pragma unroll
    for (int other = 0; other < Columns; other += 16) {
      std::uint32_t b[4];
      Right::load(b, right, other, column);
      ptx::mma<T>(product + other / 2, a, {b[0], b[2]});
      ptx::mma<T>(product + other / 2 + 4, a, {b[1], b[3]});
    }
  }
}

/// Computes sums += weights tile, with 16 rows of weights in registers and 16 Steps rows of a tile.
template <class T, class Tile, int Width, int Steps>
__device__ __forceinline__ void multiply_by_columns(float (&sums)[Width / 2],
                                                    const float (&weights)[8 * Steps],
                                                    const unsigned char* tile, int width) {
  std::uint32_t a[Steps][4];
  to_operand<T>(weights, a);
#pragma unroll
  for (int column = 0; column < Width; column += 16) {
    if (column >= width) break;
#pragma unroll
    for (int step = 0; step < Steps; ++step) {
      std::uint32_t b[4];
      Tile::template load<true>(b, tile, 16 * step, column);
      ptx::mma<T>(sums + column / 2, a[step], {b[0], b[1]});
      ptx::mma<T>(sums + column / 2 + 4, a[step], {b[2], b[3]});
    }
  }
}

/// Stores the valid ones of a warp's 16 rows of a gradient, from row `first` on, times `factor`.
template <class T, int Width>
__device__ __forceinline__ void store_gradient(const View<T, 2>& to, int first, float factor,
                                               const float (&sums)[Width / 2]) {
#pragma unroll
  for (int i = 0; i < Width / 2; i += 2) {
    const int row = first + lane_of_thread() / 4 + 8 * accumulator_row(i);
    const int left = static_cast<int>(to.shape[1]) - accumulator_column(i);
    if (row >= to.shape[0] || left <= 0) continue;
    store(to.data + row * to.strides[0] + accumulator_column(i),
          convert<T>(Pack<float, 2>{{factor * sums[i], factor * sums[i + 1]}}), left);
  }
}

/// Returns tile `number` of block_rows rows of the batch elements; without offsets the tiles of all
/// elements alternate.
__device__ __forceinline__ RowTileAt tile_of_block(const View<const std::int32_t, 1>& offsets,
                                                   std::int64_t total, std::int64_t batch,
                                                   int number) {
  if (offsets.data != nullptr) return row_tile_at(offsets, total, block_rows, number);
  return {number % batch, number / batch * block_rows};
}

/// Replaces products by the exponents of their weights, and returns the derivatives of the soft cap
/// in `slopes`. Element i is the pair (query, key) that pair_of(i, &query, &key) gives.
template <class T, int Count, class PairOf>
__device__ __forceinline__ void apply_rule(const Gradients<T>& call, const KeyMask<int>& mask,
                                           int b, int head, float (&products)[Count],
                                           float (&slopes)[Count], const PairOf& pair_of) {
  const ScoreRule<float>& rule = call.rule;
  const float soft_cap = rule.soft_cap;
  const float factor = soft_cap == 0 ? 0.0F
                                     : fminf(2 * log2_e<float> / soft_cap,
                                             std::numeric_limits<float>::max());  // 0 stays 0
  const float slope = rule.slopes.data != nullptr ? rule.slopes(head) : 0.0F;
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    int query = 0;
    int key = 0;
    pair_of(i, query, key);
    float score = rule.scale * products[i];
    slopes[i] = 1;
    if (soft_cap != 0) {
      // tanh(x) = 1 - 2 / (1 + e^(2 x)): an absolute error of a few units in the last place of 1.
      const float share =
          fmaf(-2.0F, ptx::fast_reciprocal(1 + ptx::fast_exp2(score * factor)), 1.0F);
      score = soft_cap * share;
      slopes[i] = fmaf(-share, share, 1.0F);
    }
    score = fmaf(-slope, fabsf(static_cast<float>(key - mask.diagonal(query))), score);
    const bool exists = query < mask.queries && key < mask.length;  // else no bias is there
    if (exists && rule.bias.data != nullptr) score += rule.bias(b, head, query, key);
    products[i] = exists ? log2_e<float> * score : 0.0F;
  }
}

template <class T, int Width, bool Plain>
__global__ void __launch_bounds__(tensor_threads, 2)
    attention_backward_tensor_keys(TensorCall<T> job) {
  constexpr int tile = query_tile<Width>;
  using Layout = KeysOuterLayout<T, Width>;
  using Keys = typename Layout::Keys;
  using Queries = typename Layout::Queries;
  Layout& layout = shared<Layout>();
  const Gradients<T>& call = job.call;
  const auto kv_heads = static_cast<int>(call.kv_heads());
  const int kv_head = static_cast<int>(blockIdx.x) % kv_heads;
  // Start with the first keys, which most queries see under a causal mask.
  const RowTileAt place = tile_of_block(call.key_offsets, call.keys(), call.batch(),
                                        static_cast<int>(blockIdx.x) / kv_heads);
  const auto b = static_cast<int>(place.element);
  const auto first = static_cast<int>(place.first);
  const KeyMask<int> mask = call.template mask<int>(b);
  if (first >= call.key_rows(b).count) return;
  const int first_seen = mask.first_key(0);  // keys before it may hold NaN
  const int first_query = mask.first_query(first);
  const int end_query = mask.end_query(min(first + block_rows, mask.length) - 1);
  const int tiles = ceil_div(max(end_query - first_query, 0), tile);
  const int rounds = tiles * call.group;

  const auto copy_queries = [&](int round, int stage) {
    const int head = kv_head * call.group + round / tiles;
    const int query = first_query + round % tiles * tile;
    Queries::template copy_between<tensor_threads>(
        layout.q[stage], call.of_queries(call.q, b).at(head), query, 0, end_query, job.wide_q);
    Queries::template copy_between<tensor_threads>(layout.dout[stage],
                                                   call.of_queries(call.dout, b).at(head), query, 0,
                                                   end_query, job.wide_dout);
    const std::int64_t row = first_sum(call, mask, b, head) + query;
    const auto thread = static_cast<int>(threadIdx.x);
    if (thread < 2 * tile) {
      // Rows past the end are zero, and so are their products.
      const bool exists = query + thread % tile < end_query;
      const float* const from =
          (thread < tile ? job.rows.lse : job.rows.sum) + (exists ? row + thread % tile : 0);
      float* const to = (thread < tile ? layout.lse : layout.row_sum)[stage] + thread % tile;
      ptx::async_copy<4>(to, from, exists ? 4 : 0);
    }
    ptx::async_commit();
  };
  if (rounds > 0) {
    Keys::template copy_between<tensor_threads>(layout.k, call.of_keys(call.k, b).at(kv_head),
                                                first, first_seen, mask.length, job.wide_k);
    Keys::template copy_between<tensor_threads>(layout.v, call.of_keys(call.v, b).at(kv_head),
                                                first, first_seen, mask.length, job.wide_v);
    copy_queries(0, 0);
  }

  const int warp_row = static_cast<int>(threadIdx.x) / 32 * warp_rows;
  const int key = first + warp_row + lane_of_thread() / 4;  // and key + 8
  const auto width = static_cast<int>(call.width());
  const auto value_width = static_cast<int>(call.value_width());
  float dk[Width / 2] = {};
  float dv[Width / 2] = {};
  for (int round = 0, stage = 0; round < rounds; ++round, stage ^= 1) {
    ptx::async_wait_all();
    __syncthreads();  // this tile is complete; the other buffer has been read
    if (round + 1 < rounds) copy_queries(round + 1, stage ^ 1);
    const int query = first_query + round % tiles * tile;

    float p[tile / 2] = {};
    multiply_by_rows<T, Keys, Queries, Width, tile>(p, layout.k, warp_row, layout.q[stage], width);
    const int first_key = first + warp_row;
    const bool masked =
        first_key + warp_rows > mask.end_key(query) || first_key < mask.first_key(query + tile - 1);
    [[maybe_unused]] float slopes[Plain ? 1 : tile / 2];
    if constexpr (!Plain) {
      apply_rule(call, mask, b, kv_head * call.group + round / tiles, p, slopes,
                 [&](int i, int& of_query, int& of_key) {
                   of_query = query + accumulator_column(i);
                   of_key = key + 8 * accumulator_row(i);
                 });
    }
#pragma unroll
    for (int i = 0; i < tile / 2; ++i) {
      const int column = accumulator_column(i);
      p[i] =
          ptx::fast_exp2(fmaf(p[i], Plain ? job.exponent_scale : 1.0F, -layout.lse[stage][column]));
      if (masked && !mask.sees(query + column, key + 8 * accumulator_row(i))) p[i] = 0;
    }
    multiply_by_columns<T, Queries, Width, tile / 16>(dv, p, layout.dout[stage], value_width);

    float ds[tile / 2] = {};
    multiply_by_rows<T, Keys, Queries, Width, tile>(ds, layout.v, warp_row, layout.dout[stage],
                                                    value_width);
#pragma unroll
    for (int i = 0; i < tile / 2; ++i) {
      ds[i] = p[i] * (ds[i] - layout.row_sum[stage][accumulator_column(i)]);
      if constexpr (!Plain) ds[i] *= slopes[i];
    }
    multiply_by_columns<T, Queries, Width, tile / 16>(dk, ds, layout.q[stage], width);
  }
  store_gradient<T, Width>(call.of_keys(call.dk, b).at(kv_head), first + warp_row, call.rule.scale,
                           dk);
  store_gradient<T, Width>(call.of_keys(call.dv, b).at(kv_head), first + warp_row, 1.0F, dv);
}

template <class T, int Width, bool Plain>
__global__ void __launch_bounds__(tensor_threads, 2)
    attention_backward_tensor_queries(TensorCall<T> job) {
  using Layout = QueriesOuterLayout<T, Width>;
  using Queries = typename Layout::Queries;
  using Keys = typename Layout::Keys;
  Layout& layout = shared<Layout>();
  const Gradients<T>& call = job.call;
  const auto heads = static_cast<int>(call.heads());
  // Start with the last queries, which see the most keys under a causal mask.
  const auto block = static_cast<int>(gridDim.x - 1 - blockIdx.x);
  const int head = block % heads;
  const RowTileAt place =
      tile_of_block(call.query_offsets, call.queries(), call.batch(), block / heads);
  const auto b = static_cast<int>(place.element);
  const auto first = static_cast<int>(place.first);
  const KeyMask<int> mask = call.template mask<int>(b);
  const int queries = mask.queries;
  if (first >= queries) return;
  const int first_key = mask.first_key(first);
  const int tiles =
      ceil_div(mask.end_key(min(first + block_rows, queries) - 1) - first_key, key_tile);
  const auto k = call.of_keys(call.k, b).at(head / call.group);
  const auto v = call.of_keys(call.v, b).at(head / call.group);

  const auto copy_keys = [&](int number, int stage) {
    Keys::template copy_between<tensor_threads>(layout.k[stage], k, first_key + number * key_tile,
                                                0, mask.length, job.wide_k);
    Keys::template copy_between<tensor_threads>(layout.v[stage], v, first_key + number * key_tile,
                                                0, mask.length, job.wide_v);
    ptx::async_commit();
  };
  if (tiles > 0) {
    const int begin = mask.first_query(0);  // earlier queries see no key
    Queries::template copy_between<tensor_threads>(layout.q, call.of_queries(call.q, b).at(head),
                                                   first, begin, queries, job.wide_q);
    Queries::template copy_between<tensor_threads>(
        layout.dout, call.of_queries(call.dout, b).at(head), first, begin, queries, job.wide_dout);
    copy_keys(0, 0);
  }

  const int warp_row = static_cast<int>(threadIdx.x) / 32 * warp_rows;
  const int query = first + warp_row + lane_of_thread() / 4;  // and query + 8
  const auto width = static_cast<int>(call.width());
  const auto value_width = static_cast<int>(call.value_width());
  const int end_of_first = mask.end_key(first + warp_row);
  const int first_of_last = mask.first_key(first + warp_row + warp_rows - 1);
  float lse[2] = {0, 0};
  float row_sum[2] = {0, 0};
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    if (query + 8 * row >= queries) continue;
    lse[row] = job.rows.lse[first_sum(call, mask, b, head) + query + 8 * row];
    row_sum[row] = job.rows.sum[first_sum(call, mask, b, head) + query + 8 * row];
  }
  float dq[Width / 2] = {};
  for (int number = 0, stage = 0; number < tiles; ++number, stage ^= 1) {
    ptx::async_wait_all();
    __syncthreads();  // this tile is complete; the other buffer has been read
    if (number + 1 < tiles) copy_keys(number + 1, stage ^ 1);

    float p[key_tile / 2] = {};
    multiply_by_rows<T, Queries, Keys, Width, key_tile>(p, layout.q, warp_row, layout.k[stage],
                                                        width);
    float ds[key_tile / 2] = {};
    multiply_by_rows<T, Queries, Keys, Width, key_tile>(ds, layout.dout, warp_row, layout.v[stage],
                                                        value_width);
    const int tile_key = first_key + number * key_tile;
    const bool masked = tile_key + key_tile > end_of_first || tile_key < first_of_last;
    [[maybe_unused]] float slopes[Plain ? 1 : key_tile / 2];
    if constexpr (!Plain) {
      apply_rule(call, mask, b, head, p, slopes, [&](int i, int& of_query, int& of_key) {
        of_query = query + 8 * accumulator_row(i);
        of_key = tile_key + accumulator_column(i);
      });
    }
#pragma unroll
    for (int i = 0; i < key_tile / 2; ++i) {
      const int row = accumulator_row(i);
      const float weight = ptx::fast_exp2(fmaf(p[i], Plain ? job.exponent_scale : 1.0F, -lse[row]));
      ds[i] = weight * (ds[i] - row_sum[row]);
      if constexpr (!Plain) ds[i] *= slopes[i];
      if (masked && !mask.sees(query + 8 * row, tile_key + accumulator_column(i))) ds[i] = 0;
    }
    multiply_by_columns<T, Keys, Width, key_tile / 16>(dq, ds, layout.k[stage], width);
  }
  store_gradient<T, Width>(call.of_queries(call.dq, b).at(head), first + warp_row, call.rule.scale,
                           dq);
}

Support supports(const AttentionBackward::Args& args, const Context&) {
  return require_tensor_cores(args);
}

Work work(const AttentionBackward::Args& args, const Context&) {
  // Products cover D and Dv, rounded up to 16 columns.
  const auto width = static_cast<double>(round_up(args.width(), std::int64_t{16}));
  const auto value_width = static_cast<double>(round_up(args.value_width(), std::int64_t{16}));
  Work work;
  with_width(args, [&]<class, int Width>() {
    work = facts_of(args, {.queries = query_tile<Width>,
                           .keys = block_rows,
                           .rounds = 1,
                           .width = width + value_width,
                           .operations = 8 * width + 6 * value_width,
                           .resident = 2,
                           .path = Width == 64 ? "64" : "128"});
  });
  return work;
}

void run(const AttentionBackward::Args& args, Context& context) {
  with_width(args, [&]<class T, int Width>() {
    TensorCall<T> job{.call = attention_gradients<T>(args),
                      .rows = {},
                      .exponent_scale = static_cast<float>(args.options.scale * log2_e<double>),
                      .wide_q = starts_rows_at(args.q, 16),
                      .wide_k = starts_rows_at(args.k, 16),
                      .wide_v = starts_rows_at(args.v, 16),
                      .wide_dout = starts_rows_at(args.dout, 16)};
    job.rows = make_row_sums(args, context, job.call);
    const bool plain = args.has_plain_scores();
    launch(context,
           {.grid = args.kv_heads() *
                    count_row_tiles(args.has_key_offsets(), args.batch(), args.keys(), block_rows),
            .block = tensor_threads,
            .shared_bytes = sizeof(KeysOuterLayout<T, Width>)},
           plain ? attention_backward_tensor_keys<T, Width, true>
                 : attention_backward_tensor_keys<T, Width, false>,
           job);
    launch(context,
           {.grid = args.heads() * count_row_tiles(args.has_query_offsets(), args.batch(),
                                                   args.queries(), block_rows),
            .block = tensor_threads,
            .shared_bytes = sizeof(QueriesOuterLayout<T, Width>)},
           plain ? attention_backward_tensor_queries<T, Width, true>
                 : attention_backward_tensor_queries<T, Width, false>,
           job);
  });
}

const Rung<AttentionBackward> self{{.name = "tensor_cores",
                                    .step = 100,
                                    .after = "register_tiled",
                                    .backend = device_backend,
                                    .supports = supports,
                                    .work = work,
                                    .run = run}};

}  // namespace
}  // namespace rung
