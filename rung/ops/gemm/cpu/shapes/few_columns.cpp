// SPDX-License-Identifier: Apache-2.0
// gemm / few columns
//
// Idea     with few columns in B, the time is that of reading A: A is read once, in place, in
//          panels of eight adjacent rows, each row prefetched 1 KiB ahead and, near its end, the
//          next panel's rows.
// Changes  against packed_simd: A is neither packed nor split into blocks of k; its loads overlap
//          with arithmetic instead of preceding it.
// Cost     A once from memory; packed B from L2 once per eight rows.
// Limits   up to two vectors of columns (32 f32 on AVX-512), rows of A contiguous. Narrow types
//          are widened into a buffer first, a block of k at a time.
// Source   measured here.
#include "rung/cpu/foreach_target.hpp"

#include <tuple>

#include "rung/cpu/team.hpp"
#include "rung/ops/gemm/cpu/detail/blocked.hpp"
#include "rung/ops/gemm/cpu/detail/facts.hpp"
#include "rung/ops/gemm/cpu/detail/tile-inl.hpp"

// Kernels of few_columns: a panel of rows is streamed from memory, read in place and prefetched.
#ifndef RUNG_OPS_GEMM_CPU_75_PANEL
#define RUNG_OPS_GEMM_CPU_75_PANEL
namespace rung::gemm_cpu {
namespace {
/// Arguments of a tile whose rows of A are streamed once. Every 64 bytes of a row, the tile
/// prefetches one line per row; the address starts at `fetch`, or at `later` once k reaches `turn`,
/// and advances by `bytes`.
template <class T>
struct Panel {
  TileArgs<T> tile;
  const char* fetch;
  std::int64_t fetch_row;  // bytes
  std::int64_t bytes;
  std::int64_t turn;  // the k at which prefetching switches to `later`
  const char* later;
};
template <class T>
using PanelFunction = void(const Panel<T>&);
/// Table of kernels, indexed by vectors - 1 and rows - 1, and the maximum number of rows per number
/// of vectors.
template <class T>
struct Panels {
  PanelFunction<T>* const* functions[2];
  int max_rows[2];
};
}  // namespace
}  // namespace rung::gemm_cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {
namespace {

// Maximum rows per panel: 8 accumulators hide the FMA latency. More than 8 streams exceed the
// prefetchers, and at power-of-two pitch more than 12 lines per set overflow L1.
template <int vectors>
constexpr int panel_rows = tile_rows < 8 && vectors == 2 ? tile_rows : 8;

template <class T, int rows, int vectors>
void panel(const Panel<T>& s) {
  const TileArgs<T>& t = s.tile;
  const Full<T> d;
  using V = hn::Vec<Full<T>>;
  const auto last = hn::FirstN(d, static_cast<std::size_t>(t.columns - (vectors - 1) * lanes<T>()));
  V acc[rows][vectors];
#pragma GCC unroll 32
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < vectors; ++j) acc[i][j] = hn::Zero(d);
  }
  constexpr int line = 64 / sizeof(T);
  const T* a = t.a;
  const T* b = t.b;
  const char* fetch = s.fetch;
  for (std::int64_t p = 0; p < t.k; p += line, fetch += s.bytes) {
    if (p >= s.turn && p - line < s.turn) fetch = s.later;
    for (int i = 0; i < rows; ++i) __builtin_prefetch(fetch + i * s.fetch_row);
    const int steps = static_cast<int>(std::min<std::int64_t>(line, t.k - p));
#pragma GCC unroll 2
    for (int q = 0; q < steps; ++q) {
      V row[vectors];
      load_b_row<vectors, Source::packed>(d, b, last, row);
      update<rows, vectors, Source::strided>(d, a, t.a_row, row, acc);
      ++a;
      b += vectors * lanes<T>();
    }
  }
  write_tile<rows, vectors>(d, t, last, acc);
}

template <class T, int vectors>
PanelFunction<T>* const* panel_table() {
  return table_by_rows<PanelFunction<T>, panel_rows<vectors>>(
      []<int rows>() { return &panel<T, rows, vectors>; });
}

template <class T>
Panels<T> panels_of() {
  return {{panel_table<T, 1>(), panel_table<T, 2>()}, {panel_rows<1>, panel_rows<2>}};
}

