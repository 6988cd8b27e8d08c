// SPDX-License-Identifier: Apache-2.0
// gemm / threads
//
// Idea     packed_simd by a team: all threads pack one block of B together and share it; each
//          thread then multiplies its own rows (or a rectangle of rows and columns) of A by the
//          block.
// Changes  against packed_simd: the packed B of a team is double-buffered, so that one barrier per
//          block suffices: a thread that is ahead packs the next block while others read this one.
//          Tiles pack the strip of B after theirs, or prefetch it from L3, in the shadow of their
//          FMAs. Rows are scheduled dynamically; many small matrices go one per thread instead.
// Cost     As packed_simd; A is packed once per column of the grid of threads.
// Limits   Every valid call. Shapes with one short side do better in the special rungs.
// Source   T. Smith et al., Anatomy of High-Performance Many-Threaded Matrix Multiplication, 2014.
#include <algorithm>
#include <atomic>
#include <optional>

#include "rung/cpu/team.hpp"
#include "rung/ops/gemm/cpu/detail/blocked.hpp"
#include "rung/ops/gemm/cpu/detail/facts.hpp"

namespace rung {
namespace {
using namespace gemm_cpu;
using cpu::Range;
using cpu::Team;

/// Strip of B packed in the shadow of the tiles that read the preceding strip, a part every few
/// steps (InterleavedPacking). A tile issues 28 FMAs per 16 loads and no store, so they hide the
/// packing, which on its own would wait for memory.
template <class T>
class NextStrip {
 public:
  /// Returns whether interleaved packing pays. Rows of B are copied, so they must be contiguous and
  /// of the packed type. Each row is on a page of its own, and beyond 1024 pages the TLB evicts
  /// some before the next strip (2-core Zen 5 vCPU, 2048 rows at 2048 and 4096 cubed: -1 %; 1024
  /// rows: 0, at 1024 cubed +3 %, with two threads +2 % to +10 % from run to run).
  static bool worth_it(const RowMajorProduct& call, std::int64_t k) {
    return k <= 1024 && call.b.column == 1 && call.in == dtype_of<T>;
  }

  /// Prepares packing columns [j, j + columns) of rows [p, p + k) by `tiles` tiles of k steps.
  NextStrip(const RowMajorProduct& call, const Kernels<T>& ks, std::int64_t batch, std::int64_t p,
            std::int64_t k, std::int64_t j, std::int64_t columns, std::int64_t tiles, T* to)
      : call_(call),
        ks_(ks),
        batch_(batch),
        p_(p),
        k_(k),
        j_(j),
        columns_(columns),
        to_(to),
        at_once_(tiles < 4   ? 4
                 : tiles < 8 ? 2
                             : 1) {}

  /// Returns the part that the next tile packs.
  InterleavedPacking<T> part() {
    const std::int64_t rows = k_ / packing_steps * at_once_;
    if (columns_ != ks_.tile_columns() || done_ + rows > k_) return {};
    const auto* from = static_cast<const T*>(at(call_.b, call_.in, batch_, p_ + done_, j_));
    T* const to = to_ + done_ * columns_;
    done_ += rows;
    return {at_once_, from, call_.b.row, to};
  }
  /// Packs the rows that no tile has packed.
  void finish() const {
    if (done_ == k_) return;
    pack_b(call_, ks_, batch_, p_ + done_, k_ - done_, j_, columns_, to_ + done_ * columns_);
  }

 private:
  const RowMajorProduct& call_;
  const Kernels<T>& ks_;
  std::int64_t batch_, p_, k_, j_, columns_;
  T* to_;
  int at_once_;            // rows per packing, such that `tiles` tiles pack all rows
  std::int64_t done_ = 0;  // rows packed
};

/// Packed strip of B, prefetched from L3 while tiles read the preceding strip. Measured on a 2-core
/// Zen 4 vCPU at 1024 and 2048 cubed, alternately: f32 +1 %, with AVX2 and its smaller tile +1 % to
/// +4 %.
template <class T>
class ComingStrip {
 public:
  /// Prepares prefetching `size` elements by `tiles` tiles of k steps.
  ComingStrip(const T* strip, std::int64_t size, std::int64_t tiles, std::int64_t k)
      : at_(strip), end_(strip + size), turns_(k / packing_steps) {
    if (tiles > 0 && turns_ > 0) lines_ = static_cast<int>(ceil_div(size, tiles * turns_ * line));
  }

