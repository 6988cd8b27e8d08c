// SPDX-License-Identifier: Apache-2.0
// WarpRows: 16 stacked rows of queries in a warp's registers, and their products with keys and
// values in shared memory. split_kv_decode and split_kv_stream share it.
#pragma once

#include "rung/device/ptx/matrix.hpp"
#include "rung/device/tile/accumulator.hpp"
#include "rung/ops/attention/cuda/shapes/split_kv.cuh"

namespace rung::attention_cuda::inline RUNG_TARGET::split_kv {

constexpr int warps = 4;       // that multiply
constexpr int warp_rows = 16;  // of mma.m16n8k16

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

/// Columns of fragments. Of e4m3 keys and values, ldmatrix, made for 16-bit elements, gives a lane
/// four adjacent elements of a key: columns are permuted within each 16, in both operands alike.
template <class K>
struct Columns {
  static constexpr bool permuted = std::is_same_v<K, e4m3>;

  /// Returns the column of element i of half `half` of the operand's step d in lane 4 n + t.
  static __device__ __forceinline__ int of_q(int d, int half, int t, int i) {
    return 16 * d + (permuted ? 4 * t + 2 * half : 8 * half + 2 * t) + i;
  }
  /// Returns the place of a column of q in shared memory, so that ldmatrix loads fragments of q.
  static __device__ __forceinline__ int place_of_q(int column) {
    if (!permuted) return column;
    return column / 16 * 16 + column / 2 % 2 * 8 + column / 4 % 4 * 2 + column % 2;
  }
  /// Returns the column of element i (of two) of accumulator n of o in lane 4 m + t.
  static __device__ __forceinline__ int of_o(int n, int t, int i) {
    return permuted ? n / 2 * 16 + 4 * t + 2 * i + n % 2 : 8 * n + 2 * t + i;
  }
};

/// The part of a warp's rows that is in shared memory, from its first row on.
template <class T, int Width>
struct SharedRows {
  const T (*q)[Width + 8];    // 16 bytes of padding: rows of a matrix in different banks
  const RowIndices* indices;  // for the rule of the scores
};

/// 16 rows of q and their running maxima, sums and weighted values. A lane holds rows lane / 4 and
/// lane / 4 + 8, and two columns of each eight of o (Columns). With SharedQ, q is in shared memory
/// instead of registers. Index: of keys.
template <class T, class K, int Width, bool SharedQ, bool Plain, class Index>
struct WarpRows {
  std::uint32_t q[SharedQ ? 1 : Width / 16][4];
  float o[Width / 8][4] = {};
  float maximum[2] = {no_maximum<float>, no_maximum<float>};
  float sum[2] = {};  // over this lane's keys
  Index seen[2];      // end of the keys that each row sees

