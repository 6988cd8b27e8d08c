// SPDX-License-Identifier: Apache-2.0
// The kernels of the fast CPU rungs: a chunk of a contiguous line scanned, or only reduced, with
// vectors of the widest kind that the machine has.
//
// The total of a chunk is summed apart from its prefixes, in vectors added to vectors: that is the
// cheapest way to reduce a chunk which has not been scanned yet, so it is the way everywhere. The
// carry into a chunk is the totals before it, combined from left to right. Neither depends on who
// does it when: every rung built on these kernels gives the same bits, with any number of threads.
#pragma once

#include <cstdint>
#include <cstring>

#include "rung/ops/scan/op/scan.hpp"

namespace rung::scan_cpu {

/// A running value of any type that elements are combined in.
struct Carry {
  std::uint64_t bits = 0;

  template <class S>
  static Carry of(S value) {
    Carry carry;
    std::memcpy(&carry.bits, &value, sizeof(S));
    return carry;
  }
  template <class S>
  [[nodiscard]] S as() const {
    S value;
    std::memcpy(&value, &bits, sizeof(S));
    return value;
  }
};

struct Kernel {
  /// y = carry + the prefixes of x, n contiguous elements; x may be y. `stream`: y goes past the
  /// caches.
  void (*scan)(const void* x, void* y, std::int64_t n, Carry carry, bool exclusive, bool stream);
  /// The total of x, from the identity on.
  Carry (*total)(const void* x, std::int64_t n);
  /// scan(), and the total of n elements elsewhere meanwhile, or of x.
  Carry (*scan_and_total)(const void* x, void* y, std::int64_t n, Carry carry, bool exclusive,
                          bool stream, const void* totalled);
  /// Adjacent lines: for each of `rows` rows, running[j] += x[j]; y[j] = running[j], for j <
  /// `width` contiguous elements. Rows lie x_step and y_step elements apart.
  void (*columns)(const void* x, std::int64_t x_step, void* y, std::int64_t y_step,
                  std::int64_t rows, std::int64_t width, void* running, bool exclusive,
                  bool stream);
  /// Fills `width` running values of columns() with the identity.
  void (*restart)(void* running, std::int64_t width);
  /// before + total.
  Carry (*combine)(Carry before, Carry total);
  Carry identity;
};

/// Types whose kernels are compiled together.
template <class... Ts>
struct Types {};
using Floating = Types<float, double, f16, bf16>;
using Integers = Types<std::int8_t, std::uint8_t, std::uint16_t, std::int32_t, std::int64_t>;

/// For the instruction set in use.
Kernel kernel_of(DType dtype, ScanOperation operation);

}  // namespace rung::scan_cpu
