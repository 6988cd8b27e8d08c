// SPDX-License-Identifier: Apache-2.0
// attention / split KV, decode: the kernel that multiplies rows of queries by one split of the
// keys.
//
// The rung's Idea, Changes, Cost and Limits are in split_kv_decode.cu.
#pragma once

#include "rung/device/ptx/async_copy.hpp"
#include "rung/device/ptx/matrix.hpp"
#include "rung/device/tile/accumulator.hpp"
#include "rung/ops/attention/cuda/shapes/split_kv.cuh"

namespace rung::attention_cuda::inline RUNG_TARGET::split_kv {

constexpr int warps = 4;
constexpr int threads = 32 * warps;
constexpr int warp_rows = 16;  // of mma.m16n8k16

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
};

/// Exchange buffer for warps that share rows.
template <int Width>
struct Exchange {
  float maximum[warps][warp_rows];
  float sum[warps][warp_rows];
  float weighted[warps][warp_rows][Width + 4];
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

/// Copies tiles of K and V of one head into stages; keys from `end` on become zeros.
template <class T, int Width, int RowWarps, bool Plain>
class KeyCopies {
  using Tile = DecodeTile<Width, RowWarps, Plain>;
  using Layout = split_kv::Layout<T, Width, RowWarps, Plain>;
  static constexpr int chunk = 8;  // elements per 16 bytes
  const Heads<T>& p_;
  Layout& layout_;
  const T* k_ = nullptr;
  const T* v_ = nullptr;
  std::int64_t end_;

 public:
  __device__ __forceinline__ KeyCopies(const Heads<T>& p, Layout& layout, std::int64_t b,
                                       std::int64_t g, std::int64_t end)
      : p_(p), layout_(layout), end_(end) {
    if (end == 0) return;
    k_ = &p.k(Plain ? b : 0, g, 0, 0);
    v_ = &p.v(Plain ? b : 0, g, 0, 0);
  }

  /// Copies the tile at key `first` into a stage, and commits the copies.
  __device__ __forceinline__ void fetch(std::int64_t first, int stage) const {
    constexpr int chunks = Width / chunk;
    auto& to = layout_.stages[stage];
    if (first < end_) {
      // At 256 columns, the offsets of all rows of a thread would not fit into registers.
      [[maybe_unused]] constexpr int unrolled =
          Plain || Width < 256 ? Tile::keys * chunks / threads : 4;
#pragma unroll unrolled
      for (int at = 0; at < Tile::keys * chunks / threads; ++at) {
        const int index = at * threads + static_cast<int>(threadIdx.x);
        const int row = index / chunks;
        const int column = index % chunks * chunk;
        const std::int64_t j = first + row;
        const bool of_k = j < end_ && column < p_.width();
        const bool of_v = j < end_ && column < p_.value_width();
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
        ptx::async_copy<16>(&to.k[row][column], of_k ? k + column : k_, of_k ? 16 : 0);
        ptx::async_copy<16>(&to.v[row][column], of_v ? v + column : v_, of_v ? 16 : 0);
      }
    }
    ptx::async_commit();
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

/// Returns a mask of 16 keys with the bits below `end` set.
__device__ __forceinline__ unsigned bits_before(std::int64_t end) {
  return (1u << static_cast<int>(clamped(end, std::int64_t{0}, std::int64_t{16}))) - 1;
}

/// Replaces infinities and NaN in a lane's fragment of V by 0 and sets o to NaN for queries that
/// see such a key; queries that do not see it must not multiply it even by 0. The fragment holds
/// keys 2 t, 2 t + 1, 2 t + 8 and 2 t + 9 (t = lane % 4) of column lane / 4. Bit j of `seen` stands
/// for key j of these 16.
template <class T>
__device__ __forceinline__ void hide_unseen(std::uint32_t (&v)[2], const unsigned (&seen)[2],
                                            float (&o)[4]) {
  constexpr std::uint32_t exponent = std::is_same_v<T, f16> ? 0x7c00 : 0x7f80;
  const int t = lane_of_thread() % 4;
  unsigned keys = 0;  // those with a non-finite value
#pragma unroll
  for (int at = 0; at < 4; ++at) {
    const std::uint32_t bits = v[at / 2] >> at % 2 * 16 & exponent;
    if (bits != exponent) continue;
    v[at / 2] &= at % 2 == 0 ? 0xffff0000u : 0x0000ffffu;
    keys |= 1u << (2 * t + at / 2 * 8 + at % 2);
  }
  keys |= shuffle_xor(keys, 1);
  keys |= shuffle_xor(keys, 2);
#pragma unroll
  for (int column = 0; column < 2; ++column) {
    const unsigned of_column = shuffle(keys, (2 * t + column) * 4);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if ((of_column & seen[r]) != 0) o[2 * r + column] = std::numeric_limits<float>::quiet_NaN();
    }
  }
}

/// 16 rows of q and their running maxima, sums and weighted values. A lane holds rows lane / 4 and
/// lane / 4 + 8, and columns 2 (lane % 4) and 2 (lane % 4) + 1 of each eight columns of o.
template <class T, int Width, int RowWarps, bool Plain>
struct WarpRows {
  using Tile = DecodeTile<Width, RowWarps, Plain>;
  using Layout = split_kv::Layout<T, Width, RowWarps, Plain>;
  std::uint32_t q[Tile::shared_q ? 1 : Width / 16][4];
  float o[Width / 8][4] = {};
  float maximum[2] = {no_maximum<float>, no_maximum<float>};
  float sum[2] = {};  // over this lane's keys
  // Other than plain kernels have less than 2^31 keys, and no registers to spare.
  using Index = std::conditional_t<Plain, std::int64_t, int>;
  Index seen[2];  // end of the keys that each row sees

