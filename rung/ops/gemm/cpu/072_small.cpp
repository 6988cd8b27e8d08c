// SPDX-License-Identifier: Apache-2.0
// gemm / small
//
// Idea     when A fits in the L2 cache, tiles may as well read it where it is: packing it would
//          only copy it from L2 to L2. B is read where it is, too, as long as a strip of it stays
//          in L1; from then on each thread packs its strips one by one, right before using them.
// Changes  against packed_simd: A is never copied, B at most once into 128 bytes x k that stay
//          near; threads need no barrier. Rows are divided evenly among tiles.
// Cost     A is read from L2 once for each 32 columns: 56 bytes for 448 multiply-adds.
// Limits   A beyond L2, or rows a multiple of 4 KiB apart: 14 lines of one set do not fit in the 12
//          ways of L1 (0.9 of packed_simd at 1024 on a 2-core Zen 5 vCPU; 1.03 at 512, 1.1 at
//          256).
// Tried    packing B always: -5 % at 100 and 128; never: -5 % at 512.
// Source   BLIS's "sup" path; OpenBLAS's small-matrix kernels.
#include "rung/cpu/team.hpp"
#include "rung/ops/gemm/cpu/detail/blocked.hpp"
#include "rung/ops/gemm/cpu/detail/estimate.hpp"

namespace rung {
namespace {
using namespace gemm_cpu;
using cpu::Range;
using cpu::Team;

/// Rows `rows` of C times columns `strips` of strips; `strip` has room for one strip of B.
template <class T>
void multiply(const Sums<T>& sums, Range rows, Range strips, T* strip) {
  const Call& call = sums.call;
  const Kernels<T>& ks = sums.kernels;
  if (rows.size() == 0) return;
  TileArgs<T> t{};
  t.k = call.k;
  t.a_row = call.a.row;
  t.a_column = call.a.column;
  t.b_row = call.b.row;
  t.c_row = sums.row;
  t.alpha = static_cast<T>(call.alpha);
  t.beta = sums.beta(true);
  const Source b_source = strip != nullptr ? Source::packed : Source::strided;
  for (std::int64_t s = strips.begin; s < strips.end; ++s) {
    const std::int64_t j = s * ks.tile_columns();
    t.columns = static_cast<int>(std::min<std::int64_t>(call.n - j, ks.tile_columns()));
    t.b = static_cast<const T*>(at(call.b, call.in, sums.batch, 0, j));
    const bool sliver = t.columns <= ks.sliver_columns && call.a.column == 1 && call.b.column == 1;
    if (!sliver && strip != nullptr) {
      pack_b(call, ks, sums.batch, 0, call.k, j, t.columns, strip);
      t.b = strip;
    }
    // Even tiles: a last one of two rows would not hide the latency of its FMAs.
    const int vectors = strip_width(ks, t.columns) / ks.lanes;
    const std::int64_t most = sliver         ? ks.sliver_rows
                              : vectors == 2 ? ks.tile_rows
                                             : ks.narrow_tile_rows;
    const std::int64_t step = ceil_div(rows.size(), ceil_div(rows.size(), most));
    for (std::int64_t i = rows.begin; i < rows.end; i += step) {
      t.a = static_cast<const T*>(at(call.a, call.in, sums.batch, i, 0));
      t.c = sums.at(i, j);
      const std::int64_t count = std::min(step, rows.end - i);
      sliver ? ks.slivers[count - 1](t) : ks.tile(Source::strided, b_source, vectors, count)(t);
    }
    sums.finish(rows.begin, rows.size(), j, t.columns);
  }
}

template <class T>
void small(const Call& call, Context& context) {
  const Kernels<T>& ks = kernels<T>();
  const std::int64_t strips = ceil_div(call.n, ks.tile_columns());
  const bool packed = packs_b(call, ks);
  const std::int64_t strip_size = round_up(call.k * ks.tile_columns(), 1024);
  int threads = threads_worth(call, context.threads());
  if (packed) {  // the workspace stays under 32 MiB
    constexpr std::int64_t most = 30 << 20;
    threads = static_cast<int>(std::min<std::int64_t>(
        threads, most / (strip_size * static_cast<std::int64_t>(sizeof(T)))));
  }
  T* workspace = nullptr;
  if (packed) workspace = static_cast<T*>(context.workspace(threads * strip_size * sizeof(T)));

  cpu::run_team(threads, [&](const Team& team) {
    T* strip = packed ? workspace + team.rank() * strip_size : nullptr;
    const bool by_matrix = call.batch >= team.size();
    const Range matrices = by_matrix ? team.share(call.batch) : Range{0, call.batch};
    Range my_rows{0, call.m};
    Range my_strips{0, strips};
    if (!by_matrix) {
      // By whichever is scheduled more evenly; by rows each thread would pack all of B.
      const std::int64_t row_share = ceil_div(call.m, team.size()) * call.n;
      const std::int64_t strip_share = ceil_div(strips, team.size()) * ks.tile_columns() * call.m;
      const bool by_rows =
          packed ? row_share + row_share / 16 < strip_share : row_share < strip_share;
      (by_rows ? my_rows : my_strips) = team.share(by_rows ? call.m : strips);
    }
    for (std::int64_t batch = matrices.begin; batch < matrices.end; ++batch) {
      multiply(make_sums<T>(call, ks, batch, nullptr, 0), my_rows, my_strips, strip);
    }
  });
}

Support supports(const Gemm::Args& args, const Context&) {
  if (args.c.empty()) return unsupported("C is empty");
  const Call call = make_call(args);
  if (call.in != call.out) return unsupported("takes f32 or f64 throughout");
  if (!call.direct()) return unsupported("takes f32 or f64, and rows or columns of C contiguous");
  if (call.depth() == 0) return unsupported("k or alpha is 0");
  if (call.k > 2048) return unsupported("k is more than 2048: a strip of B leaves the L2 cache");
  return supported;
}

double estimate(const Gemm::Args& args, const Context& context) {
  const Call call = make_call(args);
  const int threads = threads_worth(call, context.threads());
  return call.in == DType::f64 ? small_seconds<double>(call, threads)
                               : small_seconds<float>(call, threads);
}

void run(const Gemm::Args& args, Context& context) {
  const Call call = make_call(args);
  visit<float, double>(call.in, [&]<class T>() { small<T>(call, context); });
}

const Rung<Gemm> self{{.name = "small",
                       .step = 72,
                       .after = "packed_simd",
                       .supports = supports,
                       .estimate = estimate,
                       .run = run}};
}  // namespace
}  // namespace rung
