// SPDX-License-Identifier: Apache-2.0
// Bursts: DRAM delivers whole bursts and caches whole sectors, whatever part of them is used.
#pragma once

namespace rung::bench {

/// Elements of `element` bytes, one per thread, `stride` elements apart; the first begins `offset`
/// bytes behind the start of a line.
struct StridedAccess {
  double threads = 0;
  double element = 0;
  double stride = 1;
  double offset = 0;

  /// Bytes asked for. With a stride of 0 all threads read the same element.
  [[nodiscard]] double used_bytes() const { return stride == 0 ? element : threads * element; }
  /// Different lines of `line` bytes that the elements touch; at most 2^20 threads.
  [[nodiscard]] double lines(double line) const;
};

}  // namespace rung::bench
