// SPDX-License-Identifier: Apache-2.0
// gemm / packed SIMD, one thread
//
// Idea     Both operands are packed, block by block, into the order in which a micro-kernel reads
//          them, which keeps a 14 x 32 tile of C (AVX-512) in registers. Five loops around it
//          select the blocks: columns of B for L3, steps of k, rows of A for L2, strips of B for
//          L1, and tiles.
// Changes  against packed_b: A is packed too, in blocks that stay in L2 while many strips of B, in
//          L3, stream past; every type, stride and epilogue is supported. A kernel per number of
//          rows and vectors avoids wasted work at edges; C is prefetched while its tile is
//          computed.
// Cost     2 m n k operations. Memory: A once per nc columns, B once, C twice per kc steps of k.
// Limits   One thread. Packing copies what a small product reads only a few times.
// Source   K. Goto and R. van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008;
//          F. Van Zee and R. van de Geijn, BLIS, 2015 (the loops around the micro-kernel).
#include "rung/cpu/foreach_target.hpp"

#include "rung/cpu/pack-inl.hpp"
#include "rung/cpu/prefetch.hpp"
#include "rung/ops/gemm/cpu/detail/blocked.hpp"
#include "rung/ops/gemm/cpu/detail/facts.hpp"
#include "rung/ops/gemm/cpu/detail/finish-inl.hpp"
#include "rung/ops/gemm/cpu/detail/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Prefetcher of packed A and B from L2 into L1: the hardware, or the tile by software prefetch
/// (EXPERIMENTS.md).
enum class Fetching { hardware, tile };

