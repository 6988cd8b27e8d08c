// SPDX-License-Identifier: Apache-2.0
// gemm / packed SIMD, one thread
//
// Idea     the two operands are copied, block by block, into the very order in which a vector
//          micro-kernel reads them; the micro-kernel keeps a 14 x 32 tile of C (AVX-512) in
//          registers.
// Changes  against packed_b: A is packed too, in blocks that stay in L2 while many strips of B, in
//          L3, go by; every type, stride and epilogue; a kernel for each number of rows and
//          vectors, so that edges cost what they are; C is prefetched while its tile is made.
// Cost     2 m n k operations. Memory: A once for each nc columns, B once, C twice for each kc of
//          k.
// Limits   one thread. Packing copies what a small product reads only a few times.
// Tried    block sizes: see BlockLimits. Transposing A into panels in place of copying its rows:
//          the same at 2048, -2 % at 512. Fetching all of a tile's C at its start: -10 %, see
//          detail/tile-inl.hpp.
// Source   K. Goto and R. van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008;
//          F. Van Zee and R. van de Geijn, BLIS, 2015 (the loops around the micro-kernel).
#include "rung/cpu/foreach_target.hpp"

#include <hwy/highway.h>

#include "rung/cpu/load-inl.hpp"
#include "rung/cpu/prefetch.hpp"
#include "rung/ops/gemm/cpu/detail/blocked.hpp"
#include "rung/ops/gemm/cpu/detail/engine.hpp"
#include "rung/ops/gemm/cpu/detail/estimate.hpp"
#include "rung/ops/gemm/cpu/detail/finish-inl.hpp"
#include "rung/ops/gemm/cpu/detail/sliver-inl.hpp"
#include "rung/ops/gemm/cpu/detail/tile-inl.hpp"

// Packing: a panel of a matrix, copied into the order in which a tile reads it and converted to the
// type sums are kept in.
HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using cpu::HWY_NAMESPACE::load_as;
using cpu::HWY_NAMESPACE::load_as_n;

template <class T, class In>
HWY_INLINE T element_as(In x) {
  return static_cast<T>(static_cast<Accumulator<In>>(x));
}

// Contiguous along the panel's width: a copy. Vectors may run over into the next columns, which are
// written afterwards, but not over the end of the panel: the next one may be another thread's.
template <class T, class In>
void pack_copy(const In* from, std::int64_t column, int count, int width, std::int64_t k, T* to) {
  const hn::ScalableTag<T> d;
  constexpr int lanes = HWY_LANES(T);
  const int whole = count / lanes * lanes;
  const int rest = count - whole;
  for (std::int64_t p = 0; p < k; ++p, from += column, to += width) {
    int i = 0;
    for (; i < whole; i += lanes) hn::StoreU(load_as(d, from + i), d, to + i);
    if (rest != 0) {
      const auto some = static_cast<std::size_t>(rest);
      const auto x = load_as_n(d, from + i, some);
      if ((k - p) * width >= whole + lanes) {
        hn::StoreU(x, d, to + i);
      } else {
        hn::BlendedStore(x, hn::FirstN(d, some), d, to + i);
      }
    }
    for (i = count; i < width; ++i) to[i] = T{0};
  }
}

#if HWY_TARGET != HWY_SCALAR
// Rows r, r + s, r + 2s, ... of 16 bytes of T each, one to each 128-bit block of a vector.
template <class D, class In>
HWY_INLINE hn::Vec<D> load_blocks(D d, const In* from, std::int64_t step) {
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) == 16) {
    return load_as(d, from);
  } else {
    const hn::Half<D> half;
    constexpr int blocks = hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) / 32;
    return hn::Combine(d, load_blocks(half, from + blocks * step, step),
                       load_blocks(half, from, step));
  }
}

