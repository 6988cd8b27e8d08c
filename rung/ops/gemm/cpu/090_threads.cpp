// SPDX-License-Identifier: Apache-2.0
// gemm / threads
//
// Idea     packed_simd by a team: all threads pack one block of B together and share it; each then
//          multiplies its own rows (or a rectangle of rows and columns) of A by it.
// Changes  against packed_simd: the packed B of a team is double-buffered, so that one barrier a
//          block suffices - whoever is ahead packs the next block while others still read this one.
//          Strips of B are packed by the tiles before them, or brought from L3, in the shadow of
//          their FMAs (detail/ahead.hpp). Rows are scheduled dynamically: on a
//          2-core Zen 5 vCPU +0 to +1 % alone (AVX2 -1 % to +1 %), at 2048 cubed 238 to 308 GFLOP/s
//          where another program takes half of one core. Many small matrices go one to a thread
//          instead.
// Cost     as packed_simd; A is packed once for each column of the grid of threads.
// Limits   the general rung: every valid call. Shapes with one short side do better in the special
//          rungs.
// Tried    packing blocks of A that way, too, four elements every 8 steps: one thread 0 to +1 % at
//          2048 and 4096, two threads -3 % at 1024 and 4096, AVX2 -2 %. Asking for the next block's
//          rows instead: nothing.
// Source   T. Smith et al., Anatomy of High-Performance Many-Threaded Matrix Multiplication, 2014.
#include <algorithm>
#include <atomic>
#include <optional>

#include "rung/cpu/team.hpp"
#include "rung/ops/gemm/cpu/detail/ahead.hpp"
#include "rung/ops/gemm/cpu/detail/estimate.hpp"

// One thread's share of a packed multiplication by a team: packing its part of B, and its rows and
// columns of C. Rows are scheduled as threads get on with them.
namespace rung::gemm_cpu {

/// How many rows have been taken beyond the first blocks, in pieces of k of even and of odd number
/// (their parity). A thread that is ahead may begin with the next piece, but takes nothing of it
/// before all have met there.
struct Taken {
  alignas(64) std::atomic<std::int64_t> rows[2] = {};
};

/// Rows [begin, end), which `workers` threads share: each begins with a block of its own, the same
/// in all pieces of k, and who is done takes another. Towards the end they grow smaller, for all to
/// end together, whoever was held up meanwhile.
struct Rows {
  std::int64_t begin, end;
  std::int64_t most;  // at a time
  std::int64_t tile;  // a multiple of so many
  int workers, worker;
  Taken& taken;

  [[nodiscard]] cpu::Range first() const { return up_to(begin + worker * most, most); }
  /// To be called by one, when all have met in a piece of this parity.
  void restart(int parity) const { taken.rows[parity].store(0, std::memory_order_relaxed); }
  [[nodiscard]] cpu::Range take(int parity) const {
    const std::int64_t from = begin + workers * most;
    std::atomic<std::int64_t>& rows = taken.rows[parity];
    std::int64_t before = rows.load(std::memory_order_relaxed);
    for (;;) {
      const std::int64_t left = end - from - before;
      if (left <= 0) return {end, end};
      // A strip of B has to be worth fetching from L3 for the tiles of a block.
      const std::int64_t least = std::min(most, 3 * tile);
      const std::int64_t fair = round_up(ceil_div(left, std::int64_t{2} * workers), tile);
      const std::int64_t some = workers == 1 ? most : std::clamp(fair, least, most);
      if (rows.compare_exchange_weak(before, before + some, std::memory_order_relaxed)) {
        return up_to(from + before, some);
      }
    }
  }

 private:
  [[nodiscard]] cpu::Range up_to(std::int64_t at, std::int64_t count) const {
    return {std::min(at, end), std::min(at + count, end)};
  }
};

/// What one thread does of a part of C as wide as packed B: its rows and strips, over all of k.
template <class T>
struct Share {
  const Call& call;
  const Kernels<T>& ks;
  std::int64_t batch;
  const Sums<T>& sums;
  const cpu::Team& team;
  Rows rows;
  std::int64_t j, columns;     // of the part
  cpu::Range strips, packing;  // to multiply by, to pack
  T* a;                        // room for a block of A

  [[nodiscard]] std::int64_t width(std::int64_t strip) const {
    return std::min<std::int64_t>(ks.tile_columns(), columns - strip * ks.tile_columns());
  }
  [[nodiscard]] std::int64_t column(std::int64_t strip) const {
    return j + strip * ks.tile_columns();
  }
  [[nodiscard]] T* packed(T* b, std::int64_t strip, std::int64_t k) const {
    return b + strip * ks.tile_columns() * k;
  }

  void pack_strips(T* b, cpu::Range range, std::int64_t p, std::int64_t k) const {
    if (range.size() == 0) return;
    pack_b(call, ks, batch, p, k, column(range.begin),
           std::min(column(range.end), j + columns) - column(range.begin),
           packed(b, range.begin, k));
  }

