// SPDX-License-Identifier: Apache-2.0
// histogram / threads
//
// Idea     a table a thread, and in each the way of counting that suits the values: a look at a few
//          of them decides, chunk by chunk.
// Changes  against private_tables: bytes are counted in pairs, or around the one value that makes
//          up most of a chunk (see below); the bins of floats are computed by vectors.
//          Threads share nothing until all have counted; then each adds up a part of the bins.
// Cost     x once; half a store a byte at most, one an element of other types.
// Limits   up to 2^22 bins: each thread clears and adds up a table of them.
// Tried    see below. One table that threads share would need atomic additions, some
//          5 ns each.
// Source   -
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "rung/cpu/team.hpp"
#include "rung/ops/histogram/cpu/detail/kernels.hpp"
#include "rung/ops/histogram/cpu/detail/walk.hpp"

// Counting bytes: whatever the bins, there are only 256 values to count. Each chunk is looked at
// first, as what is fast depends on the values. Rates are those of one core of a 2-core Zen 5 vCPU.
//   one value dominates   vectors find the bytes that differ, only they are counted one by one:
//                         7 GB/s with 90 % of one value, where a plain loop has 0.65.
//   all values about as   two tables that take turns, words of 8 bytes taken apart: 5.0 GB/s, where
//   frequent              a plain loop has 3.9. A core stores once a cycle, and this is that.
//   anything else         pairs of bytes count into one table of 65,536: a store for two bytes. 5.4
//                         GB/s on normally distributed bytes; where few values make up most, four
//                         tables that take turns: 6.4 GB/s on four letters, 8 on sixteen values.
// A table of pairs has counters of 8 bits: 64 KiB, much of which stays in L1, where 32 bits would
// spill to L2 (4.2 instead of 5.4 GB/s). That a counter wraps is seen by the addition itself.
namespace rung::histogram_cpu {

struct ByteTables {
  std::uint64_t counts[256];
  std::uint32_t single[4][256];
  std::uint8_t pairs[4][1 << 16];
  int pair_tables;  // of these, how many have been cleared
};

namespace bytes_detail {

constexpr std::int64_t chunk = 64 << 10;
// From eight places of the chunk, 16 neighbors each: 128 places would be as many cache misses,
// which took a fifth of the time.
constexpr int places = 8;
constexpr int neighbors = 16;
constexpr int samples = places * neighbors;
/// From here on counting around it beats the tables; measured, as all here.
constexpr int dominating = samples * 81 / 100;
constexpr int frequent = samples * 40 / 100;
constexpr int few_values = 16;
constexpr int many_values = 88;  // distinct ones: uniform bytes have about 100
/// Below this, clearing and adding up tables of pairs costs more than they save.
constexpr std::int64_t min_for_pairs = 128 << 10;

struct Look {
  std::uint8_t most;  // the most frequent value of the sample
  int times;
  int distinct;
};

inline Look look_at(const std::uint8_t* x, std::int64_t count) {
  std::uint8_t seen[256] = {};
  Look look{0, 0, 0};
  const std::int64_t step = count / places;
  for (int place = 0; place < places; ++place) {
    for (int i = 0; i < neighbors; ++i) {
      const std::uint8_t value = x[place * step + i];
      const int times = ++seen[value];
      look.distinct += times == 1 ? 1 : 0;
      if (times > look.times) look = {value, times, look.distinct};
    }
  }
  return look;
}

template <int Tables>
void count_pairs(ByteTables& tables, const std::uint8_t* x, std::int64_t count) {
  for (; tables.pair_tables < Tables; ++tables.pair_tables) {
    std::memset(tables.pairs[tables.pair_tables], 0, sizeof(tables.pairs[0]));
  }
  const auto add = [&](int table, std::uint64_t word) {
    const auto pair = static_cast<std::uint16_t>(word);
    if (++tables.pairs[table % Tables][pair] != 0) [[likely]]
      return;
    tables.counts[pair & 0xff] += 256;
    tables.counts[pair >> 8] += 256;
  };
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    std::uint64_t words[2];
    std::memcpy(words, x + i, 16);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      add(k, words[0] >> (16 * k));
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      add(k, words[1] >> (16 * k));
    }
  }
  for (; i < count; ++i) ++tables.counts[x[i]];
}

inline void count_single(ByteTables& tables, const std::uint8_t* x, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, x + i, 8);
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) ++tables.single[k % 2][(word >> (8 * k)) & 0xff];
  }
  for (; i < count; ++i) ++tables.single[0][x[i]];
}

}  // namespace bytes_detail

inline void clear(ByteTables& tables) {
  std::memset(tables.counts, 0, sizeof(tables.counts));
  std::memset(tables.single, 0, sizeof(tables.single));
  tables.pair_tables = 0;
}

