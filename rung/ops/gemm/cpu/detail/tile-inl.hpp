// SPDX-License-Identifier: Apache-2.0
//
// The micro-kernel: one tile of C, `rows` x `vectors`, stays in registers through k rank-1 updates
//
//   C[rows x vectors*lanes] = alpha * A[rows x k] * B[k x vectors*lanes] + beta * C
//
// An FMA has a latency of 4 cycles and two start in each, so at least 8 accumulators are needed;
// more of them raise the arithmetic done per load. With 32 registers (AVX-512) 14 x 2 accumulators
// leave two for a row of B and one for a broadcast element of A: 16 loads against 28 FMAs, 8 cycles
// of load ports in the shadow of 14 cycles of FMA. With 16 registers (AVX2) the same reasoning
// gives 6 x 2. Measured on a 2-core Zen 5 vCPU: 14x32, 12x32, 6x64 and 8x48 all reach 99 % of the
// peak; AVX2 6x16 99 %, 4x24 only 70 %.
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

// The most rows of a tile two vectors wide, the one for general use, and of one a vector wide. A
// narrow tile has no second FMA for a broadcast: it reads rows + 1 operands for `rows` FMAs, and so
// wants rows.
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

// One rank-1 update. Strided rows of A are addressed in groups of three from one moving pointer (p,
// p + s, p + 2s): 14 row pointers would not fit in the 16 general registers.
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
        asm("" : "+r"(a));  // or the compiler keeps every row's address alive, and spills them
      }
    }
#pragma GCC unroll 8
    for (int j = 0; j < vectors; ++j) acc[i][j] = hn::MulAdd(element, b[j], acc[i][j]);
  }
}

