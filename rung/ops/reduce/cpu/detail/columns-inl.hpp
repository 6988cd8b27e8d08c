// SPDX-License-Identifier: Apache-2.0
//
// The kernel of reduce down contiguous columns, and the one that gathers elements for both.
#if defined(RUNG_OPS_REDUCE_CPU_COLUMNS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_REDUCE_CPU_COLUMNS_INL_HPP_
#undef RUNG_OPS_REDUCE_CPU_COLUMNS_INL_HPP_
#else
#define RUNG_OPS_REDUCE_CPU_COLUMNS_INL_HPP_
#endif

#include "rung/cpu/load-inl.hpp"
#include "rung/ops/reduce/cpu/detail/step-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::reduce_cpu::HWY_NAMESPACE {
namespace {

constexpr int streams = 8;  // rows read in parallel
constexpr std::int64_t rows_a_turn =
    max_direct_rows;  // then what lanes hold goes into the wide type

/// Takes `rows` rows into total[0 .. columns), which stay in L1. Sums of eight elements, or of
/// their squares, are made in pairs: three additions deep, and one into the total.
template <class S, int rows>
HWY_INLINE void take_rows(const typename S::Element* x, std::int64_t stride, std::int64_t columns,
                          typename S::Lane* total, bool first) {
  using V = typename S::V;
  const typename S::D d;
  const auto vector = [&](std::int64_t j, const auto& load) {
    V sum = first ? S::identity() : hn::Load(d, total + j);
    if constexpr (rows == streams && S::fold == Fold::sum) {
      V v[rows];
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) v[r] = load(x + r * stride + j);
#pragma GCC unroll 3
      for (int half = rows / 2; half > 0; half /= 2) {
#pragma GCC unroll 4
        for (int r = 0; r < half; ++r) v[r] = S::join(v[r], v[r + half]);
      }
      sum = S::join(sum, v[0]);
    } else if constexpr (rows == streams && S::fold == Fold::squares) {
      V v[rows / 2];
#pragma GCC unroll 4
      for (int r = 0; r < rows / 2; ++r) {
        const V one = load(x + r * stride + j);
        v[r] = S::take(hn::Mul(one, one), load(x + (r + rows / 2) * stride + j));
      }
      sum = hn::Add(sum, hn::Add(hn::Add(v[0], v[2]), hn::Add(v[1], v[3])));
    } else if constexpr (rows > 1 && S::extreme && S::floating) {
      // A sum is NaN if one of them is, which instructions for extremes drop; or if infinities
      // cancel, and then nothing is lost but time (f32 65x129, max: 1.2 us with a comparison each).
      V v[rows];
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) v[r] = load(x + r * stride + j);
      V all = sum;
      V best = sum;
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        all = hn::Add(all, v[r]);
        best = S::take(best, v[r]);
      }
      if (HWY_UNLIKELY(!hn::AllFalse(d, hn::IsNaN(all)))) {
        best = sum;
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) best = S::take_with_nan(best, v[r]);
      }
      sum = best;
    } else {
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) sum = S::take_with_nan(sum, load(x + r * stride + j));
    }
    hn::Store(sum, d, total + j);
  };
  std::int64_t j = 0;
  for (; j + S::lanes <= columns; j += S::lanes) {
    vector(j, [](const auto* p) { return S::load(p); });
  }
  if (j < columns) {
    vector(j, [&](const auto* p) { return S::load_some(p, columns - j); });
  }
}

/// Totals to results, with nothing to put together.
template <class S>
void store_directly(const Columns& c, const typename S::Lane* total) {
  using T = typename S::Element;
  using A = typename S::Lane;
  const typename S::D d;
  const hn::Rebind<T, typename S::D> stored;
  T* y = static_cast<T*>(c.y);
  for (std::int64_t j = 0; j < c.columns; j += S::lanes) {
    auto v = hn::Load(d, total + j);
    if (c.divisor != 0) v = hn::Div(v, hn::Set(d, static_cast<A>(c.divisor)));
    if (c.root) v = hn::Sqrt(v);
    const auto result = [&] {
      if constexpr (std::is_same_v<T, A>) {
        return v;
      } else {
#if HWY_TARGET == HWY_SCALAR
        return hn::Set(stored, static_cast<T>(hn::GetLane(v)));  // its DemoteTo makes no infinity
#else
        return hn::DemoteTo(stored, v);
#endif
      }
    }();
    if (j + S::lanes <= c.columns) {
      hn::StoreU(result, stored, y + j);
    } else {
      hn::BlendedStore(result, hn::FirstN(stored, static_cast<std::size_t>(c.columns - j)), stored,
                       y + j);
    }
  }
}

