// SPDX-License-Identifier: Apache-2.0
// attention / split KV, decode: the kernel that multiplies rows of queries by one split of the
// keys.
//
// The rung's Idea, Changes, Cost and Limits are in split_kv_decode.cu.
#pragma once

#include "rung/device/ptx/async_copy.hpp"
#include "rung/ops/attention/cuda/detail/split_kv_rows.hpp"

namespace rung::attention_cuda::inline RUNG_TARGET::split_kv {

constexpr int threads = warp_size * warps;

/// Sizes by padded width of D and Dv. Enough bytes in flight hide the memory latency (4 TB/s times
/// 1 us are 30 KB per SM): up to three blocks per SM, each with all but one of its stages in
/// flight.
template <int Width, int RowWarps, bool Plain>
struct DecodeTile {
  static constexpr int width = Width;
  static constexpr int row_warps = RowWarps;
  static constexpr bool plain = Plain;
  /// q is in shared memory where registers do not suffice for it; for 64 rows smaller stages make
  /// room for it.
  static constexpr bool shared_q = Width == 256 || (!Plain && (Width == 128 || RowWarps > 1));
  static constexpr bool small_stages = shared_q && RowWarps > 1;
  static constexpr int rows = warp_rows * RowWarps;
  static constexpr int keys = small_stages ? 32 : 64;
  static constexpr int stages = small_stages ? 5 : Width == 64 ? 4 : 3;
  static constexpr int blocks_per_sm = Width == 64 ? 3 : Width == 128 ? 2 : 1;
};

/// Stage of K and V. 16 bytes of padding put the rows of an 8 x 8 matrix into different banks.
template <class T, int Width, int Keys>
struct Stage {
  T k[Keys][Width + 8];
  T v[Keys][Width + 8];

