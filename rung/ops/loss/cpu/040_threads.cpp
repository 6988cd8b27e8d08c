// SPDX-License-Identifier: Apache-2.0
// loss / threads
//
// Idea     Split chunks of rows over the threads. Losses within a chunk, and the sums of chunks,
//          are added in a fixed order, so results are bitwise equal for any number of threads.
// Changes  Against simd: all cores. If a label may be ignored, the threads first count the other
//          rows chunk by chunk, because the mean's gradient is divided by their number.
// Cost     Same as simd; at most two barriers.
// Limits   All valid arguments; non-contiguous rows of x or target use scalar code.
#include <cstddef>

#include "rung/ops/loss/cpu/detail/rows.hpp"

namespace rung {
namespace {
using namespace loss_cpu;

struct ChunkSums {
  double loss;
  std::int64_t counted;
};

int threads_of(const Loss::Args& args, int available) {
  const bool is_small = args.count() * args.classes() < min_elements;
  const std::int64_t chunks = std::max<std::int64_t>(Chunks(args).count(), 1);
  return static_cast<int>(std::min<std::int64_t>(is_small ? 1 : available, chunks));
}

Work work(const Loss::Args& args, const Context& context) {
  return facts(args, args.reads_contiguous(), threads_of(args, context.threads()));
}

void run(const Loss::Args& args, Context& context) {
  const Chunks chunks(args);
  const bool has_vectors = args.reads_contiguous();
  // One spare row of dx per thread; the thread count is at most the number of chunks.
  const int threads = threads_of(args, context.threads());
  const std::size_t spare = has_vectors ? spare_bytes(args) : 0;
  const std::size_t sums_bytes =
      round_up(static_cast<std::size_t>(chunks.count() + 1) * sizeof(ChunkSums), 64U);
  auto* const memory = static_cast<std::byte*>(
      context.workspace(sums_bytes + static_cast<std::size_t>(threads) * spare));
  auto* const sums = reinterpret_cast<ChunkSums*>(memory);
  cpu::run_team(threads, [&](const cpu::Team& team) {
    const cpu::Range mine = team.share(chunks.count());
    std::int64_t counted = chunks.rows;
    if (args.ignores()) {
      for (std::int64_t chunk = mine.begin; chunk < mine.end; ++chunk) {
        sums[chunk].counted = count_rows(args, chunks[chunk]);
      }
      team.wait();
      counted = 0;
      for (std::int64_t chunk = 0; chunk < chunks.count(); ++chunk) counted += sums[chunk].counted;
    }
    const double factor = factor_of(args, counted);
    void* const row = memory + sums_bytes + static_cast<std::size_t>(team.rank()) * spare;
    for (std::int64_t chunk = mine.begin; chunk < mine.end; ++chunk) {
      sums[chunk].loss = has_vectors ? simd_rows(args, factor, chunks[chunk], row)
                                     : online_rows(args, factor, chunks[chunk]);
    }
    team.wait();
    if (team.rank() != 0) return;
    double all = 0;
    for (std::int64_t chunk = 0; chunk < chunks.count(); ++chunk) all += sums[chunk].loss;
    write_result(args, all, counted);
  });
}

const Rung<Loss> self{{.name = "threads", .step = 40, .after = "simd", .work = work, .run = run}};

}  // namespace
}  // namespace rung