// Columns out of blocks: element r of block b of in[j] is row per_block * b + j, column r.
template <class D, class V>
HWY_INLINE void transpose_blocks(D d, V (&v)[4]) {
  const V ac_low = hn::InterleaveLower(d, v[0], v[2]);
  const V bd_low = hn::InterleaveLower(d, v[1], v[3]);
  const V ac_high = hn::InterleaveUpper(d, v[0], v[2]);
  const V bd_high = hn::InterleaveUpper(d, v[1], v[3]);
  v[0] = hn::InterleaveLower(d, ac_low, bd_low);
  v[1] = hn::InterleaveUpper(d, ac_low, bd_low);
  v[2] = hn::InterleaveLower(d, ac_high, bd_high);
  v[3] = hn::InterleaveUpper(d, ac_high, bd_high);
}
template <class D, class V>
HWY_INLINE void transpose_blocks(D d, V (&v)[2]) {
  const V low = hn::InterleaveLower(d, v[0], v[1]);
  v[1] = hn::InterleaveUpper(d, v[0], v[1]);
  v[0] = low;
}

// Contiguous along k: transposes squares of lanes x lanes. Row 4b + j (2b + j for f64) is loaded
// into block b of vector j, so that transposing 4x4 (2x2) inside all blocks at once leaves whole
// columns. All of a row's square is loaded before the next row's: rows a power of two apart fall
// into one set of the L1 cache, and a line that is left half read would be gone (0.3 ns per element
// instead of 0.1).
template <class T, class In>
void pack_transposed(const In* from, std::int64_t row, int count, int readable, int width,
                     std::int64_t k, T* to) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int lanes = HWY_LANES(T);
  constexpr int per_block = 16 / sizeof(T);
  constexpr int blocks = lanes / per_block;
  // Groups of `lanes` rows; the last may reach into rows that belong to the next panel. Vectors are
  // stored whole and run over into later columns: from the last group to the first, what the last
  // spills, the first overwrites. Nothing may spill over the end.
  const int last_group = (count - 1) / lanes * lanes;
  std::int64_t p = 0;
  if (last_group + lanes <= readable) {
    for (; p + lanes <= k && (k - p - (lanes - 1)) * width >= last_group + lanes; p += lanes) {
      for (int i = last_group; i >= 0; i -= lanes) {
        const In* x = from + i * row + p;
        // The same columns of the rows of the next panel, which is packed next.
        for (int r = i; r < std::min(i + lanes, readable - width); ++r) {
          __builtin_prefetch(from + (width + r) * row + p, 0, 2);
        }
        V v[blocks][per_block];
#pragma GCC unroll 4
        for (int j = 0; j < per_block; ++j) {
#pragma GCC unroll 4
          for (int s = 0; s < blocks; ++s) {
            v[s][j] = load_blocks(d, x + j * row + s * per_block, per_block * row);
          }
        }
        T* column = to + p * width + i;
#pragma GCC unroll 4
        for (int s = 0; s < blocks; ++s) {
          transpose_blocks(d, v[s]);
#pragma GCC unroll 4
          for (int j = 0; j < per_block; ++j, column += width) hn::StoreU(v[s][j], d, column);
        }
      }
    }
  }
  for (int i = 0; i < width; ++i) {
    const In* x = from + std::min(i, count - 1) * row;
    for (std::int64_t q = p; q < k; ++q) to[q * width + i] = element_as<T>(x[q]);
  }
}
#endif

// The same for whole panels of whole vectors, contiguous. Several at a time: one panel alone
// would take two lines out of each page that it visits.
template <class T, class In>
void copy_panels(const In* from, std::int64_t column, std::int64_t panels, int width,
                 std::int64_t k, T* to) {
  const hn::ScalableTag<T> d;
  constexpr int lanes = HWY_LANES(T);
  constexpr std::int64_t at_once =
      8;  // 1 KiB of a row; as many output streams as L1 has ways to spare
  constexpr std::int64_t ahead = 8;  // rows; each is in a page of its own, so hardware does not
  for (std::int64_t first = 0; first < panels; first += at_once) {
    const std::int64_t group = std::min(at_once, panels - first);
    for (std::int64_t p = 0; p < k; ++p) {
      const In* x = from + p * column + first * width;
      T* out = to + (first * k + p) * width;
      const std::int64_t jump = p + ahead < k ? ahead * column : 0;
      for (std::int64_t panel = 0; panel < group; ++panel, x += width, out += k * width) {
        for (int i = 0; i < width; i += lanes) {
          __builtin_prefetch(x + jump + i);
          hn::StoreU(load_as(d, x + i), d, out + i);
        }
      }
    }
  }
}