  /// The strips of `range`, one after the other. With `pack`, each is packed by the one before it;
  /// without, it has been.
  void multiply(const Block& block, const PackedA<T>& panels, T* b, cpu::Range range,
                std::int64_t p, bool pack) const {
    if (pack) pack_strips(b, {range.begin, std::min(range.begin + 1, range.end)}, p, block.k);
    for (std::int64_t s = range.begin; s < range.end; ++s) {
      std::optional<NextStrip<T>> next;
      if (pack && s + 1 < range.end) {
        next.emplace(call, ks, batch, p, block.k, column(s + 1), width(s + 1),
                     block.rows / ks.tile_rows, packed(b, s + 1, block.k));
      }
      const std::int64_t after = s + 1 < range.end ? s + 1 : strips.begin;
      ComingStrip<T> coming(packed(b, after, block.k), pack ? 0 : width(after) * block.k,
                            block.rows / ks.tile_rows, block.k);
      InterleavedPacking<T> background_packing;
      multiply_strip(sums, block, panels, packed(b, s, block.k), column(s), width(s),
                     [&](TileArgs<T>& t, bool full) {
                       background_packing = !full  ? InterleavedPacking<T>{}
                                            : next ? next->part()
                                                   : coming.part();
                       t.background_packing = &background_packing;
                     });
      if (next) next->finish();
    }
  }

  /// One piece of k: rows [p, p + k) of B, which go to b. Parities alternate.
  void multiply(std::int64_t p, std::int64_t k, T* b, int parity) const {
    const auto meet = [&] {
      team.wait();
      if (rows.worker == 0) rows.restart(1 - parity);
    };
    const cpu::Range own = rows.first();
    const bool ahead = NextStrip<T>::worth_it(call, k) && own.size() > 0;
    if (!ahead) {
      pack_strips(b, packing, p, k);
      meet();
    }
    for (cpu::Range some = own; some.size() > 0; some = rows.take(parity)) {
      const Block block{some.begin, some.size(), k, p == 0, p + k == call.k};
      const PackedA<T> panels = ahead ? pack_panels(call, ks, batch, block.i, block.rows, p, k, a)
                                      : pack_a(call, ks, batch, block.i, block.rows, p, k, a);
      if (!ahead || some.begin != own.begin) {
        multiply(block, panels, b, strips, p, false);
        continue;
      }
      multiply(block, panels, b, packing, p, true);
      meet();
      multiply(block, panels, b, {packing.end, strips.end}, p, false);
      multiply(block, panels, b, {strips.begin, packing.begin}, p, false);
    }
  }
};

}  // namespace rung::gemm_cpu