template <class S>
HWY_NOINLINE void columns_of(const Columns& c) {
  using T = typename S::Element;
  using A = typename S::Lane;
  using W = Wide<T>;
  A* total = static_cast<A*>(c.scratch);
  W* value = static_cast<W*>(c.value);
  W* rest = static_cast<W*>(c.rest);
  for (std::int64_t begin = 0; begin < c.rows; begin += rows_a_turn) {
    const std::int64_t rows = std::min(rows_a_turn, c.rows - begin);
    const T* x = static_cast<const T*>(c.x) + begin * c.stride;
    std::int64_t r = 0;
    for (; r + streams <= rows; r += streams) {
      take_rows<S, streams>(x + r * c.stride, c.stride, c.columns, total, r == 0);
    }
    const auto rest_of = [&]<int count>() {
      if (((rows - r) & count) == 0) return;
      take_rows<S, count>(x + r * c.stride, c.stride, c.columns, total, r == 0);
      r += count;
    };
    rest_of.template operator()<4>();
    rest_of.template operator()<2>();
    rest_of.template operator()<1>();
    if constexpr (std::is_floating_point_v<T>) {
      if (c.y != nullptr) return store_directly<S>(c, total);
    }
    if (c.first && begin == 0) {
      for (std::int64_t j = 0; j < c.columns; ++j) {
        value[j] = static_cast<W>(total[j]);
        rest[j] = 0;
      }
    } else if constexpr (S::fold == Fold::sum && std::is_same_v<T, float>) {
      // f64 has room for what f32 sums lose: a loop that the compiler makes vectors of.
      for (std::int64_t j = 0; j < c.columns; ++j) value[j] += static_cast<double>(total[j]);
    } else {
      for (std::int64_t j = 0; j < c.columns; ++j) {
        combine(S::fold, false, value[j], rest[j], static_cast<W>(total[j]), W{0});
      }
    }
  }
}

/// The row of each column's extreme travels beside it, in lanes of the same width.
template <class S>
HWY_NOINLINE void positions_of(const Columns& c) {
  using T = typename S::Element;
  using W = Wide<T>;
  using Index = hwy::MakeSigned<T>;
  const typename S::D d;
  const hn::ScalableTag<Index> di;
  T* best = static_cast<T*>(c.scratch);
  Index* where = static_cast<Index*>(c.scratch) + columns_at_most;
  W* value = static_cast<W*>(c.value);
  W* rest = static_cast<W*>(c.rest);
  for (std::int64_t begin = 0; begin < c.rows; begin += rows_a_turn) {
    const std::int64_t rows = std::min(rows_a_turn, c.rows - begin);
    const T* x = static_cast<const T*>(c.x) + begin * c.stride;
    for (std::int64_t r0 = 0; r0 < rows; r0 += streams) {
      const std::int64_t r1 = std::min(r0 + streams, rows);
      for (std::int64_t j = 0; j < c.columns; j += S::lanes) {
        const std::int64_t count = std::min(S::lanes, c.columns - j);
        const auto load = [&](std::int64_t r) {
          const T* p = x + r * c.stride + j;
          return count == S::lanes ? S::load(p) : S::load_some(p, count);
        };
        auto least = r0 == 0 ? load(0) : hn::Load(d, best + j);
        auto row = r0 == 0 ? hn::Zero(di) : hn::Load(di, where + j);
        for (std::int64_t r = r0 == 0 ? 1 : r0; r < r1; ++r) {
          const auto v = load(r);
          const auto better = S::wins(v, least);
          least = hn::IfThenElse(better, v, least);
          row = hn::IfThenElse(hn::RebindMask(di, better), hn::Set(di, static_cast<Index>(r)), row);
        }
        hn::Store(least, d, best + j);
        hn::Store(row, di, where + j);
      }
    }
    for (std::int64_t j = 0; j < c.columns; ++j) {
      const W position = static_cast<W>(c.row0 + begin + where[j]);
      if (c.first && begin == 0) {
        value[j] = static_cast<W>(best[j]);
        rest[j] = position;
      } else {
        combine(S::fold, true, value[j], rest[j], static_cast<W>(best[j]), position);
      }
    }
  }
}