  __device__ __forceinline__ void load(const Heads<T>& p, std::int64_t b, std::int64_t g,
                                       const KeyMask<std::int64_t>& mask, std::int64_t first_row,
                                       std::int64_t rows) {
    const int lane = lane_of_thread();
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::int64_t at = first_row + lane / 4 + 8 * r;
      const bool exists = at < rows;
      const Row<T> row(p, b, g, exists ? at : 0);
      seen[r] = static_cast<Index>(exists ? mask.end_key(row.i) : 0);
      if constexpr (!Tile::shared_q) {
        const T* const from = Plain ? &p.q(b, row.h, row.i, 0) : p.q_of(b).at(row.h).at(row.i).data;
#pragma unroll
        for (int d = 0; d < Width / 16; ++d) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            std::uint32_t pair = 0;
#pragma unroll
            for (int i = 0; i < 2; ++i) {
              const std::int64_t column = d * 16 + half * 8 + lane % 4 * 2 + i;
              if (exists && column < p.width()) {
                pair |= std::uint32_t{from[column * p.q.strides[3]].bits} << 16 * i;
              }
            }
            q[d][2 * half + r] = pair;
          }
        }
      }
    }
  }

  /// Returns the fragment of columns [16 d, 16 d + 16) of q; `row` is the warp's first in shared
  /// memory.
  __device__ __forceinline__ void load_q(const Layout& layout, int row, int d,
                                         std::uint32_t (&fragment)[4]) const {
    if constexpr (Tile::shared_q) {
      const int lane = lane_of_thread();
      ptx::load_matrix<4>(fragment, &layout.q.at[row + lane % 16][d * 16 + lane / 16 * 8]);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) fragment[i] = q[d][i];
    }
  }

  /// Adds keys [from, from + 16 Steps) of a stage; key `from` has index `j` in the batch element.
  /// `factor` scales scores to exponents of 2. `Masked`: some rows do not see all of these keys: a
  /// row sees the last `window` keys before its `seen`. `row` is the first of these rows in the
  /// tile, `b` the batch element.
  template <int Steps, bool Masked>
  __device__ __forceinline__ void add_keys(const Heads<T>& p, const Layout& layout, int at_stage,
                                           int from, int row, std::int64_t b, Index j, float factor,
                                           Index window) {
    const auto& stage = layout.stages[at_stage];
    const int lane = lane_of_thread();
    float scores[2 * Steps][4] = {};
    // Rows of K are columns of the product: load two matrices of 8 keys for each of two groups of 8
    // elements.
    const T* const k = &stage.k[from + lane % 8 + lane / 16 * 8][lane / 8 % 2 * 8];
#pragma unroll
    for (int d = 0; d < Width / 16; ++d) {
      std::uint32_t fragment[4];
      load_q(layout, row, d, fragment);
#pragma unroll
      for (int step = 0; step < Steps; ++step) {
        std::uint32_t words[4];
        ptx::load_matrix<4>(words, k + step * 16 * (Width + 8) + d * 16);
        ptx::mma<T>(scores[2 * step], fragment, {words[0], words[1]});
        ptx::mma<T>(scores[2 * step + 1], fragment, {words[2], words[3]});
      }
    }
    if constexpr (!Plain) {
      if (!p.rule.is_plain()) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const RowIndices at = layout.of.rows[row + lane / 4 + 8 * r];
#pragma unroll
          for (int n = 0; n < 2 * Steps; ++n) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
              const Index key = j + n * 8 + lane % 4 * 2 + i;
              if (Masked && key >= seen[r]) continue;  // has no bias
              float& score = scores[n][2 * r + i];
              score = p.rule(score, b, at.h, at.i, key, at.diagonal);
            }
          }
        }
      }
    }
    if constexpr (Masked) {
#pragma unroll
      for (int n = 0; n < 2 * Steps; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const Index key = j + n * 8 + lane % 4 * 2 + i % 2;
          if (key < seen[i / 2] - window || key >= seen[i / 2]) {
            scores[n][i] = -std::numeric_limits<float>::infinity();
          }
        }
      }
    }
    float larger[2] = {maximum[0], maximum[1]};