  /// Load fragments of mma, as WarpRows expects them. Rows of K are columns of the product. Rows of
  /// V are its rows: ldmatrix transposes the matrices.
  __device__ __forceinline__ void load_k(std::uint32_t (&words)[4], int key, int d) const {
    const int lane = lane_of_thread();
    ptx::load_matrix<4>(words, &k[key + lane % 8 + lane / 16 * 8][d * 16 + lane / 8 % 2 * 8]);
  }
  __device__ __forceinline__ void load_v(std::uint32_t (&words)[4], int key, int n) const {
    const int lane = lane_of_thread();
    ptx::load_matrix<4, true>(words, &v[key + lane % 16][n * 8 + lane / 16 * 8]);
  }
};

/// Exchange buffer for warps that share rows.
template <int Width>
struct Exchange {
  float maximum[warps][warp_rows];
  float sum[warps][warp_rows];
  float weighted[warps][warp_rows][Width + 8];  // stores of 8 bytes per lane: 4 rows, all banks
};

/// Offsets of a key's rows in k and v, in chunks of 16 bytes.
struct RowOffsets {
  std::uint32_t k, v;
};

template <class T, int Width, int RowWarps, bool Plain>
struct Layout {
  using Tile = DecodeTile<Width, RowWarps, Plain>;
  struct Nothing {};
  struct Indices {
    RowIndices rows[Tile::rows];
    RowOffsets offsets[Tile::stages][Tile::keys];
  };
  struct Queries {
    T at[Tile::rows][Width + 8];
  };
  union {
    Stage<T, Width, Tile::keys> stages[Tile::stages];
    Exchange<Width> exchange;
  };
  std::conditional_t<Tile::shared_q, Queries, Nothing> q;
  std::conditional_t<Plain, Nothing, Indices> of;
};

/// Tile of rows, split, head of K and V, and batch element of a block. Blocks of one head and split
/// are adjacent: the second row tile finds K and V in L2.
struct DecodePart {
  int row_tile, split, g, b;
  __device__ __forceinline__ DecodePart(const Cut<float>& cut, unsigned block)
      : row_tile(cut.by_row_tiles.take(block)),
        split(cut.by_splits.take(block)),
        g(cut.by_kv_heads.take(block)),
        b(static_cast<int>(block)) {}
};

template <bool Plain, class T>
__device__ __forceinline__ KeyMask<std::int64_t> mask_of(const Heads<T>& p, std::int64_t b) {
  if constexpr (!Plain) return p.mask(b);
  const std::int64_t keys =
      p.key_lengths.data != nullptr ? key_length(p.key_lengths(b), p.keys()) : p.keys();
  return {p.queries(), keys, p.causal, p.window};
}

/// Returns a split's keys, whole tiles of `Unit` keys, of those that rows of tile `row_tile` see.
template <int Rows, int Unit>
__device__ __forceinline__ SplitKeys split_keys(const Cut<float>& cut,
                                                const KeyMask<std::int64_t>& mask,
                                                const ElementRows& rows, int row_tile, int split) {
  const std::int64_t first_row = std::int64_t{row_tile} * Rows;
  const std::int64_t last_row = smaller(first_row + Rows, rows.count) - 1;
  const std::int64_t begin =
      mask.first_key(cut.by_group.quotient(static_cast<std::uint32_t>(first_row)));
  const std::int64_t end =
      mask.end_key(cut.by_group.quotient(static_cast<std::uint32_t>(last_row)));
  const auto units = static_cast<std::uint32_t>((end - begin + Unit - 1) / Unit);
  std::uint32_t each = units;
  const int more = cut.by_splits.take(each);  // splits with one unit more than `each`
  const std::int64_t from = std::int64_t{each} * split + smaller(split, more);
  const std::int64_t to = from + each + (split < more ? 1 : 0);
  return SplitKeys{begin + from * Unit, smaller(begin + to * Unit, end)};
}

/// Copies a tile of rows of q into shared memory; rows and columns that do not exist become zeros.
template <class T, int Width, int RowWarps, bool Plain>
__device__ __forceinline__ void copy_queries(const Heads<T>& p, const Divisor& by_group,
                                             std::int64_t b, std::int64_t g, std::int64_t first_row,
                                             std::int64_t rows, T (*to)[Width + 8]) {
  constexpr int chunks = Width / 8;
  const View<const T, 3> q = Plain ? p.q.at(b) : p.q_of(b);
#pragma unroll
  for (int at = 0; at < warp_rows * RowWarps * chunks / threads; ++at) {
    const int index = at * threads + static_cast<int>(threadIdx.x);
    const int r = index / chunks;
    const int column = index % chunks * 8;
    const bool exists = first_row + r < rows && column < p.width();
    const Row<T> row(by_group, b, g, exists ? first_row + r : 0);
    ptx::async_copy<16>(&to[r][column], &q(row.h, row.i, exists ? column : 0), exists ? 16 : 0);
  }
}

/// Copies tiles of K and V of one head into stages; keys from `end` on become zeros.
template <class T, int Width, int RowWarps, bool Plain>
class KeyCopies {
  using Tile = DecodeTile<Width, RowWarps, Plain>;
  using Layout = split_kv::Layout<T, Width, RowWarps, Plain>;
  static constexpr int chunk = 8;  // elements per 16 bytes
  static constexpr int chunks = Width / chunk;
  static constexpr int row_step = threads / chunks;  // from a row of a thread to its next
  static constexpr int copies = Tile::keys / row_step;
  const Heads<T>& p_;
  Layout& layout_;
  const T* k_ = nullptr;
  const T* v_ = nullptr;
  std::int64_t end_;

  // First row and column that a thread copies.
  static __device__ __forceinline__ int first_row() {
    return static_cast<int>(threadIdx.x) / chunks;
  }
  static __device__ __forceinline__ int column() {
    return static_cast<int>(threadIdx.x) % chunks * chunk;
  }

 public:
  __device__ __forceinline__ KeyCopies(const Heads<T>& p, Layout& layout, std::int64_t b,
                                       std::int64_t g, std::int64_t end)
      : p_(p), layout_(layout), end_(end) {
    if (end == 0) return;
    k_ = &p.k(Plain ? b : 0, g, 0, 0);
    v_ = &p.v(Plain ? b : 0, g, 0, 0);
  }

