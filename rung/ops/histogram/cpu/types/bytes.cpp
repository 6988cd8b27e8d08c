// SPDX-License-Identifier: Apache-2.0
// histogram / bytes
//
// Idea     Bytes have 256 values for any bins: values are counted, and their bins found at the end.
//          128 samples of each 64 KiB chunk select the counting method.
// Changes  Against vector_bins: no bin per element. Pairs of bytes are counted by one store, a
//          dominant value by vector comparisons.
// Cost     x is read once; at most one store per byte, half a store for pairs.
// Limits   u8; one thread.
#include "rung/cpu/foreach_target.hpp"
#include "rung/ops/histogram/cpu/detail/around-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::histogram_cpu::HWY_NAMESPACE {
namespace {
std::int64_t around_u8(std::uint8_t value, const std::uint8_t* x, std::int64_t count,
                       std::uint32_t* const (&tables)[4]) {
  return count_around(value, x, count, tables);
}
}  // namespace
}  // namespace rung::histogram_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cstring>

#include "rung/ops/histogram/cpu/detail/tables.hpp"

// Methods for a chunk, with their throughput on one core of a 2-core Zen 5 vCPU:
//   one dominant value    vectors find the bytes that differ, only they are counted one by one:
//                         7 GB/s with 90 % of one value, where a scalar loop reaches 0.65.
//   near-uniform values   two tables in rotation, bytes extracted from 8-byte words: 5.0 GB/s,
//                         the limit of one store per cycle; a scalar loop reaches 3.9.
//   other distributions   pairs of bytes count in one table of 65,536: a store per two bytes. 5.4
//                         GB/s on normally distributed bytes; if few values make up most, four
//                         tables in rotation: 6.4 GB/s on four letters, 8 on sixteen values.
// A table of pairs has counters of 8 bits: 64 KiB, much of which stays in L1, whereas 32-bit
// counters would spill to L2 (4.2 instead of 5.4 GB/s). The addition's carry detects that a counter
// wraps.
namespace rung::histogram_cpu {
namespace {
HWY_EXPORT(around_u8);

constexpr std::int64_t chunk = 64 << 10;
// Sixteen neighbors at each of eight positions of the chunk: 128 separate positions would be as
// many cache misses, which took a fifth of the run time.
constexpr int places = 8;
constexpr int neighbors = 16;
constexpr int samples = places * neighbors;
/// Least number of samples with one value for which counting only the other values beats the tables
/// (measured, as all thresholds below).
constexpr int dominating = samples * 81 / 100;
constexpr int frequent = samples * 40 / 100;
constexpr int few_values = 16;
constexpr int many_values = 88;  // distinct samples; uniform bytes have about 100
/// Minimum bytes for tables of pairs: below, clearing and adding them costs more than they save.
constexpr std::int64_t min_for_pairs = 128 << 10;

struct Sample {
  std::uint8_t most;  // the most frequent value of the sample
  int times;
  int distinct;
};

Sample sample_of(const std::uint8_t* x, std::int64_t count) {
  std::uint8_t seen[256] = {};
  Sample sample{0, 0, 0};
  const std::int64_t step = count / places;
  for (int place = 0; place < places; ++place) {
    for (int i = 0; i < neighbors; ++i) {
      const std::uint8_t value = x[place * step + i];
      const int times = ++seen[value];
      sample.distinct += times == 1 ? 1 : 0;
      if (times > sample.times) sample = {value, times, sample.distinct};
    }
  }
  return sample;
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

void count_single(ByteTables& tables, const std::uint8_t* x, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, x + i, 8);
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) ++tables.single[k % 2][(word >> (8 * k)) & 0xff];
  }
  for (; i < count; ++i) ++tables.single[0][x[i]];
}

/// Counts `count` contiguous bytes, part of `total` bytes in all.
void count_piece(ByteTables& tables, const std::uint8_t* x, std::int64_t count,
                 std::int64_t total) {
  for (std::int64_t begin = 0; begin < count; begin += chunk) {
    const std::int64_t size = std::min(chunk, count - begin);
    const std::uint8_t* const here = x + begin;
    if (size < 2 * samples) {
      count_single(tables, here, size);
      continue;
    }
    const Sample sample = sample_of(here, size);
    if (sample.times >= dominating) {
      std::uint32_t* const single[4] = {tables.single[0], tables.single[1], tables.single[2],
                                        tables.single[3]};
      tables.counts[sample.most] += static_cast<std::uint64_t>(
          HWY_DYNAMIC_DISPATCH(around_u8)(sample.most, here, size, single));
    } else if (total < min_for_pairs || sample.distinct >= many_values) {
      count_single(tables, here, size);
    } else if (sample.distinct <= few_values || sample.times >= frequent) {
      count_pairs<4>(tables, here, size);
    } else {
      count_pairs<1>(tables, here, size);
    }
  }
}

/// Adds all tables to tables.counts.
void add_up(ByteTables& tables) {
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

}  // namespace

void count_bytes(const Histogram::Args& args, cpu::Range range, ByteTables& tables) {
  std::memset(tables.counts, 0, sizeof(tables.counts));
  std::memset(tables.single, 0, sizeof(tables.single));
  tables.pair_tables = 0;
  for_each_piece<std::uint8_t>(args.x, range, [&](const std::uint8_t* x, std::int64_t count) {
    count_piece(tables, x, count, range.size());
  });
  add_up(tables);
}

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

namespace {

Support supports(const Histogram::Args& args, const Context&) {
  return args.x.dtype == DType::u8 ? supported : unsupported("u8 only");
}

void run(const Histogram::Args& args, Context& context) {
  auto* const tables = static_cast<ByteTables*>(context.workspace(sizeof(ByteTables)));
  for_each_round(args, [&](const Histogram::Args& part, cpu::Range range) {
    count_bytes(part, range, *tables);
    store_bytes(part, tables->counts);
  });
}

const Rung<Histogram> self{
    {.name = "bytes", .after = "vector_bins", .teaching = true, .supports = supports, .run = run}};
}  // namespace
}  // namespace rung::histogram_cpu
#endif