  /// Returns the part that the next tile prefetches.
  InterleavedPacking<T> part() {
    if (at_ >= end_) return {};
    InterleavedPacking<T> work;
    work.lines = lines_;
    work.soon = at_;
    at_ += lines_ * turns_ * line;
    return work;
  }

 private:
  static constexpr std::int64_t line = 64 / sizeof(T);
  const T* at_;
  const T* end_;
  std::int64_t turns_;  // packing intervals per tile
  int lines_ = 0;       // lines per interval
};

/// Shared counters of rows taken beyond each thread's first block, for pieces of k of even and of
/// odd index (parity). A thread may start the next piece early, but takes no shared rows of it
/// before a barrier.
struct Taken {
  alignas(64) std::atomic<std::int64_t> rows[2] = {};
};

/// Dynamic schedule of rows [begin, end) over `workers` threads. Each thread begins with a fixed
/// block, the same in all pieces of k, and takes further blocks from the shared counter. Blocks
/// shrink toward the end to balance the load: on a 2-core Zen 5 vCPU +0 to +1 % alone (AVX2 -1 % to
/// +1 %), at 2048 cubed from 238 to 308 GFLOP/s where another program takes half of one core.
struct Rows {
  std::int64_t begin, end;
  std::int64_t most;  // maximum block size
  std::int64_t tile;  // rows per tile: block sizes are multiples
  int workers, worker;
  Taken& taken;

  [[nodiscard]] Range first() const { return up_to(begin + worker * most, most); }
  /// Resets the row counter of a parity. Called by one thread, after all threads have passed a
  /// barrier in a piece of that parity.
  void restart(int parity) const { taken.rows[parity].store(0, std::memory_order_relaxed); }
  [[nodiscard]] Range take(int parity) const {
    const std::int64_t from = begin + workers * most;
    std::atomic<std::int64_t>& rows = taken.rows[parity];
    std::int64_t before = rows.load(std::memory_order_relaxed);
    for (;;) {
      const std::int64_t left = end - from - before;
      if (left <= 0) return {end, end};
      // A block needs enough tiles to amortize fetching a strip of B from L3.
      const std::int64_t least = std::min(most, 3 * tile);
      const std::int64_t fair = round_up(ceil_div(left, std::int64_t{2} * workers), tile);
      const std::int64_t some = workers == 1 ? most : std::clamp(fair, least, most);
      if (rows.compare_exchange_weak(before, before + some, std::memory_order_relaxed)) {
        return up_to(from + before, some);
      }
    }
  }

 private:
  [[nodiscard]] Range up_to(std::int64_t at, std::int64_t count) const {
    return {std::min(at, end), std::min(at + count, end)};
  }
};

/// One thread's share of a block of columns of C as wide as packed B: its rows and strips, over all
/// of k.
template <class T>
struct Share {
  const RowMajorProduct& call;
  const Kernels<T>& ks;
  std::int64_t batch;
  const Sums<T>& sums;
  const Team& team;
  Rows rows;
  std::int64_t j, columns;  // columns [j, j + columns) of C
  Range strips, packing;    // strips to multiply by and strips to pack
  T* a;                     // buffer for a packed block of A

  [[nodiscard]] std::int64_t width(std::int64_t strip) const {
    return std::min<std::int64_t>(ks.tile_columns(), columns - strip * ks.tile_columns());
  }
  [[nodiscard]] std::int64_t column(std::int64_t strip) const {
    return j + strip * ks.tile_columns();
  }
  [[nodiscard]] T* packed(T* b, std::int64_t strip, std::int64_t k) const {
    return b + strip * ks.tile_columns() * k;
  }

  void pack_strips(T* b, Range range, std::int64_t p, std::int64_t k) const {
    if (range.size() == 0) return;
    pack_b(call, ks, batch, p, k, column(range.begin),
           std::min(column(range.end), j + columns) - column(range.begin),
           packed(b, range.begin, k));
  }

