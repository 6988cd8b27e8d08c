// SPDX-License-Identifier: Apache-2.0
// gemm / few rows
//
// Idea     with few rows in A, the time is that of reading B: B is read once, in place, at memory
//          bandwidth. All rows of C are updated together, 4 or 16 steps of k at a time, sweeping
//          along rows of B.
// Changes  against packed_simd: B is not packed, as the copy would be read once. C accumulates in a
//          small buffer; the rows of B are long streams, prefetched 1 KiB ahead.
// Cost     B once from memory; C from L1 once per 16 steps of k.
// Limits   up to 32 rows, rows of B contiguous, f32 and f64.
// Source   OpenBLAS and oneDNN issues on skinny products; measured here.
#include "rung/cpu/foreach_target.hpp"

#include <tuple>

#include "rung/cpu/team.hpp"
#include "rung/ops/gemm/cpu/detail/blocked.hpp"
#include "rung/ops/gemm/cpu/detail/facts.hpp"
#include "rung/ops/gemm/cpu/detail/tile-inl.hpp"

// Kernels of few_rows: all rows of C at once, along rows of B that are read once.
#ifndef RUNG_OPS_GEMM_CPU_74_SWEEP
#define RUNG_OPS_GEMM_CPU_74_SWEEP
namespace rung::gemm_cpu {
namespace {
constexpr std::int64_t run_columns = 128;  // columns of B that stay in L1 for all groups of rows
constexpr std::int64_t fetch_ahead = 256;  // columns
constexpr std::int64_t max_rows = 32;

/// Arguments of C = A * B + beta * C for a group of rows, a block of k and a run of columns.
template <class T>
struct Sweep {
  std::int64_t k, columns;
  const T* a;  // element (i, p) at p * a_column + i
  std::int64_t a_column;
  const T* b;
  std::int64_t b_row;
  std::int64_t ahead;  // prefetch distance in B, in elements
  T* c;
  std::int64_t c_row;
  T beta;
};
template <class T>
using SweepFunction = void(const Sweep<T>&);
}  // namespace
}  // namespace rung::gemm_cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {
namespace {

template <class T, int rows>
void sweep(const Sweep<T>& s) {
  const Full<T> d;
  using V = hn::Vec<Full<T>>;
  constexpr int vectors = 2;
  const V beta = hn::Set(d, s.beta);
  // Computes a tile of columns; only the last tile is masked.
  using Mask = hn::Mask<Full<T>>;
  const auto tile = [&](std::int64_t j, auto masked, Mask m0, Mask m1) HWY_ATTR {
    const Mask mask[vectors] = {m0, m1};
    const auto load = [&](const T* from, int v) HWY_ATTR {
      if (!masked) return hn::LoadU(d, from);
      // The vector is fully masked. (The scalar target's MaskedLoad would still read memory.)
      if (j + v * lanes<T>() >= s.columns) return hn::Zero(d);
      return hn::MaskedLoad(mask[v], d, from);
    };
    V acc[rows][vectors];
#pragma GCC unroll 32
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
        const T* c = s.c + i * s.c_row + j + v * lanes<T>();
        acc[i][v] = s.beta == T{0} ? hn::Zero(d) : hn::Mul(beta, load(c, v));
      }
    }
    const T* b = s.b + j;
    const T* a = s.a;
    for (std::int64_t p = 0; p < s.k; ++p, a += s.a_column, b += s.b_row) {
      V row[vectors];
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
        __builtin_prefetch(b + s.ahead + v * lanes<T>());
        row[v] = load(b + v * lanes<T>(), v);
      }
#pragma GCC unroll 32
      for (int i = 0; i < rows; ++i) {
        const V element = hn::Set(d, a[i]);
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) acc[i][v] = hn::MulAdd(element, row[v], acc[i][v]);
      }
    }
#pragma GCC unroll 32
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
        T* c = s.c + i * s.c_row + j + v * lanes<T>();
        if (!masked) {
          hn::StoreU(acc[i][v], d, c);
        } else if (j + v * lanes<T>() < s.columns) {
          hn::BlendedStore(acc[i][v], mask[v], d, c);
        }
      }
    }
  };
  constexpr std::int64_t width = vectors * lanes<T>();
  const auto none = hn::FirstN(d, 0);
  std::int64_t j = 0;
  for (; j + width <= s.columns; j += width) tile(j, std::false_type(), none, none);
  if (j < s.columns) {
    const std::int64_t left = s.columns - j;
    tile(j, std::true_type(), hn::FirstN(d, static_cast<std::size_t>(left)),
         left > lanes<T>() ? hn::FirstN(d, static_cast<std::size_t>(left - lanes<T>())) : none);
  }
}

template <class T>
SweepFunction<T>* const* sweep_table() {
  return table_by_rows<SweepFunction<T>, tile_rows>([]<int rows>() { return &sweep<T, rows>; });
}

