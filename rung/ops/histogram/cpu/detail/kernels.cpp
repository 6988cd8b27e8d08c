// SPDX-License-Identifier: Apache-2.0
// histogram's vector code: see kernels.hpp. One IEEE operation at a time, as bins.hpp has it:
// the same bins on every instruction set.
#include "rung/ops/histogram/cpu/detail/kernels.hpp"
#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/load-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::histogram_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace cpu_n = rung::cpu::HWY_NAMESPACE;

/// Vectors of Real from memory of T to bins of 32 bits.
template <class Real, class T>
void even_floats(const EvenBins<Real>& even, std::uint32_t bins, const T* x, std::int64_t count,
                 std::uint32_t* indices) {
  const hn::ScalableTag<Real> d;
  const hn::Rebind<std::int32_t, decltype(d)> d32;
  const hn::Rebind<std::uint32_t, decltype(d)> du32;
  const auto low = hn::Set(d, even.low);
  const auto high = hn::Set(d, even.high);
  const auto scale = hn::Set(d, even.scale);
  const auto last = hn::Set(d32, even.last);
  const auto outside = hn::Set(d, static_cast<Real>(-1));
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto bins_of = [&](auto value) HWY_ATTR {
    const auto inside = hn::And(hn::Ge(value, low), hn::Le(value, high));
    const auto place = hn::Mul(hn::Sub(value, low), scale);
    // -1 becomes the largest unsigned number, and `bins` by the minimum.
    const auto chosen = hn::IfThenElse(inside, place, outside);
    const auto bin = [&]() HWY_ATTR {
      if constexpr (sizeof(Real) == 8) {
        return hn::DemoteTo(d32, chosen);
      } else {
        return hn::ConvertTo(d32, chosen);
      }
    }();
    return hn::Min(hn::BitCast(du32, hn::Min(bin, last)), hn::Set(du32, bins));
  };
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(bins_of(cpu_n::load_as(d, x + i)), du32, indices + i);
  }
  if (i < count) {
    HWY_ALIGN std::uint32_t rest[hn::MaxLanes(du32)];
    hn::Store(bins_of(cpu_n::load_as_n(d, x + i, static_cast<std::size_t>(count - i))), du32, rest);
    for (std::int64_t j = 0; i < count; ++i, ++j) indices[i] = rest[j];
  }
}

void even_f32(const EvenFormula& formula, const float* x, std::int64_t count,
              std::uint32_t* indices) {
  even_floats(formula.f32, formula.bins, x, count, indices);
}
void even_f16(const EvenFormula& formula, const f16* x, std::int64_t count,
              std::uint32_t* indices) {
  even_floats(formula.f32, formula.bins, x, count, indices);
}
void even_bf16(const EvenFormula& formula, const bf16* x, std::int64_t count,
               std::uint32_t* indices) {
  even_floats(formula.f32, formula.bins, x, count, indices);
}
void even_f64(const EvenFormula& formula, const double* x, std::int64_t count,
              std::uint32_t* indices) {
  even_floats(formula.f64, formula.bins, x, count, indices);
}

/// Whole numbers that are their own bins, in 32 bits: below `low` they wrap to numbers beyond all
/// bins.
template <class T>
void own_bins(std::uint32_t low, std::uint32_t bins, const T* x, std::int64_t count,
              std::uint32_t* indices) {
  const hn::ScalableTag<std::uint32_t> d;
  using Bits = std::make_unsigned_t<T>;
  const hn::Rebind<Bits, decltype(d)> stored;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto lows = hn::Set(d, low);
  const auto outside = hn::Set(d, bins);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto bits = hn::LoadU(stored, reinterpret_cast<const Bits*>(x + i));
    const auto value = [&]() HWY_ATTR {
      if constexpr (sizeof(T) == 4) {
        return bits;
      } else {
        return hn::PromoteTo(d, bits);
      }
    }();
    hn::StoreU(hn::Min(hn::Sub(value, lows), outside), d, indices + i);
  }
  for (; i < count; ++i) {
    const std::uint32_t difference = static_cast<std::uint32_t>(x[i]) - low;
    indices[i] = difference < bins ? difference : bins;
  }
}
void own_bins_u16(std::uint32_t low, std::uint32_t bins, const std::uint16_t* x, std::int64_t count,
                  std::uint32_t* indices) {
  own_bins(low, bins, x, count, indices);
}
void own_bins_i32(std::uint32_t low, std::uint32_t bins, const std::int32_t* x, std::int64_t count,
                  std::uint32_t* indices) {
  own_bins(low, bins, x, count, indices);
}