  /// Multiplies rows [i, i + height) by the strips of `range`, in order. With `pack`, the tiles of
  /// each strip pack the next one; without, all strips are packed already.
  void multiply(std::int64_t i, std::int64_t height, const PackedA<T>& panels, T* b, Range range,
                std::int64_t p, std::int64_t k, bool pack) const {
    if (pack) pack_strips(b, {range.begin, std::min(range.begin + 1, range.end)}, p, k);
    const std::int64_t full_tiles = height / ks.tile_rows;
    TileArgs<T> t{};
    t.k = k;
    t.a_row = panels.row;
    t.a_column = 1;
    t.c_row = sums.row;
    t.alpha = static_cast<T>(call.alpha);
    t.beta = sums.beta(p == 0);
    for (std::int64_t s = range.begin; s < range.end; ++s) {
      std::optional<NextStrip<T>> next;
      if (pack && s + 1 < range.end) {
        next.emplace(call, ks, batch, p, k, column(s + 1), width(s + 1), full_tiles,
                     packed(b, s + 1, k));
      }
      const std::int64_t after = s + 1 < range.end ? s + 1 : strips.begin;
      ComingStrip<T> coming(packed(b, after, k), pack ? 0 : width(after) * k, full_tiles, k);
      t.b = packed(b, s, k);
      t.columns = static_cast<int>(width(s));
      const int vectors = strip_width(ks, t.columns) / ks.lanes;
      for (std::int64_t x = 0; x < height; x += ks.tile_rows) {
        t.a = panels.panel(x, k);
        t.c = sums.at(i + x, column(s));
        const std::int64_t count = std::min<std::int64_t>(height - x, ks.tile_rows);
        InterleavedPacking<T> work;
        if (count == ks.tile_rows && vectors == 2) work = next ? next->part() : coming.part();
        t.background_packing = &work;
        ks.tile(panels.source, Source::packed, vectors, count)(t);
      }
      if (p + k == call.k) sums.finish(i, height, column(s), t.columns);
      if (next) next->finish();
    }
  }

