// SPDX-License-Identifier: Apache-2.0
// gemm / tiny
//
// Idea     a product of a few dozen rows and columns takes 30 to 500 ns, so call overhead
//          dominates. Tiles of 24 x 16 or 14 x 32 read the operands in place; no team, no
//          workspace, no packing, and one table lookup for the tile.
// Changes  against packed_simd: no copies; rows are divided evenly, because a last tile of two rows
//          would have too few sums in flight to hide the FMA latency.
// Cost     2 m n k operations and the call overhead: 16^3 in 45 ns on a 2-core Zen 5 vCPU, of which
//          34 ns are FMAs.
// Limits   f32 and f64, contiguous rows in B and C, no epilogue, work of up to 64 x 64 x 64.
// Source   A. Heinecke et al., LIBXSMM, SC 2016 (which generates such kernels at run time).
#include "rung/cpu/foreach_target.hpp"
#include "rung/ops/gemm/cpu/detail/facts.hpp"
#include "rung/ops/gemm/cpu/detail/tile-inl.hpp"

#ifndef RUNG_OPS_GEMM_CPU_70_TURNED
#define RUNG_OPS_GEMM_CPU_70_TURNED
namespace rung::gemm_cpu {
namespace {
/// Returns whether C is a column that can be computed as a row, C' = B' A': the columns of A are
/// contiguous.
inline bool turned(const Gemm::Args& args) {
  return args.c.shape[2] == 1 && args.c.shape[1] > 1 && args.a.strides[1] == 1 &&
         args.c.strides[1] == 1;
}
}  // namespace
}  // namespace rung::gemm_cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {
namespace {

/// Computes one tile of C. A, B and C are in L1 already: no prefetch and no packed operand.
template <class T, int rows, int vectors>
void tiny_tile(const TileArgs<T>& t) {
  const Full<T> d;
  using V = hn::Vec<Full<T>>;
  const auto last = hn::FirstN(d, static_cast<std::size_t>(t.columns - (vectors - 1) * lanes<T>()));
  constexpr int chains = chains_of<rows * vectors>;
  V sum[rows][vectors];
  V more[chains][rows][vectors];  // accumulators of the later k of an iteration; [0] is unused
#pragma GCC unroll 32
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) {
      sum[i][j] = hn::Zero(d);
#pragma GCC unroll 4
      for (int c = 1; c < chains; ++c) more[c][i][j] = hn::Zero(d);
    }
  }
  const T* a = t.a;
  const T* b = t.b;
  const auto step = [&](V(&to)[rows][vectors]) HWY_ATTR {
    V row[vectors];
    load_b_row<vectors, Source::strided>(d, b, last, row);
    update<rows, vectors, Source::strided>(d, a, t.a_row, row, to);
    a += t.a_column;
    b += t.b_row;
  };
  std::int64_t p = t.k;
  if constexpr (chains > 1) {
    for (; p >= chains; p -= chains) {
      step(sum);
#pragma GCC unroll 4
      for (int c = 1; c < chains; ++c) step(more[c]);
    }
  }
  for (; p > 0; --p) step(sum);
#pragma GCC unroll 4
  for (int c = 1; c < chains; ++c) {
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) sum[i][j] = hn::Add(sum[i][j], more[c][i][j]);
    }
  }
  write_tile<rows, vectors>(d, t, last, sum);
}

template <class T, int vectors>
HWY_INLINE void strip(TileArgs<T>& t, const T* a, T* c, std::int64_t m) {
  constexpr int most = vectors == 2 ? tile_rows : narrow_tile_rows;
  // m is small: 32-bit division is several times as fast as 64-bit.
  const auto total = static_cast<std::uint32_t>(m);
  const std::uint32_t tiles = (total + most - 1) / most;
  const std::uint32_t rows = tiles == 1 ? total : (total + tiles - 1) / tiles;
  TileFunction<T>* const* table = table_by_rows<TileFunction<T>, most>(
      []<int rows_of_tile>() { return &tiny_tile<T, rows_of_tile, vectors>; });
  for (std::uint32_t i = 0; i < total; i += rows) {
    t.a = a + i * t.a_row;
    t.c = c + i * t.c_row;
    table[std::min(rows, total - i) - 1](t);
  }
}