#pragma unroll
    for (int n = 0; n < 2 * Steps; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) larger[i / 2] = fmaxf(larger[i / 2], scores[n][i]);
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      larger[r] = fmaxf(larger[r], shuffle_xor(larger[r], 1));
      larger[r] = fmaxf(larger[r], shuffle_xor(larger[r], 2));
    }
    // The maximum rarely rises after the first tiles, so the rescale is skipped if no row needs it.
    if (__any_sync(all_lanes, larger[0] != maximum[0] || larger[1] != maximum[1])) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float rescale = ptx::fast_exp2((maximum[r] - larger[r]) * factor);
        maximum[r] = larger[r];
        sum[r] *= rescale;
#pragma unroll
        for (int n = 0; n < Width / 8; ++n) {
          o[n][2 * r] *= rescale;
          o[n][2 * r + 1] *= rescale;
        }
      }
    }
#pragma unroll
    for (int n = 0; n < 2 * Steps; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        scores[n][i] = ptx::fast_exp2((scores[n][i] - maximum[i / 2]) * factor);
        sum[i / 2] += scores[n][i];
      }
    }
    // Rows of V are rows of the product: ldmatrix transposes the matrices.
    const T* const v = &stage.v[from + lane % 8 + lane / 8 % 2 * 8][lane / 16 * 8];
#pragma unroll
    for (int step = 0; step < Steps; ++step) {
      const float(&low)[4] = scores[2 * step];
      const float(&high)[4] = scores[2 * step + 1];
      const std::uint32_t weights[4] = {
          pack_halves<T>(low[0], low[1]), pack_halves<T>(low[2], low[3]),
          pack_halves<T>(high[0], high[1]), pack_halves<T>(high[2], high[3])};
      const Index key = j + step * 16;
      const unsigned within[2] = {
          bits_before(seen[0] - key) & ~bits_before(seen[0] - window - key),
          bits_before(seen[1] - key) & ~bits_before(seen[1] - window - key)};
#pragma unroll
      for (int n = 0; n < Width / 8; n += 2) {
        std::uint32_t words[4];
        ptx::load_matrix<4, true>(words, v + step * 16 * (Width + 8) + n * 8);
        std::uint32_t left[2] = {words[0], words[1]};
        std::uint32_t right[2] = {words[2], words[3]};
        if constexpr (Masked) {
          hide_unseen<T>(left, within, o[n]);
          hide_unseen<T>(right, within, o[n + 1]);
        }
        ptx::mma<T>(o[n], weights, left);
        ptx::mma<T>(o[n + 1], weights, right);
      }
    }
  }
};

