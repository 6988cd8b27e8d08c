// SPDX-License-Identifier: Apache-2.0
// Tables of one thread, and the kernels that count in them: 030_vector_bins.cpp for any type,
// types/bytes.cpp for u8.
#pragma once

#include "rung/ops/histogram/cpu/detail/walk.hpp"

namespace rung::histogram_cpu {

/// `copies` tables of 32-bit counters used in rotation, each with a counter for values outside.
struct IndexTables {
  std::uint32_t* data;
  std::int64_t pitch;  // bins + 1
  int copies;          // 1 or 4

  /// Uses four tables, which separate equal neighbors, while they fit L1 beside the chunks.
  explicit IndexTables(std::int64_t bins)
      : data(nullptr), pitch(bins + 1), copies(bins <= 2048 ? 4 : 1) {}
  /// Returns the number of counters, padded to whole cache lines.
  [[nodiscard]] std::int64_t words() const { return (pitch * copies + 15) / 16 * 16; }
};

/// Counts elements [range) of x, fewer than 2^32, in cleared tables.
void count_values(const Histogram::Args& args, cpu::Range range, const IndexTables& tables);

/// Counts of byte values: add_up() adds the other tables to `counts`.
struct ByteTables {
  std::uint64_t counts[256];
  std::uint32_t single[4][256];
  std::uint8_t pairs[4][1 << 16];
  int pair_tables;  // number of cleared pair tables
};

/// Clears the tables, counts bytes [range) of x, at most 2^32, and adds the tables.
void count_bytes(const Histogram::Args& args, cpu::Range range, ByteTables& tables);
/// Adds the 256 values' counts to args.counts (or stores them); finds each value's bin once.
void store_bytes(const Histogram::Args& args, const std::uint64_t (&values)[256]);

}  // namespace rung::histogram_cpu
