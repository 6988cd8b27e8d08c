// SPDX-License-Identifier: Apache-2.0
// Vector kernels of 020_simd.cpp: scans and totals of a chunk of a contiguous line.
//
// The total of a chunk is summed separately from its prefixes, vectors added to vectors, the
// fastest way for a chunk that is not scanned yet; every rung uses it. The carry into a chunk
// combines the totals before it from left to right. Therefore every rung built on these kernels
// gives the same bits for any number of threads.
#pragma once

#include <cstdint>
#include <cstring>

#include "rung/ops/scan/op/scan.hpp"

namespace rung::scan_cpu {

/// Running value, stored as bits of any type that elements are combined in.
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
  /// Stores carry + the prefixes of x to y, n contiguous elements; x may be y. `stream`:
  /// non-temporal stores.
  void (*scan)(const void* x, void* y, std::int64_t n, Carry carry, bool exclusive, bool stream);
  /// Returns the total of x.
  Carry (*total)(const void* x, std::int64_t n);
  /// Scans x, and returns the total of the n elements at `totaled`, which may be x.
  Carry (*scan_and_total)(const void* x, void* y, std::int64_t n, Carry carry, bool exclusive,
                          bool stream, const void* totaled);
  /// Returns the combination of `before` and `total`.
  Carry (*combine)(Carry before, Carry total);
  Carry identity;
};

/// Types whose kernels are compiled together.
template <class... Ts>
struct Types {};
using Floating = Types<float, double, f16, bf16>;
using Integers = Types<std::int8_t, std::uint8_t, std::uint16_t, std::int32_t, std::int64_t>;

/// Returns the kernels for the instruction set in use.
Kernel kernel_of(DType dtype, ScanOperation operation);

}  // namespace rung::scan_cpu