template <class T>
void integer_products(const Columns& c) {
  auto* value = static_cast<std::int64_t*>(c.value);
  const T* x = static_cast<const T*>(c.x);
  if (c.first) std::fill_n(value, c.columns, std::int64_t{1});
  for (std::int64_t r = 0; r < c.rows; ++r) {
    for (std::int64_t j = 0; j < c.columns; ++j) {
      value[j] = reduce_cpu::multiply(value[j], static_cast<std::int64_t>(x[r * c.stride + j]));
    }
  }
}

template <class T, Fold fold>
void extremes_of(const Columns& c) {
  using S = Step<T, fold, T>;
  return c.arg ? positions_of<S>(c) : columns_of<S>(c);
}

template <class T>
void columns_of_type(Fold fold, const Columns& c) {
  switch (fold) {
    case Fold::least:
      return extremes_of<T, Fold::least>(c);
    case Fold::greatest:
      return extremes_of<T, Fold::greatest>(c);
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    if (fold == Fold::product) return integer_products<T>(c);
    columns_of<Step<T, Fold::sum, std::int64_t>>(c);
  } else {
    if (fold == Fold::product) return columns_of<Step<T, Fold::product, T>>(c);
    // Squares are made in f64: there is no going back to a column for one that overflowed.
    if (fold == Fold::squares) return columns_of<Step<T, Fold::squares, double>>(c);
    columns_of<Step<T, Fold::sum, T>>(c);
  }
}

template <class T, class To>
void gather_as(const void* from, std::int64_t stride, std::int64_t count, void* to) {
  const T* x = static_cast<const T*>(from);
  To* out = static_cast<To*>(to);
  std::int64_t i = 0;
  if constexpr (std::is_class_v<T>) {
    const hn::ScalableTag<float> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    if (stride == 1) {
      for (; i + lanes <= count; i += lanes)
        hn::StoreU(cpu::HWY_NAMESPACE::load_as(d, x + i), d, out + i);
    }
    for (; i < count; ++i) out[i] = static_cast<float>(x[i * stride]);
  } else if (stride == 1) {
    // NOLINTNEXTLINE(bugprone-signed-char-misuse): an i8 is a number with a sign
    for (; i < count; ++i) out[i] = static_cast<To>(x[i]);
  } else {
    // NOLINTNEXTLINE(bugprone-signed-char-misuse): an i8 is a number with a sign
    for (; i < count; ++i) out[i] = static_cast<To>(x[i * stride]);
  }
}

}  // namespace

inline void fold_columns(DType element, Fold fold, const Columns& c) {
  switch (element) {
    case DType::f32:
      return columns_of_type<float>(fold, c);
    case DType::f64:
      return columns_of_type<double>(fold, c);
    case DType::i32:
      return columns_of_type<std::int32_t>(fold, c);
    default:
      return columns_of_type<std::int64_t>(fold, c);
  }
}

inline void gather(DType from, const void* x, std::int64_t stride, std::int64_t count, void* to) {
  switch (from) {
    case DType::f32:
      return gather_as<float, float>(x, stride, count, to);
    case DType::f64:
      return gather_as<double, double>(x, stride, count, to);
    case DType::f16:
      return gather_as<f16, float>(x, stride, count, to);
    case DType::bf16:
      return gather_as<bf16, float>(x, stride, count, to);
    case DType::i8:
      return gather_as<std::int8_t, std::int32_t>(x, stride, count, to);
    case DType::u8:
      return gather_as<std::uint8_t, std::int32_t>(x, stride, count, to);
    case DType::u16:
      return gather_as<std::uint16_t, std::int32_t>(x, stride, count, to);
    case DType::i32:
      return gather_as<std::int32_t, std::int32_t>(x, stride, count, to);
    default:
      return gather_as<std::int64_t, std::int64_t>(x, stride, count, to);
  }
}

}  // namespace rung::reduce_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