namespace rung {
namespace {
using namespace gemm_cpu;
using cpu::Range;
using cpu::Team;

// The team as a grid over C.
struct Grid {
  int rows, columns;
};

// The grid whose largest share is smallest. Shares are counted in tiles, for a tile is the least
// that a thread can do; equals prefer more rows, as then A is packed fewer times. Without columns
// rows are scheduled on the way, and the shares come out even if there are enough of them.
Grid make_grid(std::int64_t panels, std::int64_t strips, int threads) {
  Grid best{threads, 1};
  std::int64_t least = panels >= 8 * threads ? ceil_div(panels * strips, threads)
                                             : ceil_div(panels, threads) * strips;
  for (int rows = threads - 1; rows >= 1; --rows) {
    if (threads % rows != 0) continue;
    const std::int64_t share = ceil_div(panels, rows) * ceil_div(strips, threads / rows);
    if (share < least) least = share, best = {rows, threads / rows};
  }
  return best;
}

// One thread alone has nobody to wait for, and less of the caches to fill.
constexpr int b_buffers(int threads) { return threads > 1 ? 2 : 1; }

struct Buffers {
  std::int64_t b, a, staging;  // elements: one B buffer, one block of A, all of the staging
  [[nodiscard]] std::size_t bytes(int threads, std::size_t size) const {
    return (b_buffers(threads) * b + threads * a + staging) * size;
  }
};

template <class T>
Buffers buffers_of(const Call& call, const Blocking& block) {
  // Whole cache lines, so that no thread's vectors straddle two.
  return {block.kc * block.nc, block.mc * copied_row<T>(block.kc),
          call.direct() ? 0 : std::min(call.m, block.staged_rows) * copied_row<T>(block.nc)};
}

template <class T>
void multiply(const Call& call, const Kernels<T>& ks, const Blocking& block, std::int64_t batch,
              T* workspace, const Team& team, Taken& taken) {
  const Buffers buffers = buffers_of<T>(call, block);
  const bool staged = !call.direct();
  T* blocks_of_a = workspace + b_buffers(team.size()) * buffers.b;
  T* a = blocks_of_a + team.rank() * buffers.a;
  T* staging = blocks_of_a + team.size() * buffers.a;
  Sums<T> sums = make_sums(call, ks, batch, staging, copied_row<T>(block.nc));
  const std::int64_t rows_at_once = staged ? block.staged_rows : call.m;
  int piece = 0;
  int pieces_done[2] = {};  // pieces whose rows each thread had to itself, and all shared
  Taken own;
  if (team.rank() == 0) taken.rows[0].store(0, std::memory_order_relaxed);
  for (std::int64_t j = 0; j < call.n; j += block.nc) {
    const std::int64_t columns = std::min(block.nc, call.n - j);
    const std::int64_t strips = ceil_div<std::int64_t>(columns, ks.tile_columns());
    for (std::int64_t group = 0; group < call.m; group += rows_at_once) {
      // Others may still be adding up, or reading, what is staged.
      if (staged && j + group != 0) team.wait();
      const std::int64_t group_rows = std::min(rows_at_once, call.m - group);
      const std::int64_t panels = ceil_div<std::int64_t>(group_rows, ks.tile_rows);
      const Grid grid = make_grid(panels, strips, team.size());
      const bool shared = grid.columns == 1;  // all rows by all threads
      const int grid_row = team.rank() / grid.columns;
      const Range my_panels = shared ? Range{0, panels} : cpu::part_of(panels, grid_row, grid.rows);
      const Range my_strips = cpu::part_of(strips, team.rank() % grid.columns, grid.columns);
      // Those of a column of the grid share its strips.
      const Range packing = cpu::part_of(my_strips.size(), grid_row, grid.rows);
      const std::int64_t begin = group + my_panels.begin * ks.tile_rows;
      const std::int64_t end = std::min(group + my_panels.end * ks.tile_rows, call.m);
      // Equal blocks of rows, as a short last one would use the packed strips of B badly.
      const int workers = shared ? team.size() : 1;
      const std::int64_t steps =
          workers * std::max<std::int64_t>(1, ceil_div(end - begin, workers * block.mc));
      const std::int64_t mc = round_up<std::int64_t>(ceil_div(end - begin, steps), ks.tile_rows);
      if (staged) sums.i0 = group, sums.j0 = j;

      const Share<T> share{
          call,
          ks,
          batch,
          sums,
          team,
          {begin, end, mc, ks.tile_rows, workers, shared ? grid_row : 0, shared ? taken : own},
          j,
          columns,
          my_strips,
          {my_strips.begin + packing.begin, my_strips.begin + packing.end},
          a};
      for (std::int64_t p = 0; p < call.k; p += block.kc, ++piece) {
        share.multiply(p, std::min(block.kc, call.k - p),
                       workspace + piece % b_buffers(team.size()) * buffers.b,
                       pieces_done[shared ? 1 : 0]++ % 2);
      }
    }
  }
}

template <class T>
void threads(const Call& call, Context& context) {
  if (call.depth() == 0) return finish_without_product<T>(call);
  const Kernels<T>& ks = kernels<T>();
  // For any number of threads pieces of k are of one length, best for two (BlockLimits), as sums
  // begin anew in each, and the workspace stays under 32 MiB: panels of A fit 8 MiB.
  constexpr std::int64_t k_bytes = 4096, bytes_of_a = 8 << 20;
  const auto most = static_cast<int>(bytes_of_a / (ks.tile_rows * k_bytes));
  const int team_size = std::min(threads_worth(call, context.threads()), most);
  const bool one_each = call.batch >= team_size;  // a matrix per thread needs no barrier at all
  BlockLimits limits = block_limits();
  limits.k_bytes = k_bytes;
  limits.a_bytes = std::min(limits.a_bytes, bytes_of_a / team_size);
  if (one_each) {
    limits.b_bytes = (8 << 20) / team_size;
    limits.staged_bytes = (8 << 20) / team_size;
  }
  const Blocking block = make_blocking(call, ks, limits);
  const Buffers buffers = buffers_of<T>(call, block);
  if (one_each) {
    const std::size_t each = buffers.bytes(1, sizeof(T)) / 64 * 64 + 64;
    char* workspace = static_cast<char*>(context.workspace(each * team_size));
    cpu::run_shares(team_size, [&](const Team& team) {
      const Range mine = team.share(call.batch);
      T* own = reinterpret_cast<T*>(workspace + team.rank() * each);
      Taken taken;
      for (std::int64_t batch = mine.begin; batch < mine.end; ++batch) {
        multiply(call, ks, block, batch, own, Team(0, 1, nullptr), taken);
      }
    });
    return;
  }
  T* workspace = static_cast<T*>(context.workspace(buffers.bytes(team_size, sizeof(T))));
  Taken taken;
  cpu::run_team(team_size, [&](const Team& team) {
    for (std::int64_t batch = 0; batch < call.batch; ++batch) {
      multiply(call, ks, block, batch, workspace, team, taken);
      // The next matrix packs into the buffer that others may still be reading.
      team.wait();
    }
  });
}

double estimate(const Gemm::Args& args, const Context& context) {
  const Call call = make_call(args);
  return packed_seconds(call, threads_worth(call, context.threads()));
}

void run(const Gemm::Args& args, Context& context) {
  if (args.c.empty()) return;
  const Call call = make_call(args);
  if (call.in == DType::f64) {
    threads<double>(call, context);
  } else {
    threads<float>(call, context);
  }
}

const Rung<Gemm> self{{.name = "threads",
                       .step = 90,
                       .after = "packed_simd",
                       .supports = require_wide_operands,
                       .estimate = estimate,
                       .run = run}};
}  // namespace
}  // namespace rung
