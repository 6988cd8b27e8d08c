// SPDX-License-Identifier: Apache-2.0
//
// Building blocks of micro-kernels: the size of a register tile, the load of a row of B, one rank-1
// update, and the store of the sums. The rungs contain the loop over k.
//
//   C[rows x vectors*lanes] = alpha * A[rows x k] * B[k x vectors*lanes] + beta * C
//
#if defined(RUNG_OPS_GEMM_CPU_TILE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_GEMM_CPU_TILE_INL_HPP_
#undef RUNG_OPS_GEMM_CPU_TILE_INL_HPP_
#else
#define RUNG_OPS_GEMM_CPU_TILE_INL_HPP_
#endif

#include <hwy/highway.h>

#include <array>
#include <cstdint>
#include <utility>

#include "rung/ops/gemm/cpu/detail/engine.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Full = hn::ScalableTag<T>;  // the widest vector of the target

template <class T>
constexpr int lanes() {
  return static_cast<int>(HWY_LANES(T));
}

// Maximum rows of a general tile, two vectors wide, and of a narrow tile, one vector wide. A narrow
// tile reads rows + 1 operands per `rows` FMAs, so it needs more rows for the same ratio.
#if HWY_TARGET == HWY_AVX3
constexpr int tile_rows = 14;
constexpr int narrow_tile_rows = 24;
#elif HWY_TARGET == HWY_AVX2
constexpr int tile_rows = 6;
constexpr int narrow_tile_rows = 12;
#else
constexpr int tile_rows = 4;
constexpr int narrow_tile_rows = 4;
#endif

/// Loads a row of B; only the last vector of a strided row can be partial.
template <int vectors, Source b_source, class D, class T = hn::TFromD<D>, class V = hn::Vec<D>>
HWY_INLINE void load_b_row(D d, const T* b, hn::Mask<D> last, V (&row)[vectors]) {
#pragma GCC unroll 8
  for (int j = 0; j < vectors; ++j) {
    if (b_source == Source::strided && j == vectors - 1) {
      row[j] = hn::MaskedLoad(last, d, b + j * lanes<T>());
    } else {
      row[j] = hn::LoadU(d, b + j * lanes<T>());
    }
  }
}

/// Adds one rank-1 update. Strided rows of A are addressed in groups of three from one moving
/// pointer (p, p + s, p + 2s): 14 row pointers would not fit in the 16 general registers.
template <int rows, int vectors, Source a_source, class D, class T = hn::TFromD<D>,
          class V = hn::Vec<D>>
HWY_INLINE void update(D d, const T* a, int64_t a_row, const V (&b)[vectors],
                       V (&acc)[rows][vectors]) {
#pragma GCC unroll 32
  for (int i = 0; i < rows; ++i) {
    V element;
    if constexpr (a_source == Source::packed) {
      element = hn::Set(d, a[i]);
    } else {
      element = hn::Set(d, a[(i % 3) * a_row]);
      if (i % 3 == 2) {
        a += 3 * a_row;
        asm("" : "+r"(a));  // else the compiler keeps every row's address live and spills
      }
    }
#pragma GCC unroll 8
    for (int j = 0; j < vectors; ++j) acc[i][j] = hn::MulAdd(element, b[j], acc[i][j]);
  }
}

/// Stores alpha * acc + beta * C. With beta == 0, C is not read: it may hold NaN.
template <int rows, int vectors, class D, class T = hn::TFromD<D>, class V = hn::Vec<D>>
HWY_INLINE void write_tile(D d, const TileArgs<T>& t, hn::Mask<D> last, V (&acc)[rows][vectors]) {
  const V alpha = hn::Set(d, t.alpha);
  const bool partial = t.columns != vectors * lanes<T>();
  const std::int64_t c_row = t.c_row;  // hoisted: vector stores may alias t
  T* const to = t.c;
  if (t.beta != T{0}) {
    const V beta = hn::Set(d, t.beta);
#pragma GCC unroll 32
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j) {
        const T* c = to + i * c_row + j * lanes<T>();
        const V old = j == vectors - 1 && partial ? hn::MaskedLoad(last, d, c) : hn::LoadU(d, c);
        acc[i][j] = hn::MulAdd(old, beta, hn::Mul(acc[i][j], alpha));
      }
    }
  } else if (t.alpha != T{1}) {
#pragma GCC unroll 32
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j) acc[i][j] = hn::Mul(acc[i][j], alpha);
    }
  }
  // AVX2's masked store takes about 20 micro-operations on AMD: only partial tiles use it.
