// SPDX-License-Identifier: Apache-2.0
// gemm / small
//
// Idea     when A fits in the L2 cache, tiles may as well read it where it is: packing it would
//          only copy it from L2 to L2. B is read where it is, too, as long as a strip of it stays
//          in L1; from then on each thread packs its strips one by one, right before using them.
// Changes  against packed_simd: A is never copied, B at most once into 128 bytes x k that stay
//          near; threads need no barrier. Rows are divided evenly among tiles, and threads take
//          whole tiles: the same bits for any number of threads. Where all of B stays in L1, k
//          being short, tiles go along rows of C. Up to twelve last columns go along k
//          (detail/sliver-inl.hpp), four at a time.
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

/// One of so many parts of C's rows, in whole tiles. Their heights depend on C alone: so do the
/// bits then, and not on the number of threads.
struct RowShare {
  int part = 0;
  int parts = 1;

  /// f(first, count) for each of its tiles, of at most `max_height` rows. They are even: a last one
  /// of two rows would not hide the latency of its FMAs. Returns which rows these are.
  template <class F>
  Range for_tiles(std::int64_t rows, std::int64_t max_height, F&& f) const {
    const std::int64_t height = ceil_div(rows, ceil_div(rows, max_height));
    const Range tiles = cpu::part_of(ceil_div(rows, height), part, parts);
    for (std::int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
      f(tile * height, std::min(height, rows - tile * height));
    }
    return {std::min(tiles.begin * height, rows), std::min(tiles.end * height, rows)};
  }
};

/// A share of C's rows times columns `strips` of strips. `packed` has room for what copies_of()
/// says.
template <class T>
void multiply(const Sums<T>& sums, const RowShare& share, Range strips, T* packed) {
  const Call& call = sums.call;
  const Kernels<T>& ks = sums.kernels;
  const Copies copies = copies_of(call, ks);
  const std::int64_t width = ks.tile_columns();
  TileArgs<T> t{};
  t.k = call.k;
  t.a_row = call.a.row;
  t.a_column = call.a.column;
  t.b_row = call.b.row;
  t.c_row = sums.row;
  t.alpha = static_cast<T>(call.alpha);
  t.beta = sums.beta(true);
  const Source b_source = copies == Copies::none ? Source::strided : Source::packed;
  const auto columns_at = [&](std::int64_t j) { return std::min(call.n - j, width); };
  const auto in_place = [&](std::int64_t j) {
    return static_cast<const T*>(at(call.b, call.in, sums.batch, 0, j));
  };
  // A tile of `count` rows from i on, of the strip from column j on, which is at t.b.
  const auto tile = [&](std::int64_t i, std::int64_t count, std::int64_t j) {
    t.columns = static_cast<int>(columns_at(j));
    t.a = static_cast<const T*>(at(call.a, call.in, sums.batch, i, 0));
    t.c = sums.at(i, j);
    ks.tile(Source::strided, b_source, strip_width(ks, t.columns) / ks.lanes, count)(t);
  };
  // Columns [j, n) by slivers, for each of which A is read again.
  const auto slivers = [&](std::int64_t i, std::int64_t count, std::int64_t j) {
    t.a = static_cast<const T*>(at(call.a, call.in, sums.batch, i, 0));
    for (; j < call.n; j += ks.sliver_columns) {
      t.columns = static_cast<int>(std::min<std::int64_t>(call.n - j, ks.sliver_columns));
      t.b = in_place(j);
      t.c = sums.at(i, j);
      ks.slivers[count - 1](t);
    }
  };
  const bool last_by_slivers = by_slivers(call, ks);
  if (copies != Copies::strip && b_stays_near(call, ks) && call.n > width) {
    // All strips stay in L1: along rows of C, whose lines are then written once.
    const std::int64_t first = strips.begin * width;
    if (copies == Copies::whole) {
      const std::int64_t columns = std::min(strips.end * width, call.n) - first;
      pack_b(call, ks, sums.batch, 0, call.k, first, columns, packed);
    }
    share.for_tiles(call.m, ks.tile_rows, [&](std::int64_t i, std::int64_t count) {
      for (std::int64_t s = strips.begin; s < strips.end; ++s) {
        const std::int64_t j = s * width;
        t.b = copies == Copies::whole ? packed + (j - first) * call.k : in_place(j);
        tile(i, count, j);
      }
      sums.finish(i, count, first, std::min(strips.end * width, call.n) - first);
    });
    return;
  }
  for (std::int64_t s = strips.begin; s < strips.end; ++s) {
    const std::int64_t j = s * width;
    const std::int64_t columns = columns_at(j);
    Range rows;
    if (last_by_slivers && j + width >= call.n) {
      rows = share.for_tiles(call.m, ks.sliver_rows,
                             [&](std::int64_t i, std::int64_t count) { slivers(i, count, j); });
    } else {
      const bool narrow = strip_width(ks, columns) == ks.lanes;
      t.b = in_place(j);
      if (copies != Copies::none) {
        pack_b(call, ks, sums.batch, 0, call.k, j, columns, packed);
        t.b = packed;
      }
      rows = share.for_tiles(call.m, narrow ? ks.narrow_tile_rows : ks.tile_rows,
                             [&](std::int64_t i, std::int64_t count) { tile(i, count, j); });
    }
    sums.finish(rows.begin, rows.size(), j, columns);
  }
}

