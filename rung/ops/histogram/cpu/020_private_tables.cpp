// SPDX-License-Identifier: Apache-2.0
// histogram / private tables
//
// Idea     Four tables of 32-bit counters in rotation: element i is counted in table i % 4, and the
//          tables are added at the end.
// Changes  Against naive: an addition waits for the previous store to its counter; of equal
//          neighbors, only every fourth uses the same table and waits. Values outside the range
//          have a counter of their own, which saves a branch that random data would mispredict.
// Cost     x is read once; a load, an addition and a store per element, in cache.
// Limits   Up to 2^16 bins, beyond which four tables exceed the cache; one thread. EXPERIMENTS.md
//          has results for more tables.
// Source   Known from entropy coders, e.g. Y. Collet's FSE (HIST_count_parallel).
#include <algorithm>

#include "rung/ops/histogram/cpu/detail/walk.hpp"

namespace rung {
namespace {
using namespace histogram_cpu;

constexpr int tables = 4;
constexpr std::int64_t most_bins = 1 << 16;

template <class T, class Bins>
void private_tables(const Histogram::Args& args, const Bins& bins, std::uint32_t* table) {
  const auto outside = static_cast<std::uint32_t>(args.bins());
  const std::int64_t pitch = args.bins() + 1;
  for_each_round(args, [&](const Histogram::Args& part, cpu::Range range) {
    std::fill_n(table, tables * pitch, 0U);
    for_each_piece<T>(args.x, range, [&](const T* x, std::int64_t count) {
      const auto slot = [&](std::int64_t i) {
        return std::min(static_cast<std::uint32_t>(bins(key_of(x[i]))), outside);
      };
      std::int64_t i = 0;
      for (; i + tables <= count; i += tables) {
        for (int k = 0; k < tables; ++k) ++table[k * pitch + slot(i + k)];
      }
      for (; i < count; ++i) ++table[slot(i)];
    });
    store_counts(part, {0, args.bins()}, [&](std::int64_t b) {
      std::uint64_t sum = 0;
      for (int k = 0; k < tables; ++k) sum += table[k * pitch + b];
      return sum;
    });
  });
}

Support supports(const Histogram::Args& args, const Context&) {
  return args.bins() <= most_bins ? supported : unsupported("more than 65536 bins");
}

Work work(const Histogram::Args& args, const Context&) { return count_work(args, 1); }

void run(const Histogram::Args& args, Context& context) {
  auto* const table = static_cast<std::uint32_t*>(context.workspace(
      static_cast<std::size_t>((args.bins() + 1) * tables) * sizeof(std::uint32_t)));
  visit_values(args.x.dtype, [&]<class T>() {
    with_bins<BinKey<T>>(args, [&](const auto& bins) { private_tables<T>(args, bins, table); });
  });
}

const Rung<Histogram> self{{.name = "private_tables",
                            .step = 20,
                            .after = "naive",
                            .supports = supports,
                            .work = work,
                            .run = run}};
}  // namespace
}  // namespace rung
