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
constexpr int key_tile = 64;
constexpr int warp_rows = 16;  // of mma.m16n8k16

/// Ring of stages, by padded width of D and Dv. Enough bytes in flight hide the memory latency
/// (3.35 TB/s times 1 us are 25 KB per SM): up to three blocks per SM, each with all but one of its
/// stages in flight.
template <int Width>
struct Ring {
  static constexpr int stages = Width == 64 ? 4 : 3;
  static constexpr int blocks_per_sm = Width == 64 ? 3 : Width == 128 ? 2 : 1;
};

/// Stage of K and V. 16 bytes of padding put the rows of an 8 x 8 matrix into different banks.
template <class T, int Width>
struct Stage {
  T k[key_tile][Width + 8];
  T v[key_tile][Width + 8];
};

/// Exchange buffer for warps that share rows.
template <int Width>
struct Exchange {
  float maximum[warps][warp_rows];
  float sum[warps][warp_rows];
  float weighted[warps][warp_rows][Width + 4];
};

template <class T, int Width>
union Layout {
  Stage<T, Width> stages[Ring<Width>::stages];
  Exchange<Width> exchange;
};

/// Copies keys [first, first + 64) of K and V into a stage; keys from `end` on become zeros.
template <class T, int Width>
__device__ __forceinline__ void fetch(const Heads<T>& p, const T* k, const T* v, std::int64_t first,
                                      std::int64_t end, Stage<T, Width>& stage) {
  constexpr int chunk = 8;  // elements per 16 bytes
  constexpr int chunks = Width / chunk;
#pragma unroll
  for (int at = 0; at < key_tile * chunks / threads; ++at) {
    const int index = at * threads + static_cast<int>(threadIdx.x);
    const int row = index / chunks;
    const int column = index % chunks * chunk;
    const std::int64_t j = first + row;
    const bool of_k = j < end && column < p.width();
    const bool of_v = j < end && column < p.value_width();
    ptx::async_copy<16>(&stage.k[row][column], of_k ? k + j * p.k.strides[2] + column : k,
                        of_k ? 16 : 0);
    ptx::async_copy<16>(&stage.v[row][column], of_v ? v + j * p.v.strides[2] + column : v,
                        of_v ? 16 : 0);
  }
}

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
template <class T, int Width>
struct WarpRows {
  std::uint32_t q[Width / 16][4];
  float o[Width / 8][4] = {};
  float maximum[2] = {no_maximum<float>, no_maximum<float>};
  float sum[2] = {};     // over this lane's keys
  std::int64_t seen[2];  // end of the keys that each row sees