template <class T>
void small(const Call& call, Context& context) {
  const Kernels<T>& ks = kernels<T>();
  const std::int64_t strips = ceil_div(call.n, ks.tile_columns());
  const Copies copies = copies_of(call, ks);
  const std::int64_t copied_strips = copies == Copies::whole ? strips : 1;
  const std::int64_t copy_size = round_up(call.k * ks.tile_columns() * copied_strips, 1024);
  int threads = threads_worth(call, context.threads());
  T* workspace = nullptr;
  if (copies != Copies::none) {  // the workspace stays under 32 MiB
    constexpr std::int64_t most = 30 << 20;
    threads = static_cast<int>(
        std::min<std::int64_t>(threads, most / (copy_size * static_cast<std::int64_t>(sizeof(T)))));
    workspace = static_cast<T*>(context.workspace(threads * copy_size * sizeof(T)));
  }

  cpu::run_shares(threads, [&](const Team& team) {
    T* packed = workspace + team.rank() * copy_size;
    const bool by_matrix = call.batch >= team.size();
    const Range matrices = by_matrix ? team.share(call.batch) : Range{0, call.batch};
    RowShare my_rows;
    Range my_strips{0, strips};
    if (!by_matrix) {
      // By whichever is scheduled more evenly. By rows each thread packs all of B, which takes as
      // long as some rows of C; by strips each reads all of A, and next to each other they write
      // the pairs of lines that the processor fetches together (f32 6120x64x3 by two threads of a
      // Xeon: 121 us, by rows 33, by one thread 51).
      constexpr std::int64_t rows_of_packing = 16;
      const std::int64_t packing = copies != Copies::none ? rows_of_packing * call.n : 0;
      const std::int64_t tiles = ceil_div(ceil_div(call.m, ks.tile_rows), team.size());
      const std::int64_t row_share = std::min(call.m, tiles * ks.tile_rows) * call.n;
      const std::int64_t strip_share = ceil_div(strips, team.size()) * ks.tile_columns() * call.m;
      const bool by_rows = row_share + packing <= strip_share + strip_share / 16;
      if (by_rows) {
        my_rows = {team.rank(), team.size()};
      } else {
        my_strips = team.share(strips);
      }
    }
    for (std::int64_t batch = matrices.begin; batch < matrices.end; ++batch) {
      multiply(make_sums<T>(call, ks, batch, nullptr, 0), my_rows, my_strips, packed);
    }
  });
}

Support supports(const Gemm::Args& args, const Context&) {
  if (args.c.empty()) return unsupported("C is empty");
  const Call call = make_call(args);
  if (call.in != call.out) return unsupported("takes f32 or f64 throughout");
  if (!call.direct()) return unsupported("takes f32 or f64, and rows or columns of C contiguous");
  if (call.depth() == 0) return unsupported("k or alpha is 0");
  const bool copied = call.in == DType::f64 ? copies_of(call, kernels<double>()) == Copies::strip
                                            : copies_of(call, kernels<float>()) == Copies::strip;
  if (copied && call.k > 2048) {
    return unsupported("k is more than 2048: a strip of B leaves the L2 cache");
  }
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
                       .after = "packed_simd",
                       .supports = supports,
                       .estimate = estimate,
                       .run = run}};
}  // namespace
}  // namespace rung