/// Returns the tables of both accumulator types.
inline auto panels() { return std::tuple{panels_of<float>(), panels_of<double>()}; }

}  // namespace
}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::gemm_cpu {
namespace {
HWY_EXPORT(panels);

constexpr std::int64_t block_k = 512;  // steps of k widened at a time
template <class T>
constexpr std::int64_t prefetch_distance = 1024 / sizeof(T);

template <class T>
void few_columns(const RowMajorProduct& call, Context& context) {
  const Kernels<T>& ks = kernels<T>();
  const auto kernel = std::get<Panels<T>>(HWY_DYNAMIC_DISPATCH(panels)());
  const int in = static_cast<int>(call.in);
  const bool widened = size_of(call.in) != sizeof(T);
  const std::int64_t row_bytes = call.a.row * static_cast<std::int64_t>(size_of(call.in));
  const std::int64_t line_bytes = 64 / sizeof(T) * size_of(call.in);
  const auto address = [&](std::int64_t batch, std::int64_t row, std::int64_t column) {
    return static_cast<const char*>(at(call.a, call.in, batch, row, column));
  };
  const int threads = threads_worth(call, context.threads());
  const int width = strip_width(ks, call.n);
  const int vectors = width / ks.lanes;
  const std::int64_t most = kernel.max_rows[vectors - 1];
  const std::int64_t a_row = copied_row<T>(block_k);
  const std::int64_t a_size = widened ? round_up(most * a_row, 1024) : 0;
  const std::int64_t own = a_size + round_up(most * width, 1024);
  const std::int64_t b_size = round_up(call.k * width, 1024);
  T* b = static_cast<T*>(context.workspace((b_size + threads * own) * sizeof(T)));

  cpu::run_team(threads, [&](const cpu::Team& team) {
    T* a = b + b_size + team.rank() * own;
    for (std::int64_t batch = 0; batch < call.batch; ++batch) {
      team.wait();
      const cpu::Range blocks = team.share(ceil_div(call.k, block_k));
      for (std::int64_t x = blocks.begin; x < blocks.end; ++x) {
        const std::int64_t p = x * block_k;
        pack_b(call, ks, batch, p, std::min(block_k, call.k - p), 0, call.n, b + p * width);
      }
      team.wait();
      Sums<T> sums = make_sums(call, ks, batch, a + a_size, width);
      const cpu::Range rows = team.share(call.m);
      for (std::int64_t i = rows.begin; i < rows.end; i += most) {
        const std::int64_t count = std::min(most, rows.end - i);
        if (sums.staged) sums.i0 = i;
        PanelFunction<T>* const multiply = kernel.functions[vectors - 1][count - 1];
        TileArgs<T> tile{};
        tile.a_column = 1;
        tile.b_row = width;
        tile.c = sums.at(i, 0);
        tile.c_row = sums.row;
        tile.columns = static_cast<int>(call.n);
        tile.alpha = static_cast<T>(call.alpha);
        const std::int64_t next = i + count < rows.end ? i + count : i;
        if (!widened) {
          const std::int64_t ahead = std::min(call.k, prefetch_distance<T>);
          tile.k = call.k;
          tile.a = static_cast<const T*>(at(call.a, call.in, batch, i, 0));
          tile.a_row = call.a.row;
          tile.b = b;
          tile.beta = sums.beta(true);
          multiply({tile, address(batch, i, ahead), row_bytes, 64, call.k - ahead,
                    address(batch, next, 0)});
        } else {
          for (std::int64_t p = 0; p < call.k; p += block_k) {
            tile.k = std::min(block_k, call.k - p);
            ks.copy[in](at(call.a, call.in, batch, i, p), call.a.row, count, tile.k, a, a_row);
            tile.a = a;
            tile.a_row = a_row;
            tile.b = b + p * width;
            tile.beta = sums.beta(p == 0);
            const char* following =
                p + block_k < call.k ? address(batch, i, p + block_k) : address(batch, next, 0);
            multiply({tile, following, row_bytes, line_bytes, tile.k, following});
          }
        }
        sums.finish(i, count, 0, call.n);
      }
    }
  });
}

Support supports(const Gemm::Args& args, const Context&) {
  if (args.c.empty()) return unsupported("C is empty");
  if (args.has_bytes()) return unsupported("8-bit operands");
  const RowMajorProduct call = row_major_product(args);
  const int width = columns_of_tile(call);
  if (call.n > width) return unsupported("more columns than two vectors hold");
  if (call.a.column != 1) return unsupported("takes contiguous rows in A");
  if (call.depth() == 0) return unsupported("k or alpha is 0");
  if (call.k * width > (1 << 21)) return unsupported("B is more than 8 MiB when packed");
  return supported;
}

Work work(const Gemm::Args& args, const Context& context) {
  const RowMajorProduct call = row_major_product(args);
  constexpr std::int64_t rows = 8;  // per panel
  const std::int64_t panels = ceil_div(call.m, rows);
  return with_sums(call.in, [&]<class T>() -> Work {
    const Kernels<T>& ks = kernels<T>();
    const double fmas = strip_elements(call, ks) / ks.lanes * static_cast<double>(call.m);
    const int threads = threads_worth(call, context.threads());
    return {.operations = vector_operations(static_cast<double>(call.batch) * fmas +
                                            finish_fmas(call, false)),
            .blocks = call.batch * panels,
            .steps = strip_elements(call, ks) / static_cast<double>(panels),
            .threads = threads,
            .path = call.batch > 1 && threads > 1 ? "waits" : b_path(call)};
  });
}

void run(const Gemm::Args& args, Context& context) {
  const RowMajorProduct call = row_major_product(args);
  with_sums(call.in, [&]<class T>() { few_columns<T>(call, context); });  // f16, bf16 are widened
}

const Rung<Gemm> self{
    {.name = "few_columns", .after = "few_rows", .supports = supports, .work = work, .run = run}};
}  // namespace
}  // namespace rung::gemm_cpu
#endif
