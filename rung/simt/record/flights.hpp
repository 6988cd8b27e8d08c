// SPDX-License-Identifier: Apache-2.0
// Bytes that asynchronous copies read or write until their completion is waited for. Internal to
// simt/record.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "rung/simt/record/footprint.hpp"
#include "rung/simt/record/vector_clock.hpp"

namespace rung::simt::record {

/// Global memory of a copy: bytes from `begin` on or, if `rows` is not null, the rows of a box.
struct CopyRange {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  std::shared_ptr<const ByteRanges> rows;  // ascending, within the bytes from `begin` on

  CopyRange() = default;
  CopyRange(const void* address, std::size_t size)
      : begin(reinterpret_cast<std::uintptr_t>(address)), bytes(size) {}
  /// Constructs the range of a box from its rows, which may overlap, in any order.
  explicit CopyRange(ByteRanges box_rows);

  [[nodiscard]] bool overlaps(std::uintptr_t from, std::uintptr_t to) const {
    if (from >= begin + bytes || begin >= to) return false;
    if (rows == nullptr) return true;
    const auto row = std::upper_bound(
        rows->begin(), rows->end(), from,
        [](std::uintptr_t address, const ByteRange& one) { return address < one.end; });
    return row != rows->end() && row->begin < to;
  }
  /// Returns the first common address with an overlapping range.
  [[nodiscard]] std::uintptr_t first_common(const CopyRange& other) const;
  [[nodiscard]] bool overlaps(const CopyRange& other) const { return first_common(other) != 0; }
};

/// Bytes that a bulk store reads or writes until its thread has waited for it, or that a bulk load
/// reads until a wait for its mbarrier.
struct Flight {
  std::uint32_t thread = 0;  // index of the issuing thread in the block
  std::uint32_t number = 0;  // number among the thread's stores, from 1
  std::uint32_t waited = 0;  // number of the wait that completed it; 0: in flight
  // Number of the bulk load in the block; 0: a store. A multicast, which reads its source once, has
  // a number per destination: `copies` consecutive ones.
  std::uint32_t copy = 0;
  std::uint32_t copies = 1;
  bool writes = false;
  std::uintptr_t site = 0;
  CopyRange range;
  // Clocks that the thread had acquired at the issue, from other warps and from lanes of its own
  // warp.
  Clocks known{};
  std::uint32_t synced = 0, told = 0;
};
/// Numbers of stores and waits that a thread has issued, and that the checks have processed so far.
struct FlightOrder {
  std::uint32_t issued = 0, waits = 0;
  std::uint32_t passed_issues = 0, passed_waits = 0;
};

/// Bytes that a cp.async may read until its thread has waited for it.
struct SourceRead {
  std::uintptr_t begin = 0;
  std::uint32_t bytes = 0;
  std::uint32_t thread = 0;
  std::uintptr_t site = 0;
};

}  // namespace rung::simt::record
