// SPDX-License-Identifier: Apache-2.0
// attention / split KV
//
// Idea     For few queries and a long KV cache, split the keys over enough blocks to fill the GPU;
//          a second kernel combines the partial results in a fixed order. Eight lanes share a key,
//          so a warp processes four keys at a time. A lane uses its elements of K and V for the
//          queries of all heads that share them.
// Changes  against warp_tiled: one query fills the GPU, and a head of K and V is read once for all
//          heads of q that share it.
// Cost     One read of K and V. 2 (D + Dv) operations per score and three shuffles per row and four
//          keys; partial results take Dv + 2 elements per row and split.
// Limits   D and Dv up to 256, fewer than 2^31 keys, up to 64 rows per head of K and V (packed
//          queries: on average; a longer batch element's blocks loop over its rows). Weighted sums
//          stay in registers, which limits a block to 8 rows (f32 up to 128 columns; 4 for f64 or
//          wider rows, 2 for both); more rows read K and V again.
// Source   T. Dao and others, Flash-Decoding for long-context inference, 2023.
#include "rung/device/load.hpp"
#include "rung/ops/attention/cuda/detail/facts.hpp"
#include "rung/ops/attention/cuda/shapes/split_kv.cuh"

namespace rung {
namespace {

using namespace attention_cuda;
using namespace attention_cuda::split_kv;

constexpr int warps = 4;
constexpr int threads = 32 * warps;
constexpr int key_lanes = 8;                      // lanes per key
constexpr int warp_keys = warp_size / key_lanes;  // keys per warp and step
constexpr int block_keys = warps * warp_keys;
constexpr std::int64_t max_rows = 64;  // above, kernels with register tiles are faster

/// Rows per block: 128 registers per thread for the sums of weighted values.
template <class T, int Width>
constexpr int tile_rows = 1024 / Width * 4 / static_cast<int>(sizeof(Accumulator<T>));

/// A lane's elements of a row of K or V: 16-byte chunks, interleaved among the eight lanes.
template <class T, int Width>
struct Lane {
  static constexpr int chunk = vector_width<T>;
  static constexpr int chunks = Width / key_lanes / chunk;
  static constexpr int size = chunk * chunks;
  static __device__ __forceinline__ int column(int i) {
    return (i / chunk * key_lanes + lane_of_thread() % key_lanes) * chunk + i % chunk;
  }
  T at[size];

