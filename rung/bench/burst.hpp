// SPDX-License-Identifier: Apache-2.0
// Bursts: DRAM transfers whole bursts and caches whole sectors, even if only a part is used.
#pragma once

namespace rung::bench {

/// Access to elements of `element` bytes, one per thread, `stride` elements apart; the first begins
/// `offset` bytes after the start of a line.
struct StridedAccess {
  double threads = 0;
  double element = 0;
  double stride = 1;
  double offset = 0;

  /// Returns the requested bytes. With a stride of 0 all threads access the same element.
  [[nodiscard]] double used_bytes() const { return stride == 0 ? element : threads * element; }
  /// Returns the number of distinct lines of `line` bytes that the elements touch; at most 2^20
  /// threads.
  [[nodiscard]] double lines(double line) const;
};

}  // namespace rung::bench
