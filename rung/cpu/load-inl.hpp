// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores of vectors in the arithmetic type, from and to memory of any floating type: f16
// and bf16 are widened by loads and rounded to nearest even by stores. u8, i8 and u16 can be
// loaded, not stored.
//
//   load_as(d, p)       Lanes(d) elements      load_as_n(d, p, n)       n < Lanes(d), then zeros
//   store_as(v, d, p)                          store_as_n(v, d, p, n)
//   load_some(d, p[, n]) and store_some(v, d, p[, n]): either form, for generic loop bodies
//
// The _n forms access exactly n elements on every target.
#if defined(RUNG_CPU_LOAD_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_CPU_LOAD_INL_HPP_
#undef RUNG_CPU_LOAD_INL_HPP_
#else
#define RUNG_CPU_LOAD_INL_HPP_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "rung/core/dtype.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// AVX-512 masks accesses of every element size, AVX2 of 4 and 8 bytes; other targets cannot mask.
#if HWY_TARGET <= HWY_AVX3
template <class T>
inline constexpr bool has_masked_access = true;
#elif HWY_TARGET == HWY_AVX2
template <class T>
inline constexpr bool has_masked_access = sizeof(T) >= 4;
#else
template <class T>
inline constexpr bool has_masked_access = false;
#endif

// --- conversion between stored bits and the arithmetic type --------------------------------------

/// Vector tag of the stored bits of T.
template <class T, class D>
struct Stored {
  using Tag = hn::Rebind<T, D>;
};
template <class D>
struct Stored<bf16, D> {
  using Tag = hn::Rebind<std::uint16_t, D>;
};
template <class D>
struct Stored<f16, D> {
  using Tag = hn::Rebind<std::uint16_t, D>;
};
template <class T, class D>
using StoredTag = typename Stored<T, D>::Tag;

#if HWY_TARGET > HWY_AVX2
// The fallback target's own conversions handle neither infinities nor rounding to nearest. Not
// inlined: dozens of copies in a loop body would take longer to compile than all faster targets.
HWY_NOINLINE inline float to_float(std::uint16_t bits) {
  return static_cast<float>(f16::from_bits(bits));
}
HWY_NOINLINE inline std::uint16_t to_f16_bits(float value) { return f16(value).bits; }
#endif

template <class T, class D, class V>
HWY_INLINE hn::Vec<D> widen(D d, V bits) {
  if constexpr (std::is_same_v<T, hn::TFromD<D>>) {
    return bits;
  } else if constexpr (std::is_same_v<T, bf16>) {
    // bf16 is the upper half of a float: widened by a shift.
    const hn::RebindToUnsigned<D> d32;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, bits)));
  } else if constexpr (std::is_same_v<T, f16>) {
#if HWY_TARGET <= HWY_AVX2
    const hn::Rebind<hwy::float16_t, D> d16;
    return hn::PromoteTo(d, hn::BitCast(d16, bits));
#else
    HWY_ALIGN std::uint16_t small[hn::MaxLanes(D())];
    HWY_ALIGN float lanes[hn::MaxLanes(D())];
    hn::Store(bits, StoredTag<T, D>(), small);
    for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
      lanes[i] = to_float(small[i]);
    }
    return hn::Load(d, lanes);
#endif
  } else {
    const hn::RebindToSigned<D> integers;
    return hn::ConvertTo(d, hn::PromoteTo(integers, bits));
  }
}

