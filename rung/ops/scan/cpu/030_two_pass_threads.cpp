// SPDX-License-Identifier: Apache-2.0
// scan / two-pass threads
//
// Idea     Every thread computes the totals of its chunks; a scan of the totals gives each chunk
//          its carry; every thread scans its chunks.
// Changes  Against simd: all cores; a chunk depends on the others only through its carry.
// Cost     x is read twice: 12 bytes per float instead of 8 if it does not fit the caches.
// Limits   Memory-bound, with a third of the traffic wasted.
// Source   G. Blelloch, Prefix Sums and Their Applications, 1990.
#include "rung/cpu/team.hpp"
#include "rung/ops/scan/cpu/detail/chunks.hpp"

namespace rung {
namespace {
using namespace scan_cpu;

void run(const Scan::Args& args, Context& context) {
  if (args.y.empty()) return;
  const int threads = useful_threads(args, context);
  const auto lines = static_cast<std::size_t>(args.lines.size());
  const Chunks chunks(args, context, threads,
                      lines * max_chunks(args.length()) * sizeof(Chunks::Total));
  auto* totals = static_cast<Chunks::Total*>(chunks.more());
  const auto ranks = chunks.chunks() > 1 ? cpu::Ranks::concurrent : cpu::Ranks::independent;
  cpu::run_ranks(ranks, threads, [&](const cpu::Team& team) {
    const cpu::Range mine = team.share(chunks.items());
    const bool cut = chunks.chunks() > 1;
    for (std::int64_t item = mine.begin; cut && item < mine.end; ++item) {
      totals[item] = chunks.total(item, team.rank());
    }
    if (cut) team.wait();
    if (cut && team.rank() == 0) {
      Carry carry;
      for (std::int64_t item = 0; item < chunks.items(); ++item) {
        if (chunks.is_first(item)) carry = chunks.identity();
        const Carry before = carry;
        carry = chunks.after(carry, totals[item]);
        totals[item].value = before;
      }
    }
    if (cut) team.wait();
    for (std::int64_t item = mine.begin; item < mine.end; ++item) {
      chunks.scan(item, cut ? totals[item].value : chunks.identity(), false, team.rank());
    }
    chunks.finish();
  });
}

Cost traffic(const Scan::Args& args) {
  Cost cost = Scan::cost(args);
  return {.bytes = cost.bytes * 1.5, .operations = cost.operations * 2};
}

Work work(const Scan::Args& args, const Context& context) {
  return chunk_work(args, useful_threads(args, context), max_chunks(args.length()) > 1 ? 2 : 1);
}

const Rung<Scan> self{{.name = "two_pass_threads",
                       .step = 30,
                       .after = "simd",
                       .traffic = traffic,
                       .work = work,
                       .run = run}};
}  // namespace
}  // namespace rung