/// Returns the kernels of both accumulator types, indexed by rows - 1.
inline auto sweeps() { return std::tuple{sweep_table<float>(), sweep_table<double>()}; }

}  // namespace
}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::gemm_cpu {
namespace {
HWY_EXPORT(sweeps);

template <class T>
void few_rows(const RowMajorProduct& call, Context& context) {
  const Kernels<T>& ks = kernels<T>();
  const auto sweep = std::get<SweepFunction<T>* const*>(HWY_DYNAMIC_DISPATCH(sweeps)());
  const int threads = threads_worth(call, context.threads());
  const std::int64_t groups = ceil_div(call.m, ks.tile_rows);
  const std::int64_t block_k = few_rows_block(call.m);
  // Columns whose sums fill two thirds of L1.
  constexpr std::int64_t size = sizeof(T);
  const std::int64_t chunk =
      std::max<std::int64_t>(512, (32 << 10) / (call.m * size) / run_columns * run_columns);
  const std::int64_t pitch = copied_row<T>(chunk);
  const std::int64_t staging = round_up(call.m * pitch, 1024);
  const std::int64_t a_size = round_up(call.m * call.k, 1024);
  T* a = static_cast<T*>(context.workspace((a_size + threads * staging) * sizeof(T)));

  cpu::run_team(threads, [&](const cpu::Team& team) {
    // Shares end on cache lines, which avoids false sharing.
    const std::int64_t line = 64 / size;
    const cpu::Range share = team.share(ceil_div(call.n, line));
    const std::int64_t end = std::min(share.end * line, call.n);
    for (std::int64_t batch = 0; batch < call.batch; ++batch) {
      team.wait();  // until all threads have finished with the previous A
      const cpu::Range packing = team.share(call.k);
      for (std::int64_t p = packing.begin; p < packing.end; ++p) {
        for (std::int64_t i = 0; i < call.m; ++i) {
          const T x = *static_cast<const T*>(at(call.a, call.in, batch, i, p));
          a[p * call.m + i] = static_cast<T>(call.alpha) * x;
        }
      }
      team.wait();
      Sums<T> sums{call, ks, batch, true, a + a_size + team.rank() * staging, pitch};
      for (std::int64_t j = share.begin * line; j < end; j += chunk) {
        const std::int64_t columns = std::min(chunk, end - j);
        sums.j0 = j;
        Sweep<T> s{};
        s.a_column = call.m;
        s.b_row = call.b.row;
        s.c_row = pitch;
        for (std::int64_t p = 0; p < call.k; p += block_k) {
          s.k = std::min(block_k, call.k - p);
          s.beta = sums.beta(p == 0);
          for (std::int64_t x = 0; x < columns; x += run_columns) {
            s.columns = std::min(run_columns, columns - x);
            s.b = static_cast<const T*>(at(call.b, call.in, batch, p, j + x));
            // The first group of rows prefetches B. At the end of the chunk, the next rows follow.
            s.ahead = x + fetch_ahead < columns ? fetch_ahead
                                                : fetch_ahead - columns + block_k * call.b.row;
            for (std::int64_t g = 0; g < groups; ++g) {
              const cpu::Range rows =
                  cpu::part_of(call.m, static_cast<int>(g), static_cast<int>(groups));
              s.a = a + p * call.m + rows.begin;
              s.c = sums.at(rows.begin, j + x);
              sweep[rows.size() - 1](s);
              s.ahead = 0;
            }
          }
        }
        sums.finish(0, call.m, j, columns);
      }
    }
  });
}

Support supports(const Gemm::Args& args, const Context&) {
  if (args.c.empty()) return unsupported("C is empty");
  const RowMajorProduct call = row_major_product(args);
  if (call.in != call.out || (call.in != DType::f32 && call.in != DType::f64)) {
    return unsupported("takes f32 or f64 throughout");
  }
  if (call.m > max_rows) return unsupported("more than 32 rows");
  if (call.b.column != 1) return unsupported("takes contiguous rows in B");
  if (call.depth() == 0) return unsupported("k or alpha is 0");
  if (call.m * call.k > (1 << 20)) return unsupported("A is more than 4 MiB");
  return supported;
}

Work work(const Gemm::Args& args, const Context& context) {
  const RowMajorProduct call = row_major_product(args);
  const double m = static_cast<double>(call.m), n = static_cast<double>(call.n);
  const double sweeps =
      std::ceil(static_cast<double>(call.k) / static_cast<double>(few_rows_block(call.m)));
  return {.operations = vector_operations(static_cast<double>(call.batch * call.k) * (m + 1) *
                                              std::ceil(n / lanes_of(call)) +
                                          finish_fmas(call, true)),
          .blocks = call.batch,
          .steps = sweeps * m,
          .threads = threads_worth(call, context.threads())};
}

void run(const Gemm::Args& args, Context& context) {
  const RowMajorProduct call = row_major_product(args);
  visit<float, double>(call.in, [&]<class T>() { few_rows<T>(call, context); });
}

const Rung<Gemm> self{
    {.name = "few_rows", .after = "packed_simd", .supports = supports, .work = work, .run = run}};
}  // namespace
}  // namespace rung::gemm_cpu
#endif
