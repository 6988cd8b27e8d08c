// SPDX-License-Identifier: Apache-2.0
// Operations of scan as functors, the type in which elements are combined, and identities; for CPUs
// and GPUs.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "rung/core/dtype.hpp"
#include "rung/ops/scan/op/scan.hpp"

namespace rung {

/// Type in which elements of T are combined. Small integers use 32 bits and are truncated when
/// stored: the low bits of a sum or product do not depend on the high ones.
template <class T>
using ScanState =
    std::conditional_t<std::is_class_v<T>, float,
                       std::conditional_t<std::is_integral_v<T> && sizeof(T) < 4, std::int32_t, T>>;

/// Returns the identity that exclusive scans store, which depends on the element type.
template <class T>
constexpr ScanState<T> scan_identity(ScanOperation operation) {
  using State = ScanState<T>;
  if (operation == ScanOperation::sum) return State(0);
  if (operation == ScanOperation::product) return State(1);
  const bool min = operation == ScanOperation::min;
  if constexpr (std::is_integral_v<T>) {
    return min ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
  } else {
    constexpr State infinity = std::numeric_limits<State>::infinity();
    return min ? infinity : -infinity;
  }
}

/// Wrapping sum: integers are added as unsigned, since signed overflow is undefined in C++.
struct ScanSum {
  template <class S>
  RUNG_HD RUNG_ALWAYS_INLINE S operator()(S a, S b) const {
    if constexpr (std::is_integral_v<S>) {
      using U = std::make_unsigned_t<S>;
      return static_cast<S>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
    } else {
      return a + b;
    }
  }
};
struct ScanProduct {
  template <class S>
  RUNG_HD RUNG_ALWAYS_INLINE S operator()(S a, S b) const {
    if constexpr (std::is_integral_v<S>) {
      // Unsigned of at least 32 bits: u16 would be promoted to int, which the product can overflow.
      using U = std::make_unsigned_t<std::common_type_t<S, int>>;
      return static_cast<S>(static_cast<U>(a) * static_cast<U>(b));
    } else {
      return a * b;
    }
  }
};
/// Minimum, which propagates NaN: b != b detects a NaN in b; a NaN in a remains, because b < a is
/// then false.
struct ScanMin {
  template <class S>
  RUNG_HD RUNG_ALWAYS_INLINE S operator()(S a, S b) const {
    return b < a || b != b ? b : a;  // NOLINT(misc-redundant-expression): NaN
  }
};
struct ScanMax {
  template <class S>
  RUNG_HD RUNG_ALWAYS_INLINE S operator()(S a, S b) const {
    return b > a || b != b ? b : a;  // NOLINT(misc-redundant-expression): NaN
  }
};

/// Operation as a run-time value: a switch at each step, which a memory-bound scan hides, instead
/// of four copies of the code.
struct ScanAny {
  ScanOperation operation;

  template <class S>
  RUNG_HD RUNG_ALWAYS_INLINE S operator()(S a, S b) const {
    switch (operation) {
      case ScanOperation::sum:
        return ScanSum()(a, b);
      case ScanOperation::product:
        return ScanProduct()(a, b);
      case ScanOperation::min:
        return ScanMin()(a, b);
      default:
        return ScanMax()(a, b);
    }
  }
};

/// Calls f.template operator()<Functor>() with the functor of `operation`.
template <class F>
decltype(auto) visit_scan(ScanOperation operation, F&& f) {
  switch (operation) {
    case ScanOperation::sum:
      return f.template operator()<ScanSum>();
    case ScanOperation::product:
      return f.template operator()<ScanProduct>();
    case ScanOperation::min:
      return f.template operator()<ScanMin>();
    default:
      return f.template operator()<ScanMax>();
  }
}

/// Calls f.template operator()<T>() with the element type of a scan.
template <class F>
decltype(auto) visit_scanned(DType dtype, F&& f) {
  return visit<float, double, f16, bf16, std::int8_t, std::uint8_t, std::uint16_t, std::int32_t,
               std::int64_t>(dtype, std::forward<F>(f));
}

}  // namespace rung