template <class T, class In>
void pack_panel(const In* x, std::int64_t row, std::int64_t column, int count,
                [[maybe_unused]] std::int64_t readable, int width, std::int64_t k, T* to) {
  if (row == 1) return pack_copy(x, column, count, width, k, to);
#if HWY_TARGET != HWY_SCALAR
  if (column == 1) {
    const int near = static_cast<int>(std::min<std::int64_t>(readable, 2 * width + HWY_LANES(T)));
    return pack_transposed(x, row, count, near, width, k, to);
  }
#endif
  for (std::int64_t p = 0; p < k; ++p) {
    for (int i = 0; i < count; ++i) {
      to[p * width + i] = element_as<T>(x[i * row + p * column]);
    }
    for (int i = count; i < width; ++i) to[p * width + i] = T{0};
  }
}

template <class T, class In>
void pack(const void* from, std::int64_t row, std::int64_t column, std::int64_t count,
          std::int64_t readable, int width, std::int64_t k, T* to) {
  const In* x = static_cast<const In*>(from);
  std::int64_t done = 0;
  if (row == 1 && width % HWY_LANES(T) == 0) {
    done = count / width * width;
    copy_panels(x, column, count / width, width, k, to);
  }
  for (; done < count; done += width) {
    const auto part = static_cast<int>(std::min<std::int64_t>(width, count - done));
    pack_panel(x + done * row, row, column, part, readable - done, width, k, to + done * k);
  }
}

template <class T, class In>
void copy_rows(const void* from, std::int64_t from_row, std::int64_t rows, std::int64_t k, T* to,
               std::int64_t to_row) {
  const hn::ScalableTag<T> d;
  constexpr int lanes = HWY_LANES(T);
  for (std::int64_t i = 0; i < rows; ++i, to += to_row) {
    const In* x = static_cast<const In*>(from) + i * from_row;
    // Runs are too short (2 KiB) for the hardware prefetchers to come into their stride.
    const std::int64_t ahead = std::min<std::int64_t>(2, rows - 1 - i) * from_row;
    std::int64_t p = 0;
    for (; p + lanes <= k; p += lanes) {
      __builtin_prefetch(x + ahead + p, 0, 2);
      hn::StoreU(load_as(d, x + p), d, to + p);
    }
    if (p < k) {
      const auto left = static_cast<std::size_t>(k - p);
      hn::BlendedStore(load_as_n(d, x + p, left), hn::FirstN(d, left), d, to + p);
    }
  }
}

// The table of kernels of one target.

template <class T, Source a, Source b, int vectors>
TileFunction<T>* const* tiles_of() {
  return tile_table < T, vectors == 2 ? tile_rows : narrow_tile_rows, vectors, a, b > ();
}

template <class T>
void fill_tiles(Kernels<T>& k) {
  k.lanes = lanes<T>();
  k.tile_rows = tile_rows;
  k.narrow_tile_rows = narrow_tile_rows;
  // Not with AVX2: on a 2-core Emerald Rapids vCPU 2 % to 3 % less at 2048 and 4096 cubed. f64 on
  // Zen 4, too: beside others who kept the caches busy, 1024 cubed came from .78 to .92 of the
  // ceiling and 2048 from .86 to .89 (2-core vCPU, one thread; two: .89 to .90, .87 to .91), f32
  // neither gained nor lost.
  const bool asks = cpu::asks_for_lines() || (sizeof(T) == 8 && cpu::asks_memory_for_lines());
  k.asks_for_lines = HWY_TARGET == HWY_AVX3 && asks;
  k.sliver_columns = sliver_columns<T>;
  k.sliver_rows = sliver_rows;
  k.slivers = sliver_table<T>();
  constexpr Source p = Source::packed;
  constexpr Source s = Source::strided;
  k.tiles[0][0][0] = tiles_of<T, p, p, 1>();
  k.tiles[0][0][1] = k.asks_for_lines
                         ? tile_table<T, tile_rows, 2, p, p, Distance::far, Fetching::asked>()
                         : tiles_of<T, p, p, 2>();
  k.tiles[0][1][0] = tiles_of<T, p, s, 1>();
  k.tiles[0][1][1] = tiles_of<T, p, s, 2>();
  k.tiles[1][0][0] = tiles_of<T, s, p, 1>();
  k.tiles[1][0][1] = tiles_of<T, s, p, 2>();
  k.tiles[1][1][0] = tiles_of<T, s, s, 1>();
  k.tiles[1][1][1] = tiles_of<T, s, s, 2>();
}

