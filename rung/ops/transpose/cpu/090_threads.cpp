// SPDX-License-Identifier: Apache-2.0
// transpose / threads
//
// Idea     what exceeds the caches is written past them, what does not goes through them; either
//          way the blocks are scheduled to a team, each thread taking neighboring ones.
// Changes  against streaming: threads; the choice between the two ways of writing; runs that stay
//          together are copied as they are; and every call is taken, the strided ones element by
//          element.
// Cost     every byte of x and y once: as a copy.
// Limits   memory: two threads gain a third to a half.
// Tried    on a 2-core Zen 5 vCPU, f32: by way of a buffer in L1 1024 x 1024 takes 180 us in place
//          of 212, 1023 x 1025 170 to 215 in place of 308, but 1000 x 1000 175 in place of 94 and
//          512 x 512 47 in place of 41: only where rows collide. Fetching lines of x or of y ahead
//          at 1024 x 1024, into L1 or L2: 0 to -10 %.
// Source   -
#include <cstdlib>

#include "rung/ops/transpose/cpu/detail/blocks.hpp"

namespace rung {
namespace {
using namespace transpose_cpu;

constexpr std::int64_t worth_a_thread = 256 << 10;  // bytes of x and y; 10 us of work

/// From here on x and y do not stay in the last cache together, and nothing is gained by keeping
/// either. What a core reaches of L3 is a slice of some 32 MiB on servers of today, whatever the
/// system says of their sum (384 MiB on the 2-core Zen 5 vCPU that this was measured on).
bool exceeds_caches(const Moves& m) { return 2 * m.bytes() >= std::int64_t{32} << 20; }

/// Rows of x or y so far apart that those of a tile compete for a set or two of L1, many of them,
/// and both matrices not within an L2 of 1 MiB: lines that are neighbors must be used together.
/// Few rows stay in L1 all the same (54 times 29x1033 f32, 2-core Zen 5 vCPU: 386 us staged).
bool wants_stage(const Moves& m) {
  constexpr std::int64_t many = 64;
  const auto collide = [&](std::int64_t row, std::int64_t rows) {
    const std::int64_t over = std::abs(row * m.element_bytes) % way_bytes;
    return rows > many && std::min(over, way_bytes - over) < line_bytes;
  };
  return 2 * m.bytes() > std::int64_t{1} << 20 &&
         (collide(m.x_row, m.rows) || collide(m.y_row, m.columns));
}

int useful_threads(const Moves& m, const Context& context) {
  const std::int64_t threads = 2 * m.bytes() / worth_a_thread;
  return static_cast<int>(std::clamp<std::int64_t>(threads, 1, context.threads()));
}

/// Shares the blocks of a grid out among threads.
template <class Each>
void share(const Grid& grid, int threads, Each&& each) {
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    for_each_block(grid, team.share(grid.size()),
                   [&](const Place& place) { each(team.rank(), place); });
  });
}

void run_tiles(const Transpose::Args& args, int threads, Context& context) {
  const Moves& m = args.moves;
  if (!exceeds_caches(m)) {
    if (is_one_block(m)) {
      if (threads == 1) return transpose_matrices(args, {0, m.matrices()});
      return cpu::run_shares(threads, [&](const cpu::Team& team) {
        transpose_matrices(args, team.share(m.matrices()));
      });
    }
    const bool staged = wants_stage(m);
    share(cached_grid(m), threads,
          [&](int, const Place& place) { transpose_block(block_of(args, place), staged); });
    return;
  }
  auto* const scratch =
      static_cast<std::byte*>(context.workspace(static_cast<std::size_t>(threads) * panel_scratch));
  // A thread's share may begin at any of these: long enough that the beginning does not count.
  constexpr std::int64_t bands = 32;
  const std::int64_t rows = bands * shifted_band_lines * line_bytes / m.element_bytes;
  share(streaming_grid(m, rows), threads, [&](int rank, const Place& place) {
    stream_panel(block_of(args, place), scratch + rank * panel_scratch);
  });
}

void run_runs(const Transpose::Args& args, int threads) {
  const Moves& m = args.moves;
  const std::int64_t bytes = m.element_bytes;
  // Long runs are cut into pieces, so that there is something to share.
  constexpr std::int64_t piece_bytes = 128 << 10;
  const std::int64_t piece = piece_bytes / bytes;
  const std::int64_t pieces = (m.run + piece - 1) / piece;
  const bool stream = exceeds_caches(m) && m.run * bytes >= 2 * line_bytes;
  const Grid grid(m, 32, 32);
  const auto copy = [&](const Place& place, std::int64_t first) {
    std::int64_t at[2];
    m.batch.offsets(place.matrix, at);
    const std::int64_t from = at[1] + place.row * m.x_row + place.column * m.x_column + first;
    const std::int64_t to = at[0] + place.column * m.y_row + place.row * m.y_column + first;
    copy_runs({elements<std::byte>(args.x) + from * bytes, elements<std::byte>(args.y) + to * bytes,
               m.x_row * bytes, m.x_column * bytes, m.y_row * bytes, m.y_column * bytes, place.rows,
               place.columns, std::min(piece, m.run - first) * bytes},
              stream);
  };
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    const cpu::Range all = team.share(grid.size() * pieces);
    if (pieces == 1) {
      return for_each_block(grid, all, [&](const Place& place) { copy(place, 0); });
    }
    for (std::int64_t at = all.begin; at < all.end; ++at) {
      for_each_block(grid, {at / pieces, at / pieces + 1},
                     [&](const Place& place) { copy(place, at % pieces * piece); });
    }
  });
}

void run(const Transpose::Args& args, Context& context) {
  const Moves& m = args.moves;
  if (m.empty()) return;
  // Where a call takes longer than the moves, it is the shortest way to them.
  constexpr std::int64_t few = 12;
  if (m.elements() <= few && m.matrices() == 1) {
    return with_elements(args, [&]<class T>() {
      move_block<T>(args, {0, 0, m.rows, 0, m.columns});
    });
  }
  const int threads = useful_threads(m, context);
  if (m.dense()) return run_tiles(args, threads, context);
  if (m.run > 1) return run_runs(args, threads);
  with_elements(args, [&]<class T>() {
    share(Grid(m, 32, 32), threads, [&](int, const Place& place) { move_block<T>(args, place); });
  });
}

// The fastest in every case that has been timed, and the only one that takes every call fast.
double estimate(const Transpose::Args& args, const Context&) {
  return static_cast<double>(args.moves.bytes()) / 8e9;
}

const Rung<Transpose> self{
    {.name = "threads", .step = 90, .after = "streaming", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