template <class T, class D, class V>
HWY_INLINE hn::Vec<StoredTag<T, D>> narrow([[maybe_unused]] D d, V values) {
  const StoredTag<T, D> stored;
  if constexpr (std::is_same_v<T, hn::TFromD<D>>) {
    return values;
  } else if constexpr (std::is_same_v<T, bf16>) {
    // Rounds to nearest even: adds half a unit of the result, minus one if the kept bits are even.
    const hn::RebindToUnsigned<D> d32;
    const auto bits = hn::BitCast(d32, values);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1));
    const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(d32, 0x7fff)));
    const auto quiet = hn::Or(bits, hn::Set(d32, 0x400000));  // rounding could give infinity
    const auto is_nan = hn::RebindMask(d32, hn::IsNaN(values));
    const auto chosen = hn::ShiftRight<16>(hn::IfThenElse(is_nan, quiet, rounded));
    return hn::DemoteTo(stored, hn::BitCast(hn::RebindToSigned<D>(), chosen));
  } else {
    static_assert(std::is_same_v<T, f16>);
#if HWY_TARGET <= HWY_AVX2
    const hn::Rebind<hwy::float16_t, D> d16;
    return hn::BitCast(stored, hn::DemoteTo(d16, values));
#else
    HWY_ALIGN float lanes[hn::MaxLanes(D())];
    HWY_ALIGN std::uint16_t bits[hn::MaxLanes(D())];
    hn::Store(values, d, lanes);
    for (std::size_t i = 0; i < hn::Lanes(d); ++i) bits[i] = to_f16_bits(lanes[i]);
    return hn::Load(stored, bits);
#endif
  }
}

// --- memory --------------------------------------------------------------------------------------

template <class D, class T>
HWY_INLINE hn::Vec<D> load_as(D d, const T* from) {
  const StoredTag<T, D> stored;
  using Bits = hn::TFromD<decltype(stored)>;
  return widen<T>(d, hn::LoadU(stored, reinterpret_cast<const Bits*>(from)));
}

template <class D, class T>
HWY_INLINE hn::Vec<D> load_as_n(D d, const T* from, std::size_t n) {
  const StoredTag<T, D> stored;
  using Bits = hn::TFromD<decltype(stored)>;
  if constexpr (has_masked_access<T>) {
    const auto* bits = reinterpret_cast<const Bits*>(from);
    return widen<T>(d, hn::MaskedLoad(hn::FirstN(stored, n), stored, bits));
  } else {
    HWY_ALIGN Bits lanes[hn::MaxLanes(D())] = {};
    // n is at most the lane count, which g++ cannot deduce; without the minimum it warns.
    std::memcpy(lanes, from, std::min(n, hn::MaxLanes(D())) * sizeof(T));
    return widen<T>(d, hn::Load(stored, lanes));
  }
}

template <class V, class D, class T>
HWY_INLINE void store_as(V values, D d, T* to) {
  const StoredTag<T, D> stored;
  using Bits = hn::TFromD<decltype(stored)>;
  hn::StoreU(narrow<T>(d, values), stored, reinterpret_cast<Bits*>(to));
}

template <class V, class D, class T>
HWY_INLINE void store_as_n(V values, D d, T* to, std::size_t n) {
  const StoredTag<T, D> stored;
  using Bits = hn::TFromD<decltype(stored)>;
  const auto bits = narrow<T>(d, values);
  if constexpr (has_masked_access<T>) {
    hn::BlendedStore(bits, hn::FirstN(stored, n), stored, reinterpret_cast<Bits*>(to));
  } else {
    HWY_ALIGN Bits lanes[hn::MaxLanes(D())];
    hn::Store(bits, stored, lanes);
    std::memcpy(static_cast<void*>(to), lanes, n * sizeof(T));
  }
}

template <class D, class T>
HWY_INLINE hn::Vec<D> load_some(D d, const T* from) {
  return load_as(d, from);
}
template <class D, class T>
HWY_INLINE hn::Vec<D> load_some(D d, const T* from, std::size_t n) {
  return load_as_n(d, from, n);
}
template <class V, class D, class T>
HWY_INLINE void store_some(V values, D d, T* to) {
  store_as(values, d, to);
}
template <class V, class D, class T>
HWY_INLINE void store_some(V values, D d, T* to, std::size_t n) {
  store_as_n(values, d, to, n);
}

}  // namespace rung::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
