// SPDX-License-Identifier: Apache-2.0
//
// Counts of data with one dominant value: vectors find the elements that differ from it.
#if defined(RUNG_OPS_HISTOGRAM_CPU_AROUND_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_HISTOGRAM_CPU_AROUND_INL_HPP_
#undef RUNG_OPS_HISTOGRAM_CPU_AROUND_INL_HPP_
#else
#define RUNG_OPS_HISTOGRAM_CPU_AROUND_INL_HPP_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace rung::histogram_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Counts the elements of a group of 64 whose bits are set in `mask`: four per iteration, each in a
/// table of its own; missing elements of the last iteration add 0.
template <class T>
HWY_INLINE void count_marked(std::uint64_t mask, const T* group,
                             std::uint32_t* const (&tables)[4]) {
  while (mask != 0) {
#pragma GCC unroll 4
    for (std::uint32_t* const table : tables) {
      const int at = __builtin_ctzll(mask | std::uint64_t{1} << 63);
      table[group[at]] += mask != 0 ? 1 : 0;
      mask &= mask - 1;
    }
  }
}

/// Counts the elements that differ from `value` in four tables in rotation (or one table four
/// times). Returns the number of elements equal to `value`. Takes a comparison per vector, and a
/// branch and a store per differing element.
template <class T>
std::int64_t count_around(T value, const T* x, std::int64_t count,
                          std::uint32_t* const (&tables)[4]) {
  constexpr std::int64_t group = 64;
  const hn::CappedTag<T, group> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto values = hn::Set(d, value);
  std::int64_t others = 0;
  std::int64_t i = 0;
  for (; i + group <= count; i += group) {
    std::uint64_t mask = 0;
    for (std::int64_t at = 0; at < group; at += lanes) {
      std::uint64_t bits = 0;  // the lanes' bits, least significant first
      hn::StoreMaskBits(d, hn::Ne(hn::LoadU(d, x + i + at), values),
                        reinterpret_cast<std::uint8_t*>(&bits));
      mask |= bits << at;
    }
    others += __builtin_popcountll(mask);
    count_marked(mask, x + i, tables);
  }
  for (; i < count; ++i) {
    if (x[i] == value) continue;
    ++others;
    ++tables[0][x[i]];
  }
  return count - others;
}

}  // namespace
}  // namespace rung::histogram_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