/// Computes one tile of C, `rows` x `vectors`, kept in registers through k rank-1 updates.
///
/// An FMA has a latency of 4 cycles and two start in each, so at least 8 accumulators are needed;
/// more of them raise the arithmetic per load. With 32 registers (AVX-512) 14 x 2 accumulators
/// leave two for a row of B and one for a broadcast element of A: 16 loads against 28 FMAs, 8
/// cycles of load ports in the shadow of 14 cycles of FMA. With 16 registers (AVX2) the same
/// reasoning gives 6 x 2. Measured on a 2-core Zen 5 vCPU: 14x32, 12x32, 6x64 and 8x48 all reach
/// 99 % of the peak; AVX2 6x16 99 %, 4x24 only 70 %.
template <class T, int rows, int vectors, Source a_source, Source b_source, Fetching fetching>
void tile(const TileArgs<T>& t) {
  const Full<T> d;
  using V = hn::Vec<Full<T>>;
  const auto last = hn::FirstN(d, static_cast<size_t>(t.columns - (vectors - 1) * lanes<T>()));
  constexpr int chains = chains_of<rows * vectors>;
  V acc[rows][vectors];
  V more[chains][rows][vectors];  // accumulators of the later k of an iteration; [0] is unused
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
  if constexpr (rows == tile_rows && a_source == Source::packed && b_source == Source::packed) {
    // Nearly all tiles of a large product are of this kind. C was last accessed a block of k ago
    // and has left the near caches. It is prefetched just before the end, as A and B passing
    // through L1 would evict it earlier: a line every few steps, unrolled to avoid branch
    // mispredictions (2-core Zen 5 vCPU, gain over the else branch: f32 4096 +1 %, f64 2048 +4 %).
    // Without the asm barriers the compiler would interleave steps and run out of AVX2's 16
    // registers, of which 15 are in use.
    constexpr int row_lines = vectors * sizeof(V) > 64 ? 2 : 1;
    constexpr int line_elements = 64 / static_cast<int>(sizeof(T));
    constexpr int in_time = 2;  // loop iterations from the last line's prefetch to its use
    const T* c = t.c;
    BackgroundPacking<T, rows, vectors> background_packing(t.background_packing);
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
        asm volatile("" : "+r"(a), "+r"(b));  // keeps steps in order
        if constexpr (fetching == Fetching::tile) prefetch_step<rows, vectors>(a, b, q);
        V row[vectors];
        load_b_row<vectors, b_source>(d, b + q * b_row, last, row);
        update<rows, vectors, a_source>(d, a + q * a_column, a_row, row, acc);
      }
      asm volatile("" : "+r"(a), "+r"(b));  // the last step too: AVX2 +1 % to +2 %, one spill less
      a += packing_steps * a_column;
      b += packing_steps * b_row;
    }
    advance(left);
  } else {
    // C is prefetched a row at a time. At once, 28 lines from memory would occupy every miss buffer
    // of L1 for some 800 cycles, and A and B, which come from L2, would stall (-10 % at n = 2048).
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

template <class T, Source a, Source b, int vectors, Fetching fetching = Fetching::hardware>
TileFunction<T>* const* tiles_of() {
  constexpr int most = vectors == 2 ? tile_rows : narrow_tile_rows;
  return table_by_rows<TileFunction<T>, most>([]<int rows>() {
    // Only the tile with the most rows has two versions.
    return &tile < T, rows, vectors, a, b, rows == tile_rows ? fetching : Fetching::hardware > ;
  });
}

template <class T>
void fill_tiles(Kernels<T>& k) {
  k.lanes = lanes<T>();
  k.tile_rows = tile_rows;
  k.narrow_tile_rows = narrow_tile_rows;
  // AVX2 loses by software prefetch: 2 % to 3 % at 2048 and 4096 cubed (2-core Emerald Rapids
  // vCPU). f64 gains on Zen 4 while other programs keep the caches busy: 1024 cubed from .78 to .92
  // of the ceiling, 2048 from .86 to .89 (2-core vCPU, one thread; two: .89 to .90, .87 to .91);
  // f32 neither gains nor loses.
  const bool prefetches =
      cpu::prefetches_into_l1() || (sizeof(T) == 8 && cpu::prefetches_into_l2());
  k.prefetches = HWY_TARGET == HWY_AVX3 && prefetches;
  constexpr Source p = Source::packed;
  constexpr Source s = Source::strided;
  k.tiles[0][0][0] = tiles_of<T, p, p, 1>();
  k.tiles[0][0][1] = k.prefetches ? tiles_of<T, p, p, 2, Fetching::tile>() : tiles_of<T, p, p, 2>();
  k.tiles[0][1][0] = tiles_of<T, p, s, 1>();
  k.tiles[0][1][1] = tiles_of<T, p, s, 2>();
  k.tiles[1][0][0] = tiles_of<T, s, p, 1>();
  k.tiles[1][0][1] = tiles_of<T, s, p, 2>();
  k.tiles[1][1][0] = tiles_of<T, s, s, 1>();
  k.tiles[1][1][1] = tiles_of<T, s, s, 2>();
}

/// Returns the kernels for matrices of In..., whose sums are T.
template <class T, class... In>
const Kernels<T>& kernels_for() {
  static const Kernels<T> table = [] {
    Kernels<T> k{};
    fill_tiles(k);
    const auto fill = [&]<class X>() {
      constexpr auto dtype = static_cast<int>(dtype_of<X>);
      k.pack[dtype] = cpu::HWY_NAMESPACE::pack_panels<T, X>;
      k.copy[dtype] = cpu::HWY_NAMESPACE::copy_rows<T, X>;
      k.finish[dtype] = finish<T, X>;
    };
    (fill.template operator()<In>(), ...);
    return k;
  }();
  return table;
}
const Kernels<float>& kernels_f32() { return kernels_for<float, float, f16, bf16>(); }
const Kernels<double>& kernels_f64() { return kernels_for<double, double>(); }

}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::gemm_cpu {
HWY_EXPORT(kernels_f32);
template <>
const Kernels<float>& kernels<float>() {
  return HWY_DYNAMIC_DISPATCH(kernels_f32)();
}
HWY_EXPORT(kernels_f64);
template <>
const Kernels<double>& kernels<double>() {
  return HWY_DYNAMIC_DISPATCH(kernels_f64)();
}
}  // namespace rung::gemm_cpu