/// Adds `count` contiguous bytes of, in all, `total`; 2^32 between clear() and add_up() at most.
inline void count_bytes(ByteTables& tables, const std::uint8_t* x, std::int64_t count,
                        std::int64_t total) {
  using namespace bytes_detail;
  for (std::int64_t begin = 0; begin < count; begin += chunk) {
    const std::int64_t size = std::min(chunk, count - begin);
    const std::uint8_t* const here = x + begin;
    if (size < 2 * samples) {
      count_single(tables, here, size);
      continue;
    }
    const Look look = look_at(here, size);
    if (look.times >= dominating) {
      std::uint32_t* const single[4] = {tables.single[0], tables.single[1], tables.single[2],
                                        tables.single[3]};
      tables.counts[look.most] +=
          static_cast<std::uint64_t>(count_around(look.most, here, size, single));
    } else if (total < min_for_pairs || look.distinct >= many_values) {
      count_single(tables, here, size);
    } else if (look.distinct <= few_values || look.times >= frequent) {
      count_pairs<4>(tables, here, size);
    } else {
      count_pairs<1>(tables, here, size);
    }
  }
}

/// Brings everything into tables.counts.
inline void add_up(ByteTables& tables) {
  for (int value = 0; value < 256; ++value) {
    for (const auto& table : tables.single) tables.counts[value] += table[value];
  }
  for (int table = 0; table < tables.pair_tables; ++table) {
    for (int second = 0; second < 256; ++second) {
      const std::uint8_t* const row = tables.pairs[table] + second * 256;
      std::uint64_t sum = 0;
      for (int first = 0; first < 256; ++first) {
        tables.counts[first] += row[first];
        sum += row[first];
      }
      tables.counts[second] += sum;
    }
  }
}

}  // namespace rung::histogram_cpu

// Counting values of any type: a chunk of x becomes a chunk of bins, by vectors where the formula
// has them; the bins are then counted into tables. Both chunks stay in L1.
namespace rung::histogram_cpu {

/// A thread's tables: `copies` of them, which take turns, each with a place for values outside.
struct IndexTables {
  std::uint32_t* data;
  std::int64_t pitch;  // bins + 1
  int copies;          // 1 or 4

  /// Four tables keep equal neighbors apart, as long as they fit L1 and leave room for the chunks.
  static int copies_for(std::int64_t bins) { return bins <= 2048 ? 4 : 1; }
};

namespace indexed_detail {

constexpr std::int64_t chunk = 2048;
constexpr int samples = 16;
constexpr int dominating = 13;

inline void add(const IndexTables& tables, const std::uint32_t* indices, std::int64_t count) {
  std::uint32_t* const table = tables.data;
  std::int64_t i = 0;
  if (tables.copies == 4) {
    for (; i + 4 <= count; i += 4) {
      for (int k = 0; k < 4; ++k) ++table[k * tables.pitch + indices[i + k]];
    }
  }
  for (; i < count; ++i) ++table[indices[i]];
}

/// The index that most of the samples have, if so many do; -1 otherwise.
inline std::int64_t dominating_index(const std::uint32_t* indices, std::int64_t count) {
  const std::int64_t step = count / samples;
  if (step == 0) return -1;
  // Majority vote: what remains after each has been paired off against a different one.
  std::uint32_t candidate = 0;
  int lead = 0;
  for (int i = 0; i < samples; ++i) {
    const std::uint32_t index = indices[i * step];
    if (lead == 0) candidate = index;
    lead += index == candidate ? 1 : -1;
  }
  int times = 0;
  for (int i = 0; i < samples; ++i) times += indices[i * step] == candidate ? 1 : 0;
  return times >= dominating ? std::int64_t{candidate} : -1;
}

inline void add_sampled(const IndexTables& tables, const std::uint32_t* indices,
                        std::int64_t count) {
  const std::int64_t most = dominating_index(indices, count);
  if (most < 0) return add(tables, indices, count);
  const std::int64_t step = tables.copies == 4 ? tables.pitch : 0;
  std::uint32_t* const four[4] = {tables.data, tables.data + step, tables.data + 2 * step,
                                  tables.data + 3 * step};
  tables.data[most] += static_cast<std::uint32_t>(
      count_around(static_cast<std::uint32_t>(most), indices, count, four));
}

}  // namespace indexed_detail

/// Counts elements [range) of x into cleared tables; fewer than 2^32 of them.
template <class T>
void count_indexed(const Histogram::Args& args, cpu::Range range, const IndexTables& tables) {
  using namespace indexed_detail;
  std::uint32_t indices[chunk];
  const auto each_chunk = [&](const auto& find_bins) {
    for_each_piece<T>(args.x, range, [&](const T* x, std::int64_t count) {
      for (std::int64_t begin = 0; begin < count; begin += chunk) {
        const std::int64_t size = std::min(chunk, count - begin);
        find_bins(x + begin, size);
        add_sampled(tables, indices, size);
      }
    });
  };
  if (args.even()) {
    const EvenFormula formula = EvenFormula::make(args);
    each_chunk([&](const T* x, std::int64_t count) { find_even_bins(formula, x, count, indices); });
  } else {
    const auto edges = EdgeBins<BinKey<T>>::make(args);
    const auto outside = static_cast<std::uint32_t>(args.bins());
    each_chunk([&](const T* x, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        indices[i] = std::min(static_cast<std::uint32_t>(edges(key_of(x[i]))), outside);
      }
    });
  }
}

}  // namespace rung::histogram_cpu

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
