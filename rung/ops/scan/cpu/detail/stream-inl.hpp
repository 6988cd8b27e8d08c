// SPDX-License-Identifier: Apache-2.0
//
// Non-temporal stores.
#if defined(RUNG_OPS_SCAN_CPU_STREAM_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_SCAN_CPU_STREAM_INL_HPP_
#undef RUNG_OPS_SCAN_CPU_STREAM_INL_HPP_
#else
#define RUNG_OPS_SCAN_CPU_STREAM_INL_HPP_
#endif

#include <algorithm>
#include <cstring>

#include "rung/cpu/load-inl.hpp"

// Vectors of one block or less have no use for this.
#if HWY_MAX_BYTES > 16
HWY_BEFORE_NAMESPACE();
namespace rung::scan_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using namespace cpu::HWY_NAMESPACE;  // store_as

/// Stores a vector as elements of T: non-temporally, where it must be aligned, or not.
template <bool past, class V, class D, class T>
HWY_INLINE void put(V v, D d, T* to) {
  if constexpr (past) {
    using Stored = StoredTag<T, D>;
    hn::Stream(narrow<T>(d, v), Stored(), reinterpret_cast<hn::TFromD<Stored>*>(to));
  } else {
    store_as(v, d, to);
  }
}

/// With non-temporal stores, wherever `to` lies: all but its ragged ends in aligned vectors.
template <class T>
void stream_copy(const T* from, T* to, std::int64_t n) {
  const hn::ScalableTag<std::uint8_t> d;
  constexpr std::int64_t vector = HWY_MAX_BYTES;
  const auto* in = reinterpret_cast<const std::uint8_t*>(from);
  auto* out = reinterpret_cast<std::uint8_t*>(to);
  const std::int64_t bytes = n * static_cast<std::int64_t>(sizeof(T));
  const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % vector);
  std::int64_t i = std::min(bytes, (vector - past) % vector);
  std::memcpy(out, in, static_cast<std::size_t>(i));
  for (; i + vector <= bytes; i += vector) hn::Stream(hn::LoadU(d, in + i), d, out + i);
  std::memcpy(out + i, in + i, static_cast<std::size_t>(bytes - i));
}

}  // namespace
}  // namespace rung::scan_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // the guard flips with each target