  /// Finds the keys that the rows from first_row on see.
  __device__ __forceinline__ void find_seen(const Divisor& by_group,
                                            const KeyMask<std::int64_t>& mask,
                                            std::int64_t first_row, std::int64_t rows) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::int64_t at = first_row + lane_of_thread() / 4 + 8 * r;
      const std::uint32_t token = by_group.quotient(static_cast<std::uint32_t>(at));
      seen[r] = static_cast<Index>(at < rows ? mask.end_key(token) : 0);
    }
  }

  /// Loads q from shared memory into registers.
  __device__ __forceinline__ void load_q_registers(const T (*from)[Width + 8]) {
    static_assert(!SharedQ);
    const int lane = lane_of_thread();
#pragma unroll
    for (int d = 0; d < Width / 16; ++d) {
      ptx::load_matrix<4>(q[d], &from[lane % 16][d * 16 + lane / 16 * 8]);
    }
  }

  /// Finds the keys that the rows see, and loads q from global memory into registers.
  __device__ __forceinline__ void load(const Heads<T, K>& p, const Divisor& by_group,
                                       std::int64_t b, std::int64_t g,
                                       const KeyMask<std::int64_t>& mask, std::int64_t first_row,
                                       std::int64_t rows) {
    const int lane = lane_of_thread();
    find_seen(by_group, mask, first_row, rows);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::int64_t at = first_row + lane / 4 + 8 * r;
      const bool exists = at < rows;
      const Row<T> row(by_group, b, g, exists ? at : 0);
      if constexpr (!SharedQ) {
        const T* const from = Plain ? &p.q(b, row.h, row.i, 0) : p.q_of(b).at(row.h).at(row.i).data;
#pragma unroll
        for (int d = 0; d < Width / 16; ++d) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            std::uint32_t pair = 0;
#pragma unroll
            for (int i = 0; i < 2; ++i) {
              const std::int64_t column = Columns<K>::of_q(d, half, lane % 4, i);
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

  /// Returns the fragment of columns [16 d, 16 d + 16) of q.
  __device__ __forceinline__ void load_q(const SharedRows<T, Width>& shared, int d,
                                         std::uint32_t (&fragment)[4]) const {
    if constexpr (SharedQ) {
      const int lane = lane_of_thread();
      ptx::load_matrix<4>(fragment, &shared.q[lane % 16][d * 16 + lane / 16 * 8]);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) fragment[i] = q[d][i];
    }
  }

  /// Adds keys [from, from + 16 Steps) of a tile of batch element `b`; key `from` is key `j` of it.
  /// tile.load_k(words, key, d) loads the fragments of keys [key, key + 8) and [key + 8, key + 16)
  /// in columns [16 d, 16 d + 16); tile.load_v(words, key, n) those of columns [8 n, 8 n + 8) and
  /// [8 n + 8, 8 n + 16) of values [key, key + 16). `factor` scales scores to exponents of 2.
  /// `Masked`: some rows do not see all of these keys: a row sees the last `window` keys before its
  /// `seen`.
  template <int Steps, bool Masked, class Tile>
  __device__ __forceinline__ void add_keys(const ScoreRule<float>& rule,
                                           const SharedRows<T, Width>& shared, const Tile& tile,
                                           int from, std::int64_t b, Index j, float factor,
                                           Index window) {
    const int lane = lane_of_thread();
    float scores[2 * Steps][4] = {};
#pragma unroll
    for (int d = 0; d < Width / 16; ++d) {
      std::uint32_t fragment[4];
      load_q(shared, d, fragment);
#pragma unroll
      for (int step = 0; step < Steps; ++step) {
        std::uint32_t words[4];
        tile.load_k(words, from + step * 16, d);
        ptx::mma<T>(scores[2 * step], fragment, {words[0], words[1]});
        ptx::mma<T>(scores[2 * step + 1], fragment, {words[2], words[3]});
      }
    }
    if constexpr (!Plain) {
      if (!rule.is_plain()) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const RowIndices at = shared.indices[lane / 4 + 8 * r];
#pragma unroll
          for (int n = 0; n < 2 * Steps; ++n) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
              const Index key = j + n * 8 + lane % 4 * 2 + i;
              if (Masked && key >= seen[r]) continue;  // has no bias
              float& score = scores[n][2 * r + i];
              score = rule(score, b, at.h, at.i, key, at.diagonal);
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
        tile.load_v(words, from + step * 16, n);
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

  /// Adds up the sums of the four lanes that share rows.
  __device__ __forceinline__ void finish_sums() {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      sum[r] += shuffle_xor(sum[r], 1);
      sum[r] += shuffle_xor(sum[r], 2);
    }
  }
};

/// Stores rows first, first + step ... below `count` of q, counted from first_row; rows and columns
/// that do not exist as zeros. A warp calls it.
template <bool Plain, class T, class K, int Width>
__device__ __forceinline__ void store_queries(const Heads<T, K>& p, const Divisor& by_group,
                                              std::int64_t b, std::int64_t g,
                                              std::int64_t first_row, std::int64_t rows, int first,
                                              int step, int count, T (*to)[Width + 8]) {
#pragma unroll 4
  for (int r = first; r < count; r += step) {
    const bool exists = first_row + r < rows;
    const Row<T> row(by_group, b, g, exists ? first_row + r : 0);
    const View<const T, 1> from = (Plain ? p.q.at(b) : p.q_of(b)).at(row.h).at(row.i);
#pragma unroll
    for (int start = 0; start < Width; start += warp_size) {
      const int column = start + lane_of_thread();
      to[r][Columns<K>::place_of_q(column)] =
          exists && column < p.width() ? from(column) : zero<T>();
    }
  }
}

// --- on the host ---------------------------------------------------------------------------------

/// Returns the width, 64, 128 or 256, to which kernels pad D and Dv.
inline int padded_width(const Attention::Args& args) {
  const std::int64_t widest = larger(args.width(), args.value_width());
  return widest <= 64 ? 64 : widest <= 128 ? 128 : 256;
}

/// Calls f<Tile<width, row_warps, plain>>(); row_warps is 1 or `warps`.
template <template <int, int, bool> class Tile, class F>
void with_split_tile(int width, int row_warps, bool plain, F&& f) {
  const auto of_width = [&]<int Width>() {
    if (row_warps == 1) {
      plain ? f.template operator()<Tile<Width, 1, true>>()
            : f.template operator()<Tile<Width, 1, false>>();
    } else {
      plain ? f.template operator()<Tile<Width, warps, true>>()
            : f.template operator()<Tile<Width, warps, false>>();
    }
  };
  if (width == 64) return of_width.template operator()<64>();
  if (width == 128) return of_width.template operator()<128>();
  of_width.template operator()<256>();
}

}  // namespace rung::attention_cuda::inline RUNG_TARGET::split_kv
