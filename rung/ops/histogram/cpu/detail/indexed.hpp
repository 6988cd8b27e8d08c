// SPDX-License-Identifier: Apache-2.0
// Counting values of any type: a chunk of x becomes a chunk of bins, by vectors where the formula
// has them; the bins are then counted into tables. Both chunks stay in L1.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rung/ops/histogram/cpu/detail/kernels.hpp"
#include "rung/ops/histogram/cpu/detail/walk.hpp"

namespace rung::histogram_cpu {

/// A thread's tables: `copies` of them, which take turns, each with a place for values outside.
struct IndexTables {
  std::uint32_t* data;
  std::int64_t pitch;  // bins + 1
  int copies;          // 1 or 4

  /// Four tables keep equal neighbours apart, as long as they fit L1 and leave room for the chunks.
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