template <class T>
void tiny(const Gemm::Args& args) {
  const bool turn = turned(args);
  const ConstTensorRef& left = turn ? args.b : args.a;
  const ConstTensorRef& right = turn ? args.a : args.b;
  const int row = turn ? 2 : 1;  // the axis of the rows of C, and of A
  const int column = 3 - row;
  TileArgs<T> t{args.a.shape[2],
                nullptr,
                left.strides[row],
                left.strides[column],
                nullptr,
                right.strides[row],
                nullptr,
                args.c.strides[row],
                0,
                static_cast<T>(args.alpha),
                static_cast<T>(args.beta)};
  const T* a = static_cast<const T*>(left.data);
  const T* b = static_cast<const T*>(right.data);
  T* c = static_cast<T*>(args.c.data);
  const auto m = args.c.shape[row];
  const auto n = static_cast<int>(args.c.shape[column]);
  constexpr int wide = 2 * lanes<T>();
  for (std::int64_t batch = args.c.shape[0]; batch > 0; --batch) {
    for (int j = 0; j < n; j += wide) {
      t.b = b + j;
      t.columns = std::min(wide, n - j);
      if (t.columns <= lanes<T>()) {
        strip<T, 1>(t, a, c + j, m);
      } else {
        strip<T, 2>(t, a, c + j, m);
      }
    }
    a += left.strides[0];
    b += right.strides[0];
    c += args.c.strides[0];
  }
}

}  // namespace

void tiny_f32(const Gemm::Args& args) { tiny<float>(args); }
void tiny_f64(const Gemm::Args& args) { tiny<double>(args); }

}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace gemm_cpu {
namespace {
HWY_EXPORT(tiny_f32);
HWY_EXPORT(tiny_f64);

Support supports(const Gemm::Args& args, const Context&) {
  const DType dtype = args.c.dtype;
  if (args.a.dtype != dtype || (dtype != DType::f32 && dtype != DType::f64)) {
    return unsupported("takes f32 or f64 throughout");
  }
  if (args.k() == 0 || args.c.empty()) return unsupported("empty");
  if (args.alpha == 0.0) return unsupported("alpha is 0: A and B are not to be read");
  const RowMajorProduct call = row_major_product(args);
  constexpr double max_products = 64 * 64 * 64;
  if (static_cast<double>(call.batch) * static_cast<double>(call.m) * static_cast<double>(call.n) *
          static_cast<double>(call.k) >
      max_products) {
    return unsupported("more work than of 64 x 64 x 64");
  }
  constexpr std::int64_t max_k = 256;  // so that a strip of B stays in L1
  if (call.k > max_k) return unsupported("k is more than 256");
  if (!turned(args) && (args.c.strides[2] != 1 || args.b.strides[2] != 1)) {
    return unsupported("takes contiguous rows in B and C");
  }
  if (args.has_epilogue()) return unsupported("has no epilogue");
  return supported;
}

Work work(const Gemm::Args& args, const Context&) {
  RowMajorProduct call = row_major_product(args);
  if (args.n() == 1 && !turned(args)) std::swap(call.m, call.n);  // untransposed
  return with_sums(call.in, [&]<class T>() -> Work {
    const Kernels<T>& ks = kernels<T>();
    const double m = static_cast<double>(call.m), n = static_cast<double>(call.n);
    const double batch = static_cast<double>(call.batch);
    const double tiles = std::ceil(n / ks.tile_columns()) * std::ceil(m / ks.tile_rows);
    return {.operations = batch * vector_operations(tile_fmas(call, ks, 0)),
            .blocks = batch * tiles,
            .steps = m * std::ceil(n / ks.lanes) / tiles};
  });
}

void run(const Gemm::Args& args, Context&) {
  if (args.c.dtype == DType::f64) {
    HWY_DYNAMIC_DISPATCH(tiny_f64)(args);
  } else {
    HWY_DYNAMIC_DISPATCH(tiny_f32)(args);
  }
}

const Rung<Gemm> self{
    {.name = "tiny", .after = "packed_simd", .supports = supports, .work = work, .run = run}};
}  // namespace
}  // namespace gemm_cpu
}  // namespace rung
#endif
