// SPDX-License-Identifier: Apache-2.0
// transpose / threads
//
// Idea     A team divides the blocks, consecutive ones per thread. Matrices that exceed the caches
//          use non-temporal stores, others ordinary stores.
// Changes  Against streaming: threads, and for each problem the best kernel among all earlier rungs
//          and shapes/; tensors that are dense along no axis are moved as in blocked.
// Cost     Every byte of x and y once, like a copy.
// Limits   Memory-bound: two threads gain a third to a half.
#include <cstdlib>

#include "rung/cpu/isa.hpp"
#include "rung/ops/transpose/cpu/detail/blocks.hpp"

namespace rung {
namespace {
using namespace transpose_cpu;

// minimum bytes of x and y per thread; 10 us of work
constexpr std::int64_t worth_a_thread = 256 << 10;

/// Returns whether to stage tiles: rows of x or y are so far apart that a tile's rows map to one or
/// two sets of L1, there are many of them, and x and y do not both fit an L2 of 1 MiB. Few rows
/// stay in L1 even so, and staging them is slower: 54 matrices of 29x1033 f32 took 386 us staged on
/// two Zen 5 vCPUs, while the rung simd, which does not stage, took 147 us in a survey there.
bool wants_stage(const Moves& m) {
  constexpr std::int64_t many = 64;
  const auto collide = [&](std::int64_t row, std::int64_t rows) {
    const std::int64_t over = std::abs(row * m.element_bytes) % way_bytes;
    return rows > many && std::min(over, way_bytes - over) < line_bytes;
  };
  return 2 * m.bytes() > std::int64_t{1} << 20 && m.element_bytes >= 4 &&
         (collide(m.x_row, m.rows) || collide(m.y_row, m.columns));
}

/// Returns whether each matrix of the batch is one block.
bool is_one_block(const Moves& m) {
  return m.rows * m.element_bytes <= tiles_down * line_bytes &&
         m.columns * m.element_bytes <= tiles_across * line_bytes;
}

/// Calls kernel(first, batch) for matrices of one block each: matrices along the last axis of the
/// batch are a constant distance apart and take one kernel call.
template <class Kernel>
void transpose_batch(const Transpose::Args& args, cpu::Range matrices, const Kernel& kernel) {
  const Moves& m = args.moves;
  const int last = m.batch.rank - 1;
  for (std::int64_t at = matrices.begin; at < matrices.end;) {
    Batch batch{.count = matrices.end - at};
    if (last > 0)
      batch.count = std::min(batch.count, m.batch.shape[last] - at % m.batch.shape[last]);
    if (last >= 0) {
      batch.x = m.batch.strides[1][last] * m.element_bytes;
      batch.y = m.batch.strides[0][last] * m.element_bytes;
    }
    kernel(block_of(args, {at, 0, m.rows, 0, m.columns}), batch);
    at += batch.count;
  }
}

/// Calls kernel(block, batch) for blocks with ordinary stores.
template <class Kernel>
void in_blocks(const Transpose::Args& args, int threads, const Kernel& kernel) {
  const Moves& m = args.moves;
  if (is_one_block(m)) {
    return cpu::run_shares(threads, [&](const cpu::Team& team) {
      transpose_batch(args, team.share(m.matrices()), kernel);
    });
  }
  const Grid grid = cached_grid(m);
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    grid.for_each(team.share(grid.size()),
                  [&](const BlockRange& block) { kernel(block_of(args, block), Batch{}); });
  });
}

/// Calls kernel(rank, block) for panels with non-temporal stores.
template <class Kernel>
void in_panels(const Transpose::Args& args, int threads, const Kernel& kernel) {
  // A thread's blocks may start at any band boundary, so bands are long enough to amortize their
  // startup.
  constexpr std::int64_t bands = 32, lines_per_band = 3;
  const Grid grid = streaming_grid(args.moves, bands * lines_per_band * tile_side_of(args.moves));
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    grid.for_each(team.share(grid.size()),
                  [&](const BlockRange& block) { kernel(team.rank(), block_of(args, block)); });
  });
}

void run_dense(const Transpose::Args& args, int threads, Context& context) {
  const Moves& m = args.moves;
  if (!exceeds_caches(m)) {
    if (is_pixels(m)) {
      return in_blocks(args, threads, [](const TransposeBlock& b, const Batch& batch) {
        transpose_pixels(b, false, batch);
      });
    }
    if (is_narrower_than_tile(m)) return in_blocks(args, threads, transpose_narrow);
    if (!is_one_block(m) && wants_stage(m)) {
      return in_blocks(args, threads,
                       [](const TransposeBlock& b, const Batch&) { transpose_staged(b); });
    }
    return in_blocks(args, threads, transpose_tiles);
  }
  if (is_pixels(m)) {
    return in_panels(args, threads,
                     [](int, const TransposeBlock& b) { transpose_pixels(b, true); });
  }
  if (is_narrower_than_tile(m)) {
    return in_panels(args, threads, [](int, const TransposeBlock& b) { transpose_narrow(b); });
  }
  if (goes_down(m) && cpu::isa() == cpu::Isa::avx512) {
    return in_panels(args, threads, [](int, const TransposeBlock& b) { stream_down(b); });
  }
  auto* const scratch =
      static_cast<std::byte*>(context.workspace(static_cast<std::size_t>(threads) * panel_scratch));
  in_panels(args, threads, [&](int rank, const TransposeBlock& b) {
    stream_along(b, scratch + rank * panel_scratch);
  });
}

int threads_of(const Transpose::Args& args, const Context& context) {
  return static_cast<int>(
      std::clamp<std::int64_t>(2 * args.moves.bytes() / worth_a_thread, 1, context.threads()));
}

void run(const Transpose::Args& args, Context& context) {
  const Moves& m = args.moves;
  if (m.empty()) return;
  // Few elements take less time than the selection of a kernel.
  constexpr std::int64_t few = 12;
  if (m.elements() <= few && m.matrices() == 1) return move_blocks(args, {0, 1});
  const int threads = threads_of(args, context);
  if (m.dense()) return run_dense(args, threads, context);
  const auto units = m.run > 1 ? run_units(m) : element_grid(m).size();
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    (m.run > 1 ? copy_runs : move_blocks)(args, team.share(units));
  });
}

Work work(const Transpose::Args& args, const Context& context) {
  return {.threads = threads_of(args, context)};
}

const Rung<Transpose> self{
    {.name = "threads", .step = 90, .after = "streaming", .work = work, .run = run}};

}  // namespace
}  // namespace rung