  /// Copies the tile at key `first` into a stage.
  __device__ __forceinline__ void fetch(std::int64_t first, int stage) const {
    auto& to = layout_.stages[stage];
    const int c = column();
    const bool in_k = c < p_.width();
    const bool in_v = c < p_.value_width();
    if (Plain && first + Tile::keys <= end_) {
      const T* k = k_ + (first + first_row()) * p_.k.strides[2] + (in_k ? c : 0);
      const T* v = v_ + (first + first_row()) * p_.v.strides[2] + (in_v ? c : 0);
#pragma unroll
      for (int at = 0; at < copies; ++at) {
        const int row = first_row() + at * row_step;
        ptx::async_copy<16>(&to.k[row][c], k, in_k ? 16 : 0);
        ptx::async_copy<16>(&to.v[row][c], v, in_v ? 16 : 0);
        k += row_step * p_.k.strides[2];
        v += row_step * p_.v.strides[2];
      }
    } else if (first < end_) {
      // At 256 columns, the offsets of all rows of a thread would not fit into registers. Plain
      // kernels have at most one such tile.
      [[maybe_unused]] constexpr int unrolled = Plain ? 1 : Width < 256 ? copies : 4;
#pragma unroll unrolled
      for (int at = 0; at < copies; ++at) {
        const int row = first_row() + at * row_step;
        const std::int64_t j = first + row;
        const bool of_k = j < end_ && in_k;
        const bool of_v = j < end_ && in_v;
        const T* k = nullptr;
        const T* v = nullptr;
        if constexpr (Plain) {
          k = k_ + j * p_.k.strides[2];
          v = v_ + j * p_.v.strides[2];
        } else {
          const RowOffsets offsets = j < end_ ? layout_.of.offsets[stage][row] : RowOffsets{};
          k = k_ + std::size_t{offsets.k} * chunk;
          v = v_ + std::size_t{offsets.v} * chunk;
        }
        ptx::async_copy<16>(&to.k[row][c], of_k ? k + c : k_, of_k ? 16 : 0);
        ptx::async_copy<16>(&to.v[row][c], of_v ? v + c : v_, of_v ? 16 : 0);
      }
    }
  }
};

/// Fills the ring of row offsets, one tile ahead of KeyCopies and its loads from the page table one
/// more tile ahead, so that no copy waits for them. One thread per key of a tile.
template <class T, int Width, int RowWarps>
class KeyOffsets {
  using Tile = DecodeTile<Width, RowWarps, false>;
  static constexpr int chunk = 8;
  const Heads<T>& p_;
  RowOffsets (&ring_)[Tile::stages][Tile::keys];
  StoredKeys<T> stored_;
  std::int64_t end_;
  std::int32_t entry_ = 0;

  __device__ __forceinline__ RowOffsets offsets(std::int64_t j, std::int32_t entry) const {
    return {static_cast<std::uint32_t>(stored_.offset(p_.k, j, entry) / chunk),
            static_cast<std::uint32_t>(stored_.offset(p_.v, j, entry) / chunk)};
  }

