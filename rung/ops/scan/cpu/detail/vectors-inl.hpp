// SPDX-License-Identifier: Apache-2.0
//
// Vector helpers of scan: its operations, and loads and stores of any type (rung/cpu/load-inl.hpp).
#if defined(RUNG_OPS_SCAN_CPU_VECTORS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_SCAN_CPU_VECTORS_INL_HPP_
#undef RUNG_OPS_SCAN_CPU_VECTORS_INL_HPP_
#else
#define RUNG_OPS_SCAN_CPU_VECTORS_INL_HPP_
#endif

#include "rung/cpu/load-inl.hpp"
#include "rung/ops/scan/op/operations.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::scan_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using namespace cpu::HWY_NAMESPACE;  // load_as, store_as

/// Type that elements of T are combined in: float for f16 and bf16.
template <class T>
using Lane = std::conditional_t<std::is_class_v<T>, float, T>;

template <class T, class Operation>
constexpr Lane<T> identity_of = static_cast<Lane<T>>(
    scan_identity<T>(std::is_same_v<Operation, ScanSum>       ? ScanOperation::sum
                     : std::is_same_v<Operation, ScanProduct> ? ScanOperation::product
                     : std::is_same_v<Operation, ScanMin>     ? ScanOperation::min
                                                              : ScanOperation::max));

// Vectors of at most 16 bytes are not used: scalar loops are as fast.
#if HWY_MAX_BYTES > 16
/// False for products of 8- and 64-bit integers, which some instruction sets lack.
template <class T, class Operation>
constexpr bool has_vectors = !(std::is_same_v<Operation, ScanProduct> && std::is_integral_v<T> &&
                               (sizeof(T) == 1 || sizeof(T) == 8));

/// Returns the combination of vectors, with NaN as in operations.hpp: the hardware's minimum and
/// maximum return their second operand if either is NaN.
template <class Operation, class D, class V>
HWY_INLINE V combine(Operation, D, V a, V b) {
  using L = hn::TFromD<D>;
  if constexpr (std::is_same_v<Operation, ScanSum>) {
    return hn::Add(a, b);
  } else if constexpr (std::is_same_v<Operation, ScanProduct>) {
    return hn::Mul(a, b);
  } else {
    V best;
    if constexpr (std::is_same_v<Operation, ScanMin>) {
      best = hn::Min(a, b);
    } else {
      best = hn::Max(a, b);
    }
    if constexpr (std::is_floating_point_v<L>) return hn::IfThenElse(hn::IsNaN(a), a, best);
    return best;
  }
}

/// Stores a vector as elements of T; if `past`, by a non-temporal store, which must be aligned.
template <bool past, class V, class D, class T>
HWY_INLINE void put(V v, D d, T* to) {
  if constexpr (past) {
    using Stored = StoredTag<T, D>;
    hn::Stream(narrow<T>(d, v), Stored(), reinterpret_cast<hn::TFromD<Stored>*>(to));
  } else {
    store_as(v, d, to);
  }
}
#else
template <class T, class Operation>
constexpr bool has_vectors = false;
#endif

}  // namespace
}  // namespace rung::scan_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
