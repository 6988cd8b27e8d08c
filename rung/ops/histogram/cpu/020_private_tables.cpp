// SPDX-License-Identifier: Apache-2.0
// histogram / private tables
//
// Idea     four tables of 32-bit counters take turns: element i counts into table i % 4, and the
//          tables are added up at the end.
// Changes  against naive: an addition waits for the store of the last one to the same counter; now
//          equal values in a row meet it only every fourth time. Values outside have a counter of
//          their own behind the others, which spares a branch that random data would mispredict.
// Cost     x once; a load, an addition and a store an element, in cache.
// Limits   up to 2^16 bins, beyond which four tables leave the cache; one thread.
// Tried    on a 2-core Zen 5 vCPU, u8: 8 or 16 tables lose 10 to 20 % on random values and win only
//          on 90 % of one value (3.4 instead of 2.3 GB/s).
// Source   known from entropy coders, e.g. Y. Collet's FSE (HIST_count_parallel).
#include <algorithm>

#include "rung/ops/histogram/cpu/detail/walk.hpp"

namespace rung {
namespace {
using namespace histogram_cpu;

constexpr int tables = 4;
constexpr std::int64_t max_bins = 1 << 16;
// A counter cannot overflow before this many elements: then the tables are added to counts.
constexpr std::int64_t round = std::int64_t{1} << 32;

template <class T, class Bins>
void private_tables(const Histogram::Args& args, const Bins& bins, std::uint32_t* table) {
  const auto outside = static_cast<std::uint32_t>(args.bins());
  const std::int64_t pitch = args.bins() + 1;
  Histogram::Args part = args;
  for (std::int64_t begin = 0; begin == 0 || begin < args.size(); begin += round) {
    std::fill_n(table, tables * pitch, 0U);
    const cpu::Range range{begin, std::min(begin + round, args.size())};
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
    part.accumulate = true;
  }
}

Support supports(const Histogram::Args& args, const Context&) {
  return args.bins() <= max_bins ? supported : unsupported("more than 65536 bins");
}

double estimate(const Histogram::Args& args, const Context&) {
  constexpr double start = 15e-9, a_bin = 0.25e-9;
  const double a_value = is_floating(args.x.dtype) ? 0.9e-9 : 0.55e-9;
  return start + histogram_cpu::common_seconds(args) + static_cast<double>(args.bins()) * a_bin +
         static_cast<double>(args.size()) * a_value;
}

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
                            .estimate = estimate,
                            .run = run}};
}  // namespace
}  // namespace rung