  __device__ __forceinline__ void load(const Heads<T>& p, std::int64_t b, std::int64_t g,
                                       const KeyMask<std::int64_t>& mask, std::int64_t first_row,
                                       std::int64_t rows) {
    const int lane = lane_of_thread();
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::int64_t at = first_row + lane / 4 + 8 * r;
      const bool exists = at < rows;
      const Row<T> row(p, b, g, exists ? at : 0);
      seen[r] = exists ? mask.end_key(row.i) : 0;
      const T* const from = &p.q(b, row.h, row.i, 0);
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

  /// Adds keys [from, from + 16 Steps) of a stage; key `from` has index `j` in the batch element.
  /// `factor` scales scores to exponents of 2. `Masked`: some rows do not see all of these keys: a
  /// row sees the last `window` keys before its `seen`.
  template <int Steps, bool Masked>
  __device__ __forceinline__ void add_keys(const Stage<T, Width>& stage, int from, std::int64_t j,
                                           float factor, std::int64_t window) {
    const int lane = lane_of_thread();
    float scores[2 * Steps][4] = {};
    // Rows of K are columns of the product: load two matrices of 8 keys for each of two groups of 8
    // elements.
    const T* const k = &stage.k[from + lane % 8 + lane / 16 * 8][lane / 8 % 2 * 8];
#pragma unroll
    for (int d = 0; d < Width / 16; ++d) {
#pragma unroll
      for (int step = 0; step < Steps; ++step) {
        std::uint32_t words[4];
        ptx::load_matrix<4>(words, k + step * 16 * (Width + 8) + d * 16);
        ptx::mma<T>(scores[2 * step], q[d], {words[0], words[1]});
        ptx::mma<T>(scores[2 * step + 1], q[d], {words[2], words[3]});
      }
    }
    if constexpr (Masked) {
#pragma unroll
      for (int n = 0; n < 2 * Steps; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const std::int64_t key = j + n * 8 + lane % 4 * 2 + i % 2;
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
      const std::int64_t key = j + step * 16;
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

/// Computes partial results of one split. RowWarps warps own 16 rows each; 4 / RowWarps warps share
/// the keys of a tile.
template <class T, int Width, int RowWarps>
__global__ void __launch_bounds__(threads, Ring<Width>::blocks_per_sm)
    attention_split_kv(Heads<T> p, Cut<float> cut) {
  constexpr int stages = Ring<Width>::stages;
  constexpr int key_warps = warps / RowWarps;
  constexpr int warp_keys = key_tile / key_warps;
  // Two groups of 16 keys per step overlap their products; at 256 columns, q and o leave registers
  // for only one.
  constexpr int steps = warp_keys >= 32 && Width < 256 ? 2 : 1;
  start_dependent();
  auto& layout = shared<Layout<T, Width>>();
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const int lane = lane_of_thread();
  // Blocks of one head and split are adjacent: the second row tile finds K and V in L2.
  std::int64_t at = blockIdx.x;
  const int row_tile = static_cast<int>(at % cut.row_tiles);
  at /= cut.row_tiles;
  const int split = static_cast<int>(at % cut.splits);
  at /= cut.splits;
  const std::int64_t g = at % p.kv_heads();
  const std::int64_t b = at / p.kv_heads();
  const std::int64_t tile_rows = RowWarps * warp_rows;
  const std::int64_t first_row = row_tile * tile_rows;
  const std::int64_t last_row = smaller(first_row + tile_rows, cut.rows) - 1;
  const auto mask = p.mask(b);
  const std::int64_t end_of_first = mask.end_key(first_row / p.group);
  const std::int64_t first_of_last = mask.first_key(last_row / p.group);
  const SplitKeys own(p, mask, first_row, last_row, split, cut.splits, key_tile);
  const T* const k = own.end == 0 ? nullptr : &p.k(b, g, 0, 0);
  const T* const v = own.end == 0 ? nullptr : &p.v(b, g, 0, 0);

#pragma unroll
  for (int stage = 0; stage < stages - 1; ++stage) {
    const std::int64_t first = own.first + stage * key_tile;
    if (first < own.end) fetch(p, k, v, first, own.end, layout.stages[stage]);
    ptx::async_commit();
  }
  WarpRows<T, Width> mine;
  mine.load(p, b, g, mask, first_row + warp % RowWarps * warp_rows, cut.rows);
  const float factor = p.rule.scale * log2_e<float>;
  const std::int64_t window = p.window > 0 ? p.window : p.keys();
  const int from = warp / RowWarps * warp_keys;
  int stage = 0;
  for (std::int64_t first = own.first; first < own.end; first += key_tile) {
    ptx::async_wait<stages - 2>();
    __syncthreads();  // the tile is complete and the previous one has been read
    const std::int64_t next = first + (stages - 1) * key_tile;
    const int free_stage = stage == 0 ? stages - 1 : stage - 1;
    if (next < own.end) fetch(p, k, v, next, own.end, layout.stages[free_stage]);
    ptx::async_commit();
    const bool masked = first + key_tile > end_of_first || first < first_of_last;
#pragma unroll 1
    for (int key = from; key < from + warp_keys; key += 16 * steps) {
      const std::int64_t j = first + key;
      if (masked) {
        mine.template add_keys<steps, true>(layout.stages[stage], key, j, factor, window);
      } else {
        mine.template add_keys<steps, false>(layout.stages[stage], key, j, factor, window);
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
      if (row >= cut.rows) continue;
      const RowResult<T> result(p, cut, b, g, row, split, mine.maximum[r], mine.sum[r],
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
    for (int row = warp; row < warp_rows && first_row + row < cut.rows; row += warps) {
      const Combined<warps, float> found([&](int w) { return exchange.maximum[w][row]; },
                                         [&](int w) { return exchange.sum[w][row]; }, factor);
      const RowResult<T> result(p, cut, b, g, first_row + row, split, found.maximum, found.sum,
                                lane == 0);
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

}  // namespace rung::attention_cuda::inline RUNG_TARGET::split_kv
