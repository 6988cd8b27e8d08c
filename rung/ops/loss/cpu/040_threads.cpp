// SPDX-License-Identifier: Apache-2.0
// loss / threads
//
// Idea     Chunks of rows are divided among the threads; each chunk's losses are added up in one
//          order, and the chunks' sums too, so that the bits do not depend on the threads.
// Changes  Against simd: all cores. Where labels may be ignored, the threads first count those that
//          are not, chunk by chunk: the gradient is divided by that number.
// Cost     As simd; two barriers at most.
// Limits   Every valid call; rows of x or target that are not contiguous are computed without
//          vectors.
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
  // No more rows of dx in spare memory than dx has: every thread has a chunk of rows.
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