// beta == 0 must not read C: it may hold NaN.
template <int rows, int vectors, class D, class T = hn::TFromD<D>, class V = hn::Vec<D>>
HWY_INLINE void write_tile(D d, const TileArgs<T>& t, hn::Mask<D> last, V (&acc)[rows][vectors]) {
  const V alpha = hn::Set(d, t.alpha);
  const bool partial = t.columns != vectors * lanes<T>();
  const std::int64_t c_row = t.c_row;  // once: stores of vectors may alias anything
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
  // AMD's AVX2 masked stores take some 20 micro-operations: only the tiles that need them pay.
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

// What is left of an background_packing.
template <class T, int rows, int vectors>
struct RunningErrand {
  InterleavedPacking<T> left;

  HWY_INLINE explicit RunningErrand(const InterleavedPacking<T>* background_packing)
      : left(background_packing != nullptr ? *background_packing : InterleavedPacking<T>{}) {}

  HWY_INLINE void run() {
    const Full<T> d;
    constexpr int line = 64 / static_cast<int>(sizeof(T));
    constexpr int width = vectors * lanes<T>();
    for (int i = 0; i < left.lines; ++i, left.soon += line) __builtin_prefetch(left.soon, 0, 2);
    for (int row = 0; row < left.rows; ++row) {
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j) {
        hn::StoreU(hn::LoadU(d, left.row_from + j * lanes<T>()), d, left.row_to + j * lanes<T>());
        // The strip after it, in the same row: of each page two lines are read, and no hardware
        // predicts the next. Where rows begin within a line it is three: the first has been asked
        // for by the strip before, so that each vector's last element is what to ask for (1000
        // cubed, 2-core Zen 4 vCPU: 105 to 111 GFLOP/s).
        __builtin_prefetch(left.row_from + (vectors + j + 1) * lanes<T>() - 1, 0, 2);
      }
      // Some of that is gone from L2 again, the more the busier the neighbors are: all lines of a
      // row soon to come, those that it shares with other strips among them (same CPU, busy: 1000
      // cubed +11 %, without the first line, or without the others, +2 to +3 %; 1024 cubed, whose
      // rows begin with a line, +1 %). Two and eight rows ahead are as good; 2048 cubed is 2 %
      // slower with this alone.
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

// Sums of each element of C: a tile of one to four vectors would wait for its FMAs, four cycles
// each; several k at a time, each with sums of its own, hide that (f32 1x1x36: 50 to 27 ns on a
// 2-core Zen 5 vCPU).
template <int accumulators>
constexpr int chains_of = accumulators <= 2   ? 4
                          : accumulators <= 4 ? 2
                                              : 1;

// Where C is when a tile begins: in the L1 cache already, or to be fetched meanwhile.
enum class Distance { near, far };

// What brings A and B from L2 into L1: the hardware, left to itself, or asked by the tile. Asked,
// on a 2-core Emerald Rapids vCPU: f32 2048 cubed 149 to 159 GFLOP/s (oneDNN 163), 4096 cubed from
// .90 to .985 of oneDNN, f64 2048 cubed from .96 to 1.02 of the best peer. 8 and 32 steps ahead:
// half a percent to two less.
enum class Fetching { left, asked };
constexpr int steps_ahead = 16;

// In step q of a turn of packing_steps: the lines of packed A and B that are read steps_ahead steps
// later. a is where the turn begins.
template <int rows, int vectors, class T>
HWY_INLINE void ask_for_step(const T* a, const T* b, int q) {
  constexpr int line = 64 / static_cast<int>(sizeof(T));
  constexpr int a_lines = rows * packing_steps / line;  // of a turn
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

template <class T, int rows, int vectors, Source a_source, Source b_source, Distance distance,
          Fetching fetching>
void tile(const TileArgs<T>& t) {
  const Full<T> d;
  using V = hn::Vec<Full<T>>;
  const auto last = hn::FirstN(d, static_cast<size_t>(t.columns - (vectors - 1) * lanes<T>()));
  constexpr int chains = chains_of<rows * vectors>;
  V acc[rows][vectors];
  V more[chains][rows][vectors];  // of the later k of each turn; [0] is not used
#pragma GCC unroll 32
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < vectors; ++j) {
      acc[i][j] = hn::Zero(d);
#pragma GCC unroll 4
      for (int c = 1; c < chains; ++c) more[c][i][j] = hn::Zero(d);
    }
  }
  const T* a = t.a;
  const T* b = t.b;
  const int64_t a_row = a_source == Source::packed ? 1 : t.a_row;
  const int64_t a_column = a_source == Source::packed ? rows : t.a_column;
  const int64_t b_row = b_source == Source::packed ? vectors * lanes<T>() : t.b_row;
  const auto step = [&](V(&sums)[rows][vectors]) HWY_ATTR {
    V row[vectors];
    load_b_row<vectors, b_source>(d, b, last, row);
    update<rows, vectors, a_source>(d, a, a_row, row, sums);
    a += a_column;
    b += b_row;
  };
  const auto advance = [&](std::int64_t steps) HWY_ATTR {
    if constexpr (chains > 1) {
      for (; steps >= chains; steps -= chains) {
        step(acc);
#pragma GCC unroll 4
        for (int c = 1; c < chains; ++c) step(more[c]);
      }
    }
    for (; steps > 0; --steps) step(acc);
  };
  if constexpr (distance == Distance::near) {
    advance(t.k);
  } else if constexpr (rows == tile_rows && a_source == Source::packed &&
                       b_source == Source::packed) {
    // The tile that nearly all of a large product goes through. C was last touched a block of k ago
    // and has left the near caches: it is fetched meanwhile, a line every few steps, which are
    // unrolled so that no inner loop's end is to be predicted (2-core Zen 5 vCPU, against the form
    // below: f32 4096 +1 %, f64 2048 +4 %), and just before the end: A and B that pass through L1
    // would drive it out again (tiles alone, 1024 and 2048 k: half a percent; a whole product: lost
    // in the noise). Left alone, the compiler mixes the steps and runs out of AVX2's 16 registers,
    // of which 15 are taken.
    constexpr int row_lines = vectors * sizeof(V) > 64 ? 2 : 1;
    constexpr int line_elements = 64 / static_cast<int>(sizeof(T));
    constexpr int in_time = 2;  // turns of the loop from the last line's fetching to its use
    const T* c = t.c;
    RunningErrand<T, rows, vectors> background_packing(t.background_packing);
    std::int64_t left = t.k;
    std::int64_t line =
        std::min<std::int64_t>(0, rows * row_lines + in_time - left / packing_steps);
    for (; left >= packing_steps; left -= packing_steps, ++line) {
      if (line >= 0 && line < rows * row_lines) {
        __builtin_prefetch(c + (line % row_lines + 1) * line_elements - 1, 1);
        if ((line + 1) % row_lines == 0) c += t.c_row;
      }
      background_packing.run();
#pragma GCC unroll 8
      for (int q = 0; q < packing_steps; ++q) {
        asm volatile("" : "+r"(a), "+r"(b));  // one step after the other
        if constexpr (fetching == Fetching::asked) ask_for_step<rows, vectors>(a, b, q);
        V row[vectors];
        load_b_row<vectors, b_source>(d, b + q * b_row, last, row);
        update<rows, vectors, a_source>(d, a + q * a_column, a_row, row, acc);
      }
      asm volatile("" : "+r"(a), "+r"(b));  // the last one, too: AVX2 +1 % to +2 %, a spill less
      a += packing_steps * a_column;
      b += packing_steps * b_row;
    }
    advance(left);
  } else {
    // C was last touched a block of k ago and has left the near caches: it is fetched meanwhile, a
    // row at a time. Asked for at once, 28 lines from memory occupy every miss buffer of the L1
    // cache for some 800 cycles, and A and B, which come from L2, stand still (-10 % at n = 2048).
    constexpr int line_elements = 64 / static_cast<int>(sizeof(T));
    const std::int64_t some = t.k / (rows + 4);
    const T* c = t.c;
    for (int i = 0; i < rows && some > 0; ++i, c += t.c_row) {
      __builtin_prefetch(c + line_elements - 1, 1);
      if constexpr (vectors * sizeof(V) > 64) __builtin_prefetch(c + 2 * line_elements - 1, 1);
      advance(some);
    }
    advance(t.k - rows * some);
  }
#pragma GCC unroll 4
  for (int c = 1; c < chains; ++c) {
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < vectors; ++j) acc[i][j] = hn::Add(acc[i][j], more[c][i][j]);
    }
  }
  write_tile<rows, vectors>(d, t, last, acc);
}

// Only the tile of most rows is worth two versions.
constexpr Fetching of_rows(int rows, Fetching fetching) {
  return rows == tile_rows ? fetching : Fetching::left;
}

// The kernels for 1..max_rows rows, so that an edge costs what its rows cost: entry r - 1 does r
// rows.
template <class T, int max_rows, int vectors, Source a_source, Source b_source,
          Distance distance = Distance::far, Fetching fetching = Fetching::left>
TileFunction<T>* const* tile_table() {
  static constexpr auto table = []<int... r>(std::integer_sequence<int, r...>) {
    return std::array<TileFunction<T>*, max_rows>{
        &tile<T, r + 1, vectors, a_source, b_source, distance, of_rows(r + 1, fetching)>...};
  }
  (std::make_integer_sequence<int, max_rows>());
  return table.data();
}

}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