  /// Loads the lane's elements; those past `width` become zero. `wide`: rows are contiguous and
  /// 16-byte aligned.
  __device__ __forceinline__ void load(const T* row, std::int64_t stride, std::int64_t width,
                                       bool wide) {
#pragma unroll
    for (int c = 0; c < chunks; ++c) {
      const int first = column(c * chunk);
      Pack<T, chunk> values;
      if (wide && first < width) {
        values = load_wide<chunk>(row + first);
      } else {
#pragma unroll
        for (int i = 0; i < chunk; ++i) {
          values[i] = first + i < width ? row[(first + i) * stride] : zero<T>();
        }
      }
#pragma unroll
      for (int i = 0; i < chunk; ++i) at[c * chunk + i] = values[i];
    }
  }
};

/// A row sees keys [first, end) of those of its block.
struct SeenKeys {
  int first, end;
};

template <class Sum, int Width, int Rows>
struct Layout {
  union {
    Sum q[Rows][Width];
    struct {
      Sum maximum[warps][Rows];
      Sum sum[warps][Rows];
      Sum weighted[warps][Rows][Width];
    } found;
  };
  RowIndices rows[Rows];
  SeenKeys seen[Rows];
};

/// Multiplies a tile of rows by the keys of a split and writes the results.
template <class T, class K, int Width, int Rows, bool Plain>
__device__ __forceinline__ void multiply_rows(const Heads<T, K>& p, const Cut<Accumulator<T>>& cut,
                                              bool wide, const ElementRows& rows, std::int64_t b,
                                              std::int64_t g, int split, std::int64_t row_tile,
                                              Layout<Accumulator<T>, Width, Rows>& layout) {
  using Sum = Accumulator<T>;
  using Values = Lane<K, Width>;
  const int lane = lane_of_thread();
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const std::int64_t first_row = row_tile * Rows;
  const std::int64_t last_row = smaller(first_row + Rows, rows.count) - 1;
  const auto mask = p.mask(b);
  const SplitKeys own(p, mask, first_row, last_row, split, cut.splits, 1);
  const int keys = static_cast<int>(own.end - own.first);
  const int there = static_cast<int>(last_row - first_row) + 1;  // rows

  const auto within = [&](std::int64_t key) {
    return static_cast<int>(clamped(key - own.first, std::int64_t{0}, std::int64_t{keys}));
  };
  const auto seen_by = [&](int r) -> SeenKeys {
    const std::int64_t row = first_row + r;
    return {within(mask.first_key(row / p.group)),
            row < rows.count ? within(mask.end_key(row / p.group)) : 0};
  };
  SeenKeys seen[Plain ? Rows : 1];  // otherwise in shared memory, to spill less
  if constexpr (Plain) {
#pragma unroll
    for (int r = 0; r < Rows; ++r) seen[r] = seen_by(r);
  }
  for (int r = warp; r < Rows; r += warps) {
    const Row<T> row(cut.by_group, b, g, r < there ? first_row + r : 0);
    const View<const T, 1> q = (Plain ? p.q.at(b) : p.q_of(b)).at(row.h).at(row.i);
    for (int column = lane; column < Width; column += warp_size) {
      layout.q[r][column] = r < there && column < p.width() ? convert<Sum>(q(column)) : Sum(0);
    }
    if (!Plain && lane == 0) {
      layout.rows[r] = {row.h, row.i, mask.diagonal(row.i)};
      layout.seen[r] = seen_by(r);
    }
  }
  __syncthreads();

  const ScoreRule<Sum> rule = p.rule_of(b, g);
  const Sum factor = unit_of<Plain>(rule).exponent;
  const bool ruled = !Plain && !p.rule.is_plain();
  Sum o[Rows][Values::size] = {};
  Sum maximum[Rows];
  Sum sum[Rows];
#pragma unroll
  for (int r = 0; r < Rows; ++r) {
    maximum[r] = no_maximum<Sum>;
    sum[r] = 0;
  }
  const StoredKeys<T, K> stored(p, cut.page, b);
  const K* k = nullptr;
  const K* v = nullptr;
  std::int32_t entry = 0;  // of the lane's key in the page table, loaded one step ahead
  const auto entry_at = [&](int first) {
    return stored.entry(own.first + smaller(first + lane / key_lanes, keys - 1));
  };
  if (keys > 0) {
    k = &p.k(Plain ? b : 0, g, Plain ? own.first : 0, 0);
    v = &p.v(Plain ? b : 0, g, Plain ? own.first : 0, 0);
    if (!Plain) entry = entry_at(warp * warp_keys);
  }
  // All lanes of a warp run the same number of iterations, because they take part in shuffles.
  for (int first = warp * warp_keys; first < keys; first += block_keys) {
    const int j = first + lane / key_lanes;
    const int row = smaller(j, keys - 1);
    Values of_k;
    Values of_v;
    if constexpr (Plain) {
      of_k.load(k + row * p.k.strides[2], p.k.strides[3], p.width(), wide);
      of_v.load(v + row * p.v.strides[2], p.v.strides[3], p.value_width(), wide);
    } else {
      const std::int64_t key = own.first + row;
      of_k.load(k + stored.offset(p.k, key, entry), p.k.strides[3], p.width(), wide);
      of_v.load(v + stored.offset(p.v, key, entry), p.v.strides[3], p.value_width(), wide);
      entry = entry_at(first + block_keys);
    }
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      if (r >= there) break;
      Sum score = 0;
#pragma unroll
      for (int i = 0; i < Values::size; ++i) {
        score += layout.q[r][Values::column(i)] * widened<Sum>(of_k.at[i]);
      }
#pragma unroll
      for (int distance = 1; distance < key_lanes; distance *= 2) {
        score += shuffle_xor(score, distance);
      }
      const SeenKeys of_row = Plain ? seen[Plain ? r : 0] : layout.seen[r];
      if (j < of_row.first || j >= of_row.end) continue;  // skip, not multiply by 0: v may be NaN
      if (ruled) {
        const RowIndices& at = layout.rows[r];
        score = rule(score, b, at.h, at.i, own.first + j, at.diagonal);
      }
      if (score > maximum[r]) {
        const Sum rescale = power_of_2((maximum[r] - score) * factor);
        maximum[r] = score;
        sum[r] *= rescale;
#pragma unroll
        for (int i = 0; i < Values::size; ++i) o[r][i] *= rescale;
      }
      const Sum weight = power_of_2((score - maximum[r]) * factor);
      sum[r] += weight;
#pragma unroll
      for (int i = 0; i < Values::size; ++i) o[r][i] += weight * widened<Sum>(of_v.at[i]);
    }
  }

