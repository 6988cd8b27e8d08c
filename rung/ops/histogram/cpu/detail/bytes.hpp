// SPDX-License-Identifier: Apache-2.0
// Counting bytes: whatever the bins, there are only 256 values to count. Each chunk is looked at
// first, as what is fast depends on the values. Rates are those of one core of a 2-core Zen 5 vCPU.
//
//   one value dominates   vectors find the bytes that differ, only they are counted one by one:
//                         7 GB/s with 90 % of one value, where a plain loop has 0.65.
//   all values about as   two tables that take turns, words of 8 bytes taken apart: 5.0 GB/s, where
//   frequent              a plain loop has 3.9. A core stores once a cycle, and this is that.
//   anything else         pairs of bytes count into one table of 65,536: a store for two bytes. 5.4
//                         GB/s on normally distributed bytes; where few values make up most, four
//                         tables that take turns: 6.4 GB/s on four letters, 8 on sixteen values.
//
// A table of pairs has counters of 8 bits: 64 KiB, much of which stays in L1, where 32 bits would
// spill to L2 (4.2 instead of 5.4 GB/s). That a counter wraps is seen by the addition itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "rung/ops/histogram/cpu/detail/kernels.hpp"

namespace rung::histogram_cpu {

struct ByteTables {
  std::uint64_t counts[256];
  std::uint32_t single[4][256];
  std::uint8_t pairs[4][1 << 16];
  int pair_tables;  // of these, how many have been cleared
};

namespace bytes_detail {

constexpr std::int64_t chunk = 64 << 10;
// From eight places of the chunk, 16 neighbours each: 128 places would be as many cache misses,
// which took a fifth of the time.
constexpr int places = 8;
constexpr int neighbours = 16;
constexpr int samples = places * neighbours;
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
    for (int i = 0; i < neighbours; ++i) {
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