/// Stores a tile of q, rows and columns that do not exist as zeros.
template <class T, int Width, int RowWarps, bool Plain>
__device__ __forceinline__ void store_queries(const Heads<T>& p, std::int64_t b, std::int64_t g,
                                              std::int64_t first_row, std::int64_t rows,
                                              Layout<T, Width, RowWarps, Plain>& layout) {
  for (int r = static_cast<int>(threadIdx.x) / warp_size; r < warp_rows * RowWarps; r += warps) {
    const bool exists = first_row + r < rows;
    const Row<T> row(p, b, g, exists ? first_row + r : 0);
    const View<const T, 1> from = (Plain ? p.q.at(b) : p.q_of(b)).at(row.h).at(row.i);
#pragma unroll
    for (int first = 0; first < Width; first += warp_size) {
      const int column = first + lane_of_thread();
      layout.q.at[r][column] = exists && column < p.width() ? from(column) : zero<T>();
    }
  }
}

/// Computes partial results of one tile of rows and one split. RowWarps warps own 16 rows each; 4 /
/// RowWarps warps share the keys of a tile.
template <class T, int Width, int RowWarps, bool Plain>
__device__ __forceinline__ void multiply_tile(const Heads<T>& p, const Cut<float>& cut,
                                              const ElementRows& rows, std::int64_t b,
                                              std::int64_t g, int split, std::int64_t row_tile,
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
  const std::int64_t first_row = row_tile * Tile::rows;
  const std::int64_t last_row = smaller(first_row + Tile::rows, rows.count) - 1;
  const auto mask = p.mask(b);
  const std::int64_t end_of_first = mask.end_key(first_row / p.group);
  const std::int64_t first_of_last = mask.first_key(last_row / p.group);
  const SplitKeys own(p, mask, first_row, last_row, split, cut.splits, key_tile);
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
      const Row<T> row(p, b, g, r < rows.count ? r : 0);
      layout.of.rows[threadIdx.x] = {row.h, row.i, mask.diagonal(row.i)};
    }
    __syncthreads();
  }
#pragma unroll
  for (int stage = 0; stage < stages - 1; ++stage) {
    copies.fetch(own.first + stage * key_tile, stage);
  }
  const int warp_row = warp % RowWarps * warp_rows;
  WarpRows<T, Width, RowWarps, Plain> mine;
  mine.load(p, b, g, mask, first_row + warp_row, rows.count);
  if constexpr (Tile::shared_q) store_queries(p, b, g, first_row, rows.count, layout);
  const float factor = unit_of<Plain>(p.rule).exponent;
  using Index = typename WarpRows<T, Width, RowWarps, Plain>::Index;
  const auto window = static_cast<Index>(p.window > 0 ? p.window : p.keys());
  const int from = warp / RowWarps * warp_keys;
  int stage = 0;
  for (std::int64_t first = own.first; first < own.end; first += key_tile) {
    ptx::async_wait<stages - 2>();
    __syncthreads();  // the tile is complete and the previous one has been read
    if constexpr (!Plain) {
      const std::int64_t later = first + stages * key_tile;
      offsets.store(later, stage);
      offsets.load(later + key_tile);
    }
    copies.fetch(first + (stages - 1) * key_tile, stage == 0 ? stages - 1 : stage - 1);
    const bool masked = first + key_tile > end_of_first || first < first_of_last;
#pragma unroll 1
    for (int key = from; key < from + warp_keys; key += 16 * steps) {
      const auto j = static_cast<Index>(first + key);
      if (masked) {
        mine.template add_keys<steps, true>(p, layout, stage, key, warp_row, b, j, factor, window);
      } else {
        mine.template add_keys<steps, false>(p, layout, stage, key, warp_row, b, j, factor, window);
      }
    }
    stage = stage == stages - 1 ? 0 : stage + 1;
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    mine.sum[r] += shuffle_xor(mine.sum[r], 1);
    mine.sum[r] += shuffle_xor(mine.sum[r], 2);
  }

  if constexpr (key_warps == 1) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::int64_t row = first_row + warp * warp_rows + lane / 4 + 8 * r;
      if (row >= rows.count) continue;
      const RowResult<Plain, T> result(p, cut, rows, b, g, row, split, mine.maximum[r], mine.sum[r],
                                       lane % 4 == 0);