 public:
  /// Stores the offsets of the first tiles, one per stage. A barrier must follow.
  __device__ __forceinline__ KeyOffsets(const Heads<T>& p, const Divisor& page, std::int64_t b,
                                        std::int64_t first, std::int64_t end,
                                        RowOffsets (&ring)[Tile::stages][Tile::keys])
      : p_(p), ring_(ring), stored_(p, page, b), end_(end) {
#pragma unroll
    for (int from = 0; from < Tile::stages * Tile::keys; from += threads) {
      const int at = from + static_cast<int>(threadIdx.x);
      if (at >= Tile::stages * Tile::keys || first + at >= end) break;
      ring[at / Tile::keys][at % Tile::keys] = offsets(first + at, stored_.entry(first + at));
    }
    load(first + Tile::stages * Tile::keys);
  }
  /// Loads the entries of the tile at key `first`.
  __device__ __forceinline__ void load(std::int64_t first) {
    const std::int64_t j = first + threadIdx.x;
    if (threadIdx.x < Tile::keys && j < end_) entry_ = stored_.entry(j);
  }
  /// Stores the offsets of the tile at key `first`, whose entries have been loaded.
  __device__ __forceinline__ void store(std::int64_t first, int stage) {
    const std::int64_t j = first + threadIdx.x;
    if (threadIdx.x < Tile::keys && j < end_) ring_[stage][threadIdx.x] = offsets(j, entry_);
  }
};

/// Computes partial results of one tile of rows and one split. RowWarps warps own 16 rows each; 4 /
/// RowWarps warps share the keys of a tile.
template <class T, int Width, int RowWarps, bool Plain>
__device__ __forceinline__ void multiply_tile(const Heads<T>& p, const Cut<float>& cut,
                                              const DecodePart& part,
                                              const KeyMask<std::int64_t>& mask,
                                              const ElementRows& rows, const SplitKeys& own,
                                              int row_tile, bool wide_queries,
                                              Layout<T, Width, RowWarps, Plain>& layout) {
  using Tile = DecodeTile<Width, RowWarps, Plain>;
  constexpr int stages = Tile::stages;
  constexpr int key_tile = Tile::keys;
  constexpr int key_warps = warps / RowWarps;
  constexpr int warp_keys = key_tile / key_warps;
  // Two groups of 16 keys per step overlap their products; at 256 columns, q and o leave registers
  // for only one.
  constexpr int steps = warp_keys >= 32 && Width < 256 ? 2 : 1;
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const int lane = lane_of_thread();
  const int b = part.b;
  const int g = part.g;
  const int split = part.split;
  const std::int64_t first_row = std::int64_t{row_tile} * Tile::rows;
  const std::int64_t last_row = smaller(first_row + Tile::rows, rows.count) - 1;
  const auto token_of = [&](std::int64_t row) {
    return cut.by_group.quotient(static_cast<std::uint32_t>(row));
  };
  const std::int64_t end_of_first = mask.end_key(token_of(first_row));
  const std::int64_t first_of_last = mask.first_key(token_of(last_row));
  const KeyCopies<T, Width, RowWarps, Plain> copies(p, layout, b, g, own.end);

  std::conditional_t<Plain, int, KeyOffsets<T, Width, RowWarps>> offsets = [&] {
    if constexpr (Plain) {
      return 0;
    } else {
      return KeyOffsets<T, Width, RowWarps>(p, cut.page, b, own.first, own.end, layout.of.offsets);
    }
  }();
  if constexpr (!Plain) {
    if (threadIdx.x < Tile::rows) {
      const std::int64_t r = first_row + threadIdx.x;
      const Row<T> row(cut.by_group, b, g, r < rows.count ? r : 0);
      layout.of.rows[threadIdx.x] = {row.h, row.i, mask.diagonal(row.i)};
    }
    __syncthreads();
  }
  // q passes through the last stage on its way to registers. Its copies are in the group of the
  // first tile.
  T(*const q)
  [Width + 8] = [&] {
    if constexpr (Tile::shared_q) {
      return layout.q.at;
    } else {
      static_assert(Tile::rows <= key_tile);
      return layout.stages[stages - 1].k;
    }
  }();
#pragma unroll
  for (int stage = 0; stage < stages - 1; ++stage) {
    copies.fetch(own.first + stage * key_tile, stage);
    if (stage == 0 && wide_queries) {
      copy_queries<T, Width, RowWarps, Plain>(p, cut.by_group, b, g, first_row, rows.count, q);
    }
    ptx::async_commit();
  }
  if (!wide_queries) {
    store_queries<Plain, T, T, Width>(p, cut.by_group, b, g, first_row, rows.count, warp, warps,
                                      Tile::rows, q);
  }
  const int warp_row = warp % RowWarps * warp_rows;
  // Other than plain kernels have less than 2^31 keys, and no registers to spare.
  using Index = std::conditional_t<Plain, std::int64_t, int>;
  WarpRows<T, T, Width, Tile::shared_q, Plain, Index> mine;
  mine.find_seen(cut.by_group, mask, first_row + warp_row, rows.count);
  SharedRows<T, Width> shared_rows{};
  if constexpr (Tile::shared_q) {
    shared_rows.q = q + warp_row;
  } else {
    ptx::async_wait<stages - 2>();
    __syncthreads();  // q is complete
    mine.load_q_registers(q + warp_row);
  }
  if constexpr (!Plain) shared_rows.indices = layout.of.rows + warp_row;
  const float factor = unit_of<Plain>(p.rule).exponent;
  const auto window = static_cast<Index>(p.window > 0 ? p.window : p.keys());
  const int from = warp / RowWarps * warp_keys;
  int stage = 0;
  for (std::int64_t first = own.first; first < own.end; first += key_tile) {
    ptx::async_wait<stages - 2>();
    __syncthreads();  // the tile is complete; the previous one, or q, has been read
    if constexpr (!Plain) {
      const std::int64_t later = first + stages * key_tile;
      offsets.store(later, stage);
      offsets.load(later + key_tile);
    }
    copies.fetch(first + (stages - 1) * key_tile, stage == 0 ? stages - 1 : stage - 1);
    ptx::async_commit();
    const bool masked = first + key_tile > end_of_first || first < first_of_last;
#pragma unroll 1
    for (int key = from; key < from + warp_keys; key += 16 * steps) {
      const auto j = static_cast<Index>(first + key);
      const auto& tile = layout.stages[stage];
      if (masked) {
        mine.template add_keys<steps, true>(p.rule, shared_rows, tile, key, b, j, factor, window);
      } else {
        mine.template add_keys<steps, false>(p.rule, shared_rows, tile, key, b, j, factor, window);
      }
    }
    stage = stage == stages - 1 ? 0 : stage + 1;
  }
  mine.finish_sums();
  ptx::async_wait_all();

  if constexpr (key_warps == 1) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::int64_t row = first_row + warp * warp_rows + lane / 4 + 8 * r;
      if (row >= rows.count) continue;
      const RowResult<Plain, T> result(p, cut, rows, b, g, row, split, mine.maximum[r], mine.sum[r],
                                       lane % 4 == 0);
#pragma unroll
      for (int n = 0; n < Width / 8; ++n) {
        const int column = n * 8 + lane % 4 * 2;
        if (column < p.value_width()) {
          result.template write_pack<2>(column, {mine.o[n][2 * r], mine.o[n][2 * r + 1]});
        }
      }
    }
  } else {
    static_assert(RowWarps == 1);
    Exchange<Width>& exchange = layout.exchange;
    __syncthreads();  // the stages have been read
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = lane / 4 + 8 * r;
      if (lane % 4 == 0) {
        exchange.maximum[warp][row] = mine.maximum[r];
        exchange.sum[warp][row] = mine.sum[r];
      }
      if (first_row + row >= rows.count) continue;
#pragma unroll
      for (int n = 0; n < Width / 8; ++n) {
        store_wide<2>(&exchange.weighted[warp][row][n * 8 + lane % 4 * 2],
                      Pack<float, 2>{mine.o[n][2 * r], mine.o[n][2 * r + 1]});
      }
    }
    __syncthreads();
    constexpr int columns = Width == 64 ? 2 : 4;  // per lane
    for (int row = warp; row < warp_rows && first_row + row < rows.count; row += warps) {
      const Combined<warps, float> found([&](int w) { return exchange.maximum[w][row]; },
                                         [&](int w) { return exchange.sum[w][row]; }, factor);
      const RowResult<Plain, T> result(p, cut, rows, b, g, first_row + row, split, found.maximum,
                                       found.sum, lane == 0);
      for (int column = lane * columns; column < p.value_width(); column += warp_size * columns) {
        Pack<float, columns> values = {};
#pragma unroll
        for (int w = 0; w < warps; ++w) {
          const auto of_warp = load_wide<columns>(&exchange.weighted[w][row][column]);
#pragma unroll
          for (int i = 0; i < columns; ++i) values[i] += found.part[w] * of_warp[i];
        }
        result.write_pack(column, values);
      }
    }
  }
}