#pragma GCC unroll 32
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < vectors; ++j) {
      T* c = to + i * c_row + j * lanes<T>();
      if (j == vectors - 1 && partial) {
        hn::BlendedStore(acc[i][j], last, d, c);
      } else {
        hn::StoreU(acc[i][j], d, c);
      }
    }
  }
}

/// Progress of an InterleavedPacking while a tile runs; run() packs a part every packing_steps
/// steps of k.
template <class T, int rows, int vectors>
struct BackgroundPacking {
  InterleavedPacking<T> left;

  HWY_INLINE explicit BackgroundPacking(const InterleavedPacking<T>* work)
      : left(work != nullptr ? *work : InterleavedPacking<T>{}) {}

  HWY_INLINE void run() {
    const Full<T> d;
    constexpr int line = 64 / static_cast<int>(sizeof(T));
    constexpr int width = vectors * lanes<T>();
    for (int i = 0; i < left.lines; ++i, left.soon += line) __builtin_prefetch(left.soon, 0, 2);
    for (int row = 0; row < left.rows; ++row) {
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j) {
        hn::StoreU(hn::LoadU(d, left.row_from + j * lanes<T>()), d, left.row_to + j * lanes<T>());
        // Prefetch the same row of the next strip: a strip reads two lines per page, and the
        // hardware does not predict the next. If rows do not begin on line boundaries, a strip
        // covers three lines, of which the preceding strip has prefetched the first, so each
        // vector's last element is prefetched (1000 cubed, 2-core Zen 4 vCPU: 105 to 111 GFLOP/s).
        __builtin_prefetch(left.row_from + (vectors + j + 1) * lanes<T>() - 1, 0, 2);
      }
      // L2 evicts some of these lines, more of them when other cores are busy: all lines of the row
      // four ahead are prefetched again, including those shared with other strips (same CPU, busy:
      // 1000 cubed +11 %; with only the first line of the row, or all but the first, +2 to +3 %;
      // 1024 cubed, whose rows begin on line boundaries, +1 %). Two and eight rows ahead do as
      // well; without the first prefetch, 2048 cubed is 2 % slower.
      constexpr int rows_ahead = 4;
      const T* soon = left.row_from + rows_ahead * left.row_step;
#pragma GCC unroll 4
      for (int i = 0; i < width; i += line) __builtin_prefetch(soon + i, 0, 3);
      __builtin_prefetch(soon + width - 1, 0, 3);
      left.row_from += left.row_step;
      left.row_to += width;
    }
  }
};

constexpr int steps_ahead = 16;

/// Prefetches, in step q of packing_steps, the lines of packed A and B that are read steps_ahead
/// steps later. `a` is the address at step 0.
template <int rows, int vectors, class T>
HWY_INLINE void prefetch_step(const T* a, const T* b, int q) {
  constexpr int line = 64 / static_cast<int>(sizeof(T));
  constexpr int a_lines = rows * packing_steps / line;  // per packing_steps steps
#pragma GCC unroll 4
  for (int i = q * a_lines / packing_steps; i < (q + 1) * a_lines / packing_steps; ++i) {
    __builtin_prefetch(a + steps_ahead * rows + i * line, 0, 3);
  }
  constexpr int width = vectors * lanes<T>();
#pragma GCC unroll 4
  for (int i = 0; i < width; i += line) {
    __builtin_prefetch(b + (q + steps_ahead) * width + i, 0, 3);
  }
}

/// Independent accumulators per element of C. A tile of one to four vectors would stall on FMA
/// latency, four cycles; separate accumulators for several k hide it (f32 1x1x36: 50 to 27 ns on a
/// 2-core Zen 5 vCPU).
template <int accumulators>
constexpr int chains_of = accumulators <= 2   ? 4
                          : accumulators <= 4 ? 2
                                              : 1;

/// Returns the table of kernels, indexed by rows - 1: entry r - 1 is make.operator()<r>(), which
/// computes r rows.
template <class Function, int most, class Make>
Function* const* table_by_rows(Make) {
  static constexpr auto table = []<int... r>(std::integer_sequence<int, r...>) {
    return std::array<Function*, most>{Make().template operator()<r + 1>()...};
  }
  (std::make_integer_sequence<int, most>());
  return table.data();
}

}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