  /// Multiplies by one piece of k: rows [p, p + k) of B, packed to b. Parities alternate between
  /// pieces.
  void multiply(std::int64_t p, std::int64_t k, T* b, int parity) const {
    const auto synchronize = [&] {
      team.wait();
      if (rows.worker == 0) rows.restart(1 - parity);
    };
    const Range own = rows.first();
    const bool ahead = NextStrip<T>::worth_it(call, k) && own.size() > 0;
    if (!ahead) {
      pack_strips(b, packing, p, k);
      synchronize();
    }
    for (Range some = own; some.size() > 0; some = rows.take(parity)) {
      const PackedA<T> panels = ahead
                                    ? pack_panels(call, ks, batch, some.begin, some.size(), p, k, a)
                                    : pack_a(call, ks, batch, some.begin, some.size(), p, k, a);
      const auto multiply_by = [&](Range range, bool pack) {
        multiply(some.begin, some.size(), panels, b, range, p, k, pack);
      };
      if (!ahead || some.begin != own.begin) {
        multiply_by(strips, false);
        continue;
      }
      multiply_by(packing, true);
      synchronize();
      multiply_by({packing.end, strips.end}, false);
      multiply_by({strips.begin, packing.begin}, false);
    }
  }
};

/// Team of threads as a grid over C.
struct Grid {
  int rows, columns;
};

/// Returns the grid that minimizes the largest share, counted in whole tiles; ties prefer more
/// rows, because A is then packed fewer times. With one column, rows are scheduled dynamically, and
/// shares are equal if there are enough rows.
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

/// Returns the number of buffers for packed B: two for a team, so that packing overlaps with
/// reading.
constexpr int b_buffers(int threads) { return threads > 1 ? 2 : 1; }

struct Buffers {
  std::int64_t b, a, staging;  // elements: one B buffer, one block of A, all of the staging
  [[nodiscard]] std::size_t bytes(int threads, std::size_t size) const {
    return (b_buffers(threads) * b + threads * a + staging) * size;
  }
};

template <class T>
Buffers buffers_of(const RowMajorProduct& call, const Blocking& block) {
  // Rounded to whole cache lines, so that no thread's vectors straddle two.
  return {block.kc * block.nc, block.mc * copied_row<T>(block.kc),
          call.direct() ? 0 : std::min(call.m, block.staged_rows) * copied_row<T>(block.nc)};
}

template <class T>
void multiply(const RowMajorProduct& call, const Kernels<T>& ks, const Blocking& block,
              std::int64_t batch, T* workspace, const Team& team, Taken& taken) {
  const Buffers buffers = buffers_of<T>(call, block);
  const bool staged = !call.direct();
  T* blocks_of_a = workspace + b_buffers(team.size()) * buffers.b;
  T* a = blocks_of_a + team.rank() * buffers.a;
  T* staging = blocks_of_a + team.size() * buffers.a;
  Sums<T> sums = make_sums(call, ks, batch, staging, copied_row<T>(block.nc));
  const std::int64_t rows_at_once = staged ? block.staged_rows : call.m;
  int piece = 0;
  int pieces_done[2] = {};  // pieces of k done: [0] with own rows, [1] with shared rows
  Taken own;
  if (team.rank() == 0) taken.rows[0].store(0, std::memory_order_relaxed);
  for (std::int64_t j = 0; j < call.n; j += block.nc) {
    const std::int64_t columns = std::min(block.nc, call.n - j);
    const std::int64_t strips = ceil_div<std::int64_t>(columns, ks.tile_columns());
    for (std::int64_t group = 0; group < call.m; group += rows_at_once) {
      // Other threads may still use the staging buffer.
      if (staged && j + group != 0) team.wait();
      const std::int64_t group_rows = std::min(rows_at_once, call.m - group);
      const std::int64_t panels = ceil_div<std::int64_t>(group_rows, ks.tile_rows);
      const Grid grid = make_grid(panels, strips, team.size());
      const bool shared = grid.columns == 1;  // all threads share all rows
      const int grid_row = team.rank() / grid.columns;
      const Range my_panels = shared ? Range{0, panels} : cpu::part_of(panels, grid_row, grid.rows);
      const Range my_strips = cpu::part_of(strips, team.rank() % grid.columns, grid.columns);
      // Threads in one grid column share its strips.
      const Range packing = cpu::part_of(my_strips.size(), grid_row, grid.rows);
      const std::int64_t begin = group + my_panels.begin * ks.tile_rows;
      const std::int64_t end = std::min(group + my_panels.end * ks.tile_rows, call.m);
      // Equal blocks of rows: a short last block would reuse the packed strips of B poorly.
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

// Accumulators restart in each piece of k, so the length of pieces affects rounding: it is the same
// for any number of threads, and best for two (BlockLimits). The workspace stays under 32 MiB, 8
// MiB of it for the panels of A.
constexpr std::int64_t piece_bytes = 4096, bytes_of_a = 8 << 20;

template <class T>
int team_size_of(const RowMajorProduct& call, const Kernels<T>& ks, const Context& context) {
  const auto most = static_cast<int>(bytes_of_a / (ks.tile_rows * piece_bytes));
  return std::min(threads_worth(call, context.threads()), most);
}

template <class T>
void threads(const RowMajorProduct& call, Context& context) {
  if (call.depth() == 0) return finish_without_product<T>(call);
  const Kernels<T>& ks = kernels<T>();
  const int team_size = team_size_of(call, ks, context);
  const bool one_each = call.batch >= team_size;  // a matrix per thread needs no barrier
  BlockLimits limits = block_limits();
  limits.k_bytes = piece_bytes;
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
      // Other threads may still be reading the buffer that the next matrix is packed into.
      team.wait();
    }
  });
}

Work work(const Gemm::Args& args, const Context& context) {
  const RowMajorProduct call = row_major_product(args);
  return with_sums(call.in, [&]<class T>() {
    const Kernels<T>& ks = kernels<T>();
    const int threads = team_size_of(call, ks, context);
    // A batch smaller than the team needs a team barrier per matrix.
    return packed_work(call, ks, piece_bytes, threads, 1 < call.batch && call.batch < threads);
  });
}

void run(const Gemm::Args& args, Context& context) {
  if (args.c.empty()) return;
  const RowMajorProduct call = row_major_product(args);
  with_sums(call.in, [&]<class T>() { threads<T>(call, context); });
}

const Rung<Gemm> self{{.name = "threads",
                       .step = 90,
                       .after = "packed_simd",
                       .supports = require_wide_types,
                       .work = work,
                       .run = run}};
}  // namespace
}  // namespace rung