// The kernels whose sums are f32: for matrices of f32, f16 and bf16.

const Kernels<float>& kernels_f32() {
  static const Kernels<float> table = [] {
    Kernels<float> k{};
    fill_tiles(k);
    k.pack[static_cast<int>(DType::f32)] = pack<float, float>;
    k.pack[static_cast<int>(DType::f16)] = pack<float, f16>;
    k.pack[static_cast<int>(DType::bf16)] = pack<float, bf16>;
    k.copy[static_cast<int>(DType::f32)] = copy_rows<float, float>;
    k.copy[static_cast<int>(DType::f16)] = copy_rows<float, f16>;
    k.copy[static_cast<int>(DType::bf16)] = copy_rows<float, bf16>;
    k.finish[static_cast<int>(DType::f32)] = finish<float, float>;
    k.finish[static_cast<int>(DType::f16)] = finish<float, f16>;
    k.finish[static_cast<int>(DType::bf16)] = finish<float, bf16>;
    return k;
  }();
  return table;
}

// The kernels whose sums are f64.

const Kernels<double>& kernels_f64() {
  static const Kernels<double> table = [] {
    Kernels<double> k{};
    fill_tiles(k);
    k.pack[static_cast<int>(DType::f64)] = pack<double, double>;
    k.copy[static_cast<int>(DType::f64)] = copy_rows<double, double>;
    k.finish[static_cast<int>(DType::f64)] = finish<double, double>;
    return k;
  }();
  return table;
}

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
void packed_simd(const Call& call, Context& context) {
  if (call.depth() == 0) return finish_without_product<T>(call);
  const Kernels<T>& ks = kernels<T>();
  const Blocking block = make_blocking(call, ks, block_limits());
  const bool staged = !call.direct();
  const std::int64_t a_size = block.mc * copied_row<T>(block.kc);
  const std::int64_t staged_row = copied_row<T>(block.nc);  // rows of a tile in different sets

  T* b = static_cast<T*>(
      context.workspace((block.kc * block.nc + a_size +
                         (staged ? std::min(call.m, block.staged_rows) * staged_row : 0)) *
                        sizeof(T)));
  T* a = b + block.kc * block.nc;
  const std::int64_t rows_at_once = staged ? block.staged_rows : call.m;

  for (std::int64_t batch = 0; batch < call.batch; ++batch) {
    Sums<T> sums = make_sums(call, ks, batch, a + a_size, staged_row);
    for (std::int64_t j = 0; j < call.n; j += block.nc) {
      const std::int64_t columns = std::min(block.nc, call.n - j);
      for (std::int64_t group = 0; group < call.m; group += rows_at_once) {
        const std::int64_t end = std::min(call.m, group + rows_at_once);
        if (staged) sums.i0 = group, sums.j0 = j;
        for (std::int64_t p = 0; p < call.k; p += block.kc) {
          const std::int64_t k = std::min(block.kc, call.k - p);
          pack_b(call, ks, batch, p, k, j, columns, b);
          for (std::int64_t i = group; i < end; i += block.mc) {
            const std::int64_t rows = std::min(block.mc, end - i);
            const PackedA<T> packed = pack_a(call, ks, batch, i, rows, p, k, a);
            multiply_block(sums, {i, rows, k, p == 0, p + k == call.k}, packed, b, j, columns);
          }
        }
      }
    }
  }
}

double estimate(const Gemm::Args& args, const Context&) {
  return packed_seconds(make_call(args), 1);
}

void run(const Gemm::Args& args, Context& context) {
  const Call call = make_call(args);
  if (args.c.empty()) return;
  if (call.in == DType::f64) {
    packed_simd<double>(call, context);
  } else {
    packed_simd<float>(call, context);
  }
}

const Rung<Gemm> self{{.name = "packed_simd",
                       .step = 60,
                       .after = "packed_b",
                       .supports = require_wide_operands,
                       .estimate = estimate,
                       .run = run}};
}  // namespace
}  // namespace rung
#endif