namespace rung {
namespace {
using namespace gemm_cpu;

template <class T>
void packed_simd(const RowMajorProduct& call, Context& context) {
  if (call.depth() == 0) return finish_without_product<T>(call);
  const Kernels<T>& ks = kernels<T>();
  const Blocking block = make_blocking(call, ks, block_limits());
  const bool staged = !call.direct();
  const std::int64_t a_size = block.mc * copied_row<T>(block.kc);
  const std::int64_t staged_row = copied_row<T>(block.nc);  // alias-free row pitch
  const std::int64_t group_rows = staged ? std::min(call.m, block.staged_rows) : call.m;
  T* b = static_cast<T*>(context.workspace(
      (block.kc * block.nc + a_size + (staged ? group_rows * staged_row : 0)) * sizeof(T)));
  T* a = b + block.kc * block.nc;
  const int width = ks.tile_columns();

  for (std::int64_t batch = 0; batch < call.batch; ++batch) {
    Sums<T> sums = make_sums(call, ks, batch, a + a_size, staged_row);
    TileArgs<T> t{};
    t.a_column = 1;
    t.c_row = sums.row;
    t.alpha = static_cast<T>(call.alpha);
    for (std::int64_t j0 = 0; j0 < call.n; j0 += block.nc) {  // columns of B that stay in L3
      const std::int64_t j1 = std::min(j0 + block.nc, call.n);
      for (std::int64_t group = 0; group < call.m; group += group_rows) {
        const std::int64_t end = std::min(group + group_rows, call.m);
        if (staged) sums.i0 = group, sums.j0 = j0;
        for (std::int64_t p = 0; p < call.k; p += block.kc) {
          t.k = std::min(block.kc, call.k - p);
          t.beta = sums.beta(p == 0);
          pack_b(call, ks, batch, p, t.k, j0, j1 - j0, b);
          for (std::int64_t i0 = group; i0 < end; i0 += block.mc) {  // rows of A that stay in L2
            const std::int64_t i1 = std::min(i0 + block.mc, end);
            const PackedA<T> packed = pack_a(call, ks, batch, i0, i1 - i0, p, t.k, a);
            t.a_row = packed.row;
            for (std::int64_t j = j0; j < j1; j += width) {  // a strip of B that stays in L1
              t.b = b + (j - j0) * t.k;
              t.columns = static_cast<int>(std::min<std::int64_t>(width, j1 - j));
              const int vectors = strip_width(ks, t.columns) / ks.lanes;
              for (std::int64_t i = i0; i < i1; i += ks.tile_rows) {
                t.a = packed.panel(i - i0, t.k);
                t.c = sums.at(i, j);
                const std::int64_t rows = std::min<std::int64_t>(ks.tile_rows, i1 - i);
                ks.tile(packed.source, Source::packed, vectors, rows)(t);
              }
              // The strip's part of C is still in the cache when the last k has been added.
              if (p + t.k == call.k) sums.finish(i0, i1 - i0, j, t.columns);
            }
          }
        }
      }
    }
  }
}

Work work(const Gemm::Args& args, const Context&) {
  const RowMajorProduct call = row_major_product(args);
  return with_sums(call.in, [&]<class T>() {
    return packed_work(call, kernels<T>(), block_limits().k_bytes, 1);
  });
}

void run(const Gemm::Args& args, Context& context) {
  const RowMajorProduct call = row_major_product(args);
  if (args.c.empty()) return;
  with_sums(call.in, [&]<class T>() { packed_simd<T>(call, context); });
}

const Rung<Gemm> self{{.name = "packed_simd",
                       .step = 60,
                       .after = "packed_b",
                       .supports = require_wide_types,
                       .work = work,
                       .run = run}};
}  // namespace
}  // namespace rung
#endif