#pragma unroll
      for (int at_o = 0; at_o < Width / 4; ++at_o) {
        const int column = at_o / 2 * 8 + lane % 4 * 2 + at_o % 2;
        if (column < p.value_width()) result.write(column, mine.o[at_o / 2][2 * r + at_o % 2]);
      }
    }
  } else {
    static_assert(RowWarps == 1);
    Exchange<Width>& exchange = layout.exchange;
    ptx::async_wait_all();
    __syncthreads();  // the stages have been read
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (lane % 4 != 0) continue;
      exchange.maximum[warp][lane / 4 + 8 * r] = mine.maximum[r];
      exchange.sum[warp][lane / 4 + 8 * r] = mine.sum[r];
    }
#pragma unroll
    for (int at_o = 0; at_o < Width / 2; ++at_o) {
      exchange.weighted[warp][lane / 4 + at_o % 4 / 2 * 8][at_o / 4 * 8 + lane % 4 * 2 + at_o % 2] =
          mine.o[at_o / 4][at_o % 4];
    }
    __syncthreads();
    for (int row = warp; row < warp_rows && first_row + row < rows.count; row += warps) {
      const Combined<warps, float> found([&](int w) { return exchange.maximum[w][row]; },
                                         [&](int w) { return exchange.sum[w][row]; }, factor);
      const RowResult<Plain, T> result(p, cut, rows, b, g, first_row + row, split, found.maximum,
                                       found.sum, lane == 0);
      for (int column = lane; column < p.value_width(); column += warp_size) {
        float value = 0;
#pragma unroll
        for (int w = 0; w < warps; ++w) {
          value += found.part[w] * exchange.weighted[w][row][column];
        }
        result.write(column, value);
      }
    }
  }
}

/// Blocks of one head and split are adjacent: the second row tile finds K and V in L2.
template <class T, int Width, int RowWarps, bool Plain>
__global__ void __launch_bounds__(threads, DecodeTile<Width, RowWarps, Plain>::blocks_per_sm)
    attention_split_kv(Heads<T> p, Cut<float> cut) {
  start_dependent();
  auto& layout = shared<Layout<T, Width, RowWarps, Plain>>();
  std::int64_t at = blockIdx.x;
  const int row_tile = static_cast<int>(at % cut.row_tiles);
  at /= cut.row_tiles;
  const int split = static_cast<int>(at % cut.splits);
  at /= cut.splits;
  const std::int64_t g = at % p.kv_heads();
  const std::int64_t b = at / p.kv_heads();
  const ElementRows rows = rows_of<Plain>(p, cut, b);
  if constexpr (Plain) {
    multiply_tile(p, cut, rows, b, g, split, row_tile, layout);
  } else {
    constexpr int tile_rows = warp_rows * RowWarps;
    for (std::int64_t tile = row_tile; tile * tile_rows < rows.count; tile += cut.row_tiles) {
      multiply_tile(p, cut, rows, b, g, split, tile, layout);
      __syncthreads();  // the layout has been read
    }
  }
}

}  // namespace rung::attention_cuda::inline RUNG_TARGET::split_kv
