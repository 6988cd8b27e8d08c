// SPDX-License-Identifier: Apache-2.0
// histogram / threads
//
// Idea     a table a thread, and in each the way of counting that suits the values: a look at a few
//          of them decides, chunk by chunk.
// Changes  against private_tables: bytes are counted in pairs, or around the one value that makes
//          up most of a chunk (see detail/bytes.hpp); the bins of floats are computed by vectors.
//          Threads share nothing until all have counted; then each adds up a part of the bins.
// Cost     x once; half a store a byte at most, one an element of other types.
// Limits   up to 2^22 bins: each thread clears and adds up a table of them.
// Tried    see detail/bytes.hpp. One table that threads share would need atomic additions, some
//          5 ns each.
// Source   -
#include <algorithm>
#include <cstring>

#include "rung/cpu/team.hpp"
#include "rung/ops/histogram/cpu/detail/bytes.hpp"
#include "rung/ops/histogram/cpu/detail/indexed.hpp"

namespace rung {
namespace {
using namespace histogram_cpu;

constexpr std::int64_t max_bins = 1 << 22;
// Counters have 32 bits; in a round of this size no thread's can overflow.
constexpr std::int64_t round = std::int64_t{1} << 31;

int threads_worth(const Histogram::Args& args, const Context& context) {
  // A thread less than 128 KiB, or than four elements per bin, costs more than it saves.
  const std::int64_t size = args.size();
  const auto bytes = size * static_cast<std::int64_t>(size_of(args.x.dtype));
  const std::int64_t worth = std::min(bytes >> 17, size / (4 * args.bins() + 1));
  return static_cast<int>(std::clamp<std::int64_t>(worth, 1, context.threads()));
}

/// Counts of 256 values as counts of bins: every value's bin is found once.
void store_bytes(const Histogram::Args& args, const std::uint64_t (&values)[256]) {
  visit<std::int32_t, std::int64_t>(args.counts.dtype, [&]<class C>() {
    const auto counts = args.counts.view<std::make_unsigned_t<C>, 1>();
    if (!args.accumulate) {
      for (std::int64_t b = 0; b < args.bins(); ++b) counts(b) = 0;
    }
    with_bins<std::int64_t>(args, [&](const auto& bins) {
      for (int value = 0; value < 256; ++value) {
        const std::int32_t bin = bins(value);
        if (bin >= 0) counts(bin) += static_cast<std::make_unsigned_t<C>>(values[value]);
      }
    });
  });
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
      clear(mine);
      const cpu::Range part = part_of(team);
      for_each_piece<std::uint8_t>(args.x, part, [&](const std::uint8_t* x, std::int64_t count) {
        count_bytes(mine, x, count, part.size());
      });
      add_up(mine);
      team.wait();
      if (team.rank() != 0) return;
      for (int other = 1; other < team.size(); ++other) {
        for (int value = 0; value < 256; ++value) {
          mine.counts[value] += tables[other].counts[value];
        }
      }
      store_bytes(args, mine.counts);
    });
    return;
  }
  IndexTables shape{nullptr, args.bins() + 1, IndexTables::copies_for(args.bins())};
  const std::int64_t words = (shape.pitch * shape.copies + 15) / 16 * 16;  // whole cache lines
  auto* const tables = static_cast<std::uint32_t*>(
      context.workspace(static_cast<std::size_t>(threads * words) * sizeof(std::uint32_t)));
  cpu::run_team(threads, [&](const cpu::Team& team) {
    IndexTables mine = shape;
    mine.data = tables + team.rank() * words;
    std::memset(mine.data, 0, static_cast<std::size_t>(words) * sizeof(std::uint32_t));
    visit<float, std::uint16_t, std::int32_t, std::int64_t, double, f16, bf16>(
        args.x.dtype, [&]<class T>() { count_indexed<T>(args, part_of(team), mine); });
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

double estimate(const Histogram::Args& args, const Context& context) {
  constexpr double start = 45e-9, a_bin = 1.5e-9, clearing_bytes = 0.2e-6, a_value = 0.25e-9;
  constexpr double team = 3e-6;
  const int threads = threads_worth(args, context);
  const double tables =
      args.x.dtype == DType::u8 ? clearing_bytes : static_cast<double>(args.bins()) * a_bin;
  const double counting = static_cast<double>(args.size()) * a_value + common_seconds(args);
  return start + tables + counting / threads + (threads > 1 ? team : 0);
}

void run(const Histogram::Args& args, Context& context) {
  Histogram::Args part = args;
  for (std::int64_t begin = 0; begin == 0 || begin < args.size(); begin += round) {
    count_round(part, {begin, std::min(begin + round, args.size())}, context);
    part.accumulate = true;
  }
}

const Rung<Histogram> self{{.name = "threads",
                            .step = 90,
                            .after = "private_tables",
                            .supports = supports,
                            .estimate = estimate,
                            .run = run}};
}  // namespace
}  // namespace rung