/// `wide_queries`: rows of q can be copied in chunks of 16 bytes.
template <class T, int Width, int RowWarps, bool Plain>
__global__ void __launch_bounds__(threads, DecodeTile<Width, RowWarps, Plain>::blocks_per_sm)
    attention_split_kv(Heads<T> p, Cut<float> cut, bool wide_queries) {
  using Tile = DecodeTile<Width, RowWarps, Plain>;
  let_dependent_start();
  auto& layout = shared<Layout<T, Width, RowWarps, Plain>>();
  const DecodePart part(cut, blockIdx.x);
  // Lengths, offsets and page tables are operands: the preceding grid may still write them.
  const bool has_known_keys = Plain && p.key_lengths.data == nullptr;
  if (!has_known_keys) wait_for_preceding();
  const ElementRows rows = rows_of<Plain>(p, cut, part.b);
  const auto keys_of = [&](const KeyMask<std::int64_t>& mask, int tile) {
    return split_keys<Tile::rows, Tile::keys>(cut, mask, rows, tile, part.split);
  };
  if constexpr (Plain) {
    const auto mask = mask_of<Plain>(p, part.b);
    const SplitKeys own = keys_of(mask, part.row_tile);
    if (has_known_keys) wait_for_preceding();
    multiply_tile(p, cut, part, mask, rows, own, part.row_tile, wide_queries, layout);
  } else {
    for (int tile = part.row_tile; std::int64_t{tile} * Tile::rows < rows.count;
         tile += cut.row_tiles) {
      const auto mask = mask_of<Plain>(p, part.b);  // registers do not suffice to keep it
      multiply_tile(p, cut, part, mask, rows, keys_of(mask, tile), tile, wide_queries, layout);
      __syncthreads();  // the layout has been read
    }
  }
}

}  // namespace rung::attention_cuda::inline RUNG_TARGET::split_kv