/// The few bits that are set in `mask` stand for the elements of a group of 64 that are to be
/// counted. Four a turn, each into a table of its own; what is missing in the last turn adds
/// nothing.
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

template <class T>
std::int64_t around(T value, const T* x, std::int64_t count, std::uint32_t* const (&tables)[4]) {
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

std::int64_t around_u8(std::uint8_t value, const std::uint8_t* x, std::int64_t count,
                       std::uint32_t* const (&tables)[4]) {
  return around(value, x, count, tables);
}
std::int64_t around_u32(std::uint32_t value, const std::uint32_t* x, std::int64_t count,
                        std::uint32_t* const (&tables)[4]) {
  return around(value, x, count, tables);
}

}  // namespace rung::histogram_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::histogram_cpu {
namespace {
HWY_EXPORT(even_f32);
HWY_EXPORT(even_f16);
HWY_EXPORT(even_bf16);
HWY_EXPORT(even_f64);
HWY_EXPORT(own_bins_u16);
HWY_EXPORT(own_bins_i32);
HWY_EXPORT(around_u8);
HWY_EXPORT(around_u32);

/// Two multiplications each.
template <class T>
void even_whole(const EvenFormula& formula, const T* x, std::int64_t count,
                std::uint32_t* indices) {
  const WholeBins whole = formula.whole;  // a copy: the compiler need not fear that it changes
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bin = static_cast<std::uint32_t>(whole(x[i]));
    indices[i] = bin < formula.bins ? bin : formula.bins;
  }
}
}  // namespace

template <class T>
void find_even_bins(const EvenFormula& formula, const T* x, std::int64_t count,
                    std::uint32_t* indices) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(even_f32)(formula, x, count, indices);
  } else if constexpr (std::is_same_v<T, f16>) {
    HWY_DYNAMIC_DISPATCH(even_f16)(formula, x, count, indices);
  } else if constexpr (std::is_same_v<T, bf16>) {
    HWY_DYNAMIC_DISPATCH(even_bf16)(formula, x, count, indices);
  } else if constexpr (std::is_same_v<T, double>) {
    HWY_DYNAMIC_DISPATCH(even_f64)(formula, x, count, indices);
  } else {
    if constexpr (std::is_same_v<T, std::uint16_t> || std::is_same_v<T, std::int32_t>) {
      if (ShortBins<true>::takes(formula.whole)) {
        const auto low = static_cast<std::uint32_t>(formula.whole.low);
        if constexpr (std::is_same_v<T, std::uint16_t>) {
          return HWY_DYNAMIC_DISPATCH(own_bins_u16)(low, formula.bins, x, count, indices);
        } else {
          return HWY_DYNAMIC_DISPATCH(own_bins_i32)(low, formula.bins, x, count, indices);
        }
      }
    }
    even_whole(formula, x, count, indices);
  }
}
template void find_even_bins(const EvenFormula&, const float*, std::int64_t, std::uint32_t*);
template void find_even_bins(const EvenFormula&, const double*, std::int64_t, std::uint32_t*);
template void find_even_bins(const EvenFormula&, const f16*, std::int64_t, std::uint32_t*);
template void find_even_bins(const EvenFormula&, const bf16*, std::int64_t, std::uint32_t*);
template void find_even_bins(const EvenFormula&, const std::uint8_t*, std::int64_t, std::uint32_t*);
template void find_even_bins(const EvenFormula&, const std::uint16_t*, std::int64_t,
                             std::uint32_t*);
template void find_even_bins(const EvenFormula&, const std::int32_t*, std::int64_t, std::uint32_t*);
template void find_even_bins(const EvenFormula&, const std::int64_t*, std::int64_t, std::uint32_t*);

std::int64_t count_around(std::uint8_t value, const std::uint8_t* x, std::int64_t count,
                          std::uint32_t* const (&tables)[4]) {
  return HWY_DYNAMIC_DISPATCH(around_u8)(value, x, count, tables);
}
std::int64_t count_around(std::uint32_t value, const std::uint32_t* x, std::int64_t count,
                          std::uint32_t* const (&tables)[4]) {
  return HWY_DYNAMIC_DISPATCH(around_u32)(value, x, count, tables);
}

}  // namespace rung::histogram_cpu
#endif
