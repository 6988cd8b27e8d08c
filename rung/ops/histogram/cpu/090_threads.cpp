// SPDX-License-Identifier: Apache-2.0
// histogram / threads
//
// Idea     Each thread counts its share of x in tables of its own, with the kernels of vector_bins
//          or bytes. After a barrier, each thread adds the tables over its share of the bins.
// Changes  Against vector_bins: several threads, which share nothing until all have counted.
// Cost     x is read once; at most one store per element, half a store where pairs of bytes are
//          counted.
// Limits   Up to 2^22 bins: each thread clears a table of all bins, which is added to the counts. A
//          table shared by threads would need atomic additions, about 5 ns each.
#include <algorithm>
#include <cstdint>

#include "rung/cpu/team.hpp"
#include "rung/ops/histogram/cpu/detail/tables.hpp"

namespace rung {
namespace {
using namespace histogram_cpu;

int threads_worth(const Histogram::Args& args, const Context& context) {
  // A thread pays off if its share is at least 128 KiB and four elements per bin.
  const std::int64_t size = args.size();
  const auto bytes = size * static_cast<std::int64_t>(size_of(args.x.dtype));
  const std::int64_t worth = std::min(bytes >> 17, size / (4 * args.bins() + 1));
  return static_cast<int>(std::clamp<std::int64_t>(worth, 1, context.threads()));
}

void count_round(const Histogram::Args& args, cpu::Range range, Context& context) {
  const int threads = threads_worth(args, context);
  const auto part_of = [&](const cpu::Team& team) {
    const cpu::Range part = team.share(range.size());
    return cpu::Range{range.begin + part.begin, range.begin + part.end};
  };
  if (args.x.dtype == DType::u8) {
    auto* const tables = static_cast<ByteTables*>(
        context.workspace(static_cast<std::size_t>(threads) * sizeof(ByteTables)));
    cpu::run_team(threads, [&](const cpu::Team& team) {
      ByteTables& mine = tables[team.rank()];
      count_bytes(args, part_of(team), mine);
      team.wait();
      if (team.rank() != 0) return;
      for (int other = 1; other < team.size(); ++other) {
        for (int value = 0; value < 256; ++value) mine.counts[value] += tables[other].counts[value];
      }
      store_bytes(args, mine.counts);
    });
    return;
  }
  const IndexTables shape(args.bins());
  const std::int64_t words = shape.words();
  auto* const tables = static_cast<std::uint32_t*>(
      context.workspace(static_cast<std::size_t>(threads * words) * sizeof(std::uint32_t)));
  cpu::run_team(threads, [&](const cpu::Team& team) {
    IndexTables mine = shape;
    mine.data = tables + team.rank() * words;
    std::fill_n(mine.data, words, 0U);
    count_values(args, part_of(team), mine);
    team.wait();
    store_counts(args, team.share(args.bins()), [&](std::int64_t b) {
      std::uint64_t sum = 0;
      for (int thread = 0; thread < team.size(); ++thread) {
        for (int copy = 0; copy < shape.copies; ++copy) {
          sum += tables[thread * words + copy * shape.pitch + b];
        }
      }
      return sum;
    });
  });
}

Support supports(const Histogram::Args& args, const Context&) {
  return args.bins() <= max_bins ? supported : unsupported("more than 2^22 bins");
}

Work work(const Histogram::Args& args, const Context& context) {
  return count_work(args, threads_worth(args, context));
}

void run(const Histogram::Args& args, Context& context) {
  for_each_round(args, [&](const Histogram::Args& part, cpu::Range range) {
    count_round(part, range, context);
  });
}

const Rung<Histogram> self{{.name = "threads",
                            .step = 90,
                            .after = "vector_bins",
                            .supports = supports,
                            .work = work,
                            .run = run}};
}  // namespace
}  // namespace rung