  // Combine the four keys of a warp by shuffles, then the warps through shared memory.
  __syncthreads();  // q has been read
#pragma unroll
  for (int r = 0; r < Rows; ++r) {
    if (r >= there) break;
    Sum most = maximum[r];
    most = greater(most, shuffle_xor(most, key_lanes));
    most = greater(most, shuffle_xor(most, 2 * key_lanes));
    const Sum part = power_of_2((maximum[r] - most) * factor);
    const auto all_keys = [&](Sum value) {
      value *= part;
      value += shuffle_xor(value, key_lanes);
      return value + shuffle_xor(value, 2 * key_lanes);
    };
    const Sum of_row = all_keys(sum[r]);
    if (lane == 0) {
      layout.found.maximum[warp][r] = most;
      layout.found.sum[warp][r] = of_row;
    }
#pragma unroll
    for (int i = 0; i < Values::size; ++i) {
      const Sum value = all_keys(o[r][i]);
      if (lane < key_lanes) layout.found.weighted[warp][r][Values::column(i)] = value;
    }
  }
  __syncthreads();
  for (int r = warp; r < there; r += warps) {
    const Combined<warps, Sum> found([&](int w) { return layout.found.maximum[w][r]; },
                                     [&](int w) { return layout.found.sum[w][r]; }, factor);
    const RowResult<Plain, T> result(p, cut, rows, b, g, first_row + r, split, found.maximum,
                                     found.sum, lane == 0);
    for (int column = lane; column < p.value_width(); column += warp_size) {
      Sum value = 0;
#pragma unroll
      for (int w = 0; w < warps; ++w) value += found.part[w] * layout.found.weighted[w][r][column];
      result.write(column, value);
    }
  }
}

template <class T, class K, int Width, int Rows, bool Plain>
__global__ void __launch_bounds__(threads)
    attention_split_kv_rows(Heads<T, K> p, Cut<Accumulator<T>> cut, bool wide) {
  start_dependent();
  auto& layout = shared<Layout<Accumulator<T>, Width, Rows>>();
  std::int64_t at = blockIdx.x;
  const int row_tile = static_cast<int>(at % cut.row_tiles);
  at /= cut.row_tiles;
  const int split = static_cast<int>(at % cut.splits);
  at /= cut.splits;
  const std::int64_t g = at % p.kv_heads();
  const std::int64_t b = at / p.kv_heads();
  const ElementRows rows = rows_of<Plain>(p, cut, b);
  if constexpr (Plain) {
    multiply_rows<T, K, Width, Rows, Plain>(p, cut, wide, rows, b, g, split, row_tile, layout);
  } else {
    for (std::int64_t tile = row_tile; tile * Rows < rows.count; tile += cut.row_tiles) {
      multiply_rows<T, K, Width, Rows, Plain>(p, cut, wide, rows, b, g, split, tile, layout);
      __syncthreads();  // the layout has been read
    }
  }
}

// --- on the host ---------------------------------------------------------------------------------

struct SplitKvPlan {
  std::int64_t rows;  // per block
  std::int64_t row_tiles;
  std::int64_t splits;
};

SplitKvPlan plan_of(const Attention::Args& args, const Context& context) {
  constexpr double blocks_per_sm = 2;
  constexpr std::int64_t min_keys = 8 * block_keys;
  SplitKvPlan plan{};
  const bool narrow = larger(args.width(), args.value_width()) <= 128;
  plan.rows = (narrow ? 8 : 4) * 4 / (args.q.dtype == DType::f64 ? 8 : 4);
  plan.row_tiles = ceil_div(typical_rows(args), plan.rows);
  const double items = static_cast<double>(args.batch()) * static_cast<double>(args.kv_heads()) *
                       static_cast<double>(plan.row_tiles);
  const double slots = blocks_per_sm * context.info().sms;
  const std::int64_t keys = typical_tile_keys(args, plan.rows);
  // Two waves amortize the start and end of blocks.
  const double wanted = __builtin_ceil(2 * slots / larger(items, 1.0));
  plan.splits = clamped(static_cast<std::int64_t>(wanted), std::int64_t{1},
                        clamped(keys / min_keys, std::int64_t{1}, std::int64_t{max_splits}));
  return plan;
}

Support supports(const Attention::Args& args, const Context& context) {
  if (args.width() > 256 || args.value_width() > 256) return unsupported("D and Dv up to 256");
  if (args.keys() > 0x7fffffff) return unsupported("fewer than 2^31 keys");
  if (typical_rows(args) > max_rows) {
    return unsupported("up to 64 queries of heads that share a head of k and v");
  }
  if (!has_divisible_rows(args)) return unsupported("fewer than 2^31 rows per head of k");
  const SplitKvPlan plan = plan_of(args, context);
  const double blocks = static_cast<double>(args.batch()) * static_cast<double>(args.kv_heads()) *
                        static_cast<double>(plan.row_tiles) * static_cast<double>(plan.splits);
  return blocks <= 0x7fffffff ? supported : unsupported("more blocks than a grid has");
}

Work work(const Attention::Args& args, const Context& context) {
  const SplitKvPlan plan = plan_of(args, context);
  return split_work(args, plan.row_tiles, plan.splits, static_cast<int>(plan.rows), block_keys,
                    args.width() + args.value_width(), 2);
}

template <class T, class K, int Width>
void launch_width(const Attention::Args& args, Context& context) {
  using Sum = Accumulator<T>;
  constexpr int rows = tile_rows<T, Width>;
  const SplitKvPlan plan = plan_of(args, context);
  const Cut<Sum> cut = cut_of<Sum>(args, context, plan.row_tiles, plan.splits);
  const Heads<T, K> p = attention_heads<T, K>(args);
  const LaunchShape shape{.grid = args.batch() * args.kv_heads() * plan.row_tiles * plan.splits,
                          .block = threads,
                          .shared_bytes = sizeof(Layout<Sum, Width, rows>),
                          .dependent = can_depend(context)};
  const bool wide = has_wide_rows(args.k) && has_wide_rows(args.v);
  // Plain kernels, as is_plain() says, have no scales.
  if constexpr (std::is_same_v<T, K>) {
    launch(context, shape,
           is_plain(args) ? attention_split_kv_rows<T, K, Width, rows, true>
                          : attention_split_kv_rows<T, K, Width, rows, false>,
           p, cut, wide);
  } else {
    launch(context, shape, attention_split_kv_rows<T, K, Width, rows, false>, p, cut, wide);
  }
  combine_splits(args, context, p, cut);
}

void run(const Attention::Args& args, Context& context) {
  const bool narrow = larger(args.width(), args.value_width()) <= 128;
  visit_types(args, [&]<class T, class K>() {
    narrow ? launch_width<T, K, 128>(args, context) : launch_width<T, K, 256>(args, context);
  });
}

const Rung<Attention> self{{.name = "split_kv",
                            .after = "warp_tiled",
                            .backend = device_backend,
                            .supports = supports,
                            .work = work,
                            .run = run}};

}  // namespace
}  // namespace rung
