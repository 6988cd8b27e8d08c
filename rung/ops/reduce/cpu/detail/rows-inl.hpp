// SPDX-License-Identifier: Apache-2.0
//
// The kernel of reduce along contiguous rows.
#if defined(RUNG_OPS_REDUCE_CPU_ROWS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_REDUCE_CPU_ROWS_INL_HPP_
#undef RUNG_OPS_REDUCE_CPU_ROWS_INL_HPP_
#else
#define RUNG_OPS_REDUCE_CPU_ROWS_INL_HPP_
#endif

#include "rung/ops/reduce/cpu/detail/block-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::reduce_cpu::HWY_NAMESPACE {
namespace {

/// Calls f(x, n, apart) for the blocks of a row.
template <class S, Reading reading, class F>
HWY_INLINE void each_block(const typename S::Element* x, std::int64_t n, const F& f) {
  constexpr std::int64_t block = Shape<S>::block;
  std::int64_t i = 0;
  if constexpr (reading == Reading::streams) {
    const std::int64_t run = n / Shape<S>::step * S::lanes;  // of each chain
    for (; i < run; i += turns * S::lanes) {
      f(x + i, std::min(turns * S::lanes, run - i) * Shape<S>::chains, run);
    }
    i = run * Shape<S>::chains;
    if (i < n) f(x + i, n - i, S::lanes);  // less than a step: no chains
  } else {
    for (; i < n; i += block) f(x + i, std::min(block, n - i), S::lanes);
  }
}

template <class S, Reading reading>
HWY_INLINE void fold_row(const typename S::Element* x, std::int64_t n, bool arg,
                         Wide<typename S::Element>& value, Wide<typename S::Element>& rest) {
  using T = typename S::Element;
  using W = Wide<T>;
  if constexpr (S::extreme) {
#if HWY_TARGET <= HWY_AVX3
    constexpr std::int64_t long_row = 32768;
    if constexpr (S::floating && reading == Reading::pages) {
      if (n >= long_row && !arg) {
        value = long_extreme<S>(x, n);
        rest = 0;
        return;
      }
    }
#endif
    T best = reduce_cpu::identity<T>(S::fold);
    const T* where = x;  // the block that holds the best
    each_block<S, reading>(
        x,
        n, [&](const T* at, std::int64_t count, std::int64_t apart) __attribute__((always_inline)) {
          const T one = fold_block<S, reading>(at, count, apart);
          if (!wins(S::fold, one, best)) return;
          best = one;
          where = at;
        });
    // Of nothing, the widest type's extreme: finish() cuts it to y's.
    value = n > 0 ? static_cast<W>(best) : reduce_cpu::identity<W>(S::fold);
    rest = 0;
    if (arg) rest = n == 0 ? W{-1} : static_cast<W>(where - x + find(where, x + n - where, best));
  } else {
    value = reduce_cpu::identity<W>(S::fold);
    rest = 0;
    const auto one =
        [](const T* at, std::int64_t count, std::int64_t apart) __attribute__((always_inline)) {
      if constexpr (S::fold == Fold::squares) {
        return square_sum<S, reading>(at, count, apart);
      } else {
        return static_cast<W>(fold_block<S, reading>(at, count, apart));
      }
    };
    if (reading != Reading::streams && n <= Shape<S>::block) {
      // The most frequent case, with nothing in the way.
      if (n > 0) value = one(x, n, S::lanes);
      return;
    }
    each_block<S, reading>(
        x,
        n, [&](const T* at, std::int64_t count, std::int64_t apart) __attribute__((always_inline)) {
          if constexpr (S::fold == Fold::product) {
            value = reduce_cpu::multiply(value, one(at, count, apart));
          } else {
            add_exactly(value, rest, one(at, count, apart));
          }
        });
  }
}

/// Products of integers have no vector instruction of 64 bits everywhere: four chains of scalars.
template <class T>
std::int64_t integer_product(const T* x, std::int64_t n) {
  std::uint64_t total[4] = {1, 1, 1, 1};
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int c = 0; c < 4; ++c) {
      total[c] *= static_cast<std::uint64_t>(static_cast<std::int64_t>(x[i + c]));
    }
  }
  for (; i < n; ++i) total[0] *= static_cast<std::uint64_t>(static_cast<std::int64_t>(x[i]));
  return static_cast<std::int64_t>(total[0] * total[1] * (total[2] * total[3]));
}

template <class T, class RowFold>
HWY_INLINE void each_row(const Rows& rows, const RowFold& fold) {
  using W = Wide<T>;
  const T* x = static_cast<const T*>(rows.x);
  W* value = static_cast<W*>(rows.value);
  W* rest = static_cast<W*>(rows.rest);
  if (rows.bounds != nullptr) {
    for (std::int64_t r = 0; r < rows.rows; ++r) {
      fold(x + rows.bounds[r], rows.bounds[r + 1] - rows.bounds[r], value[r], rest[r]);
    }
  } else {
    for (std::int64_t r = 0; r < rows.rows; ++r) {
      fold(x + r * rows.stride, rows.length, value[r], rest[r]);
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
/// What the lanes of each of `count` vectors come to, in as many lanes of one: neighbors are
/// joined in pairs, so that half as many vectors hold twice as many rows each.
template <class S, int count>
HWY_INLINE typename S::V across_each(typename S::V (&v)[count]) {
  if constexpr (count == 1) {
    return v[0];
  } else {
    const typename S::D d;
    typename S::V half[count / 2];
#pragma GCC unroll 8
    for (int i = 0; i < count / 2; ++i) {
      half[i] = S::join(hn::ConcatEven(d, v[2 * i + 1], v[2 * i]),
                        hn::ConcatOdd(d, v[2 * i + 1], v[2 * i]));
    }
    return across_each<S>(half);
  }
}

/// Rows of a few vectors, as many at a time as a vector has lanes: adding up the lanes of one row
/// takes longer than reading it (41952 rows of 8 f64, max, 2-core Zen 5 vCPU: 147 us one by one).
template <class S>
HWY_INLINE void short_rows(const Rows& rows) {
  using T = typename S::Element;
  using W = Wide<T>;
  using V = typename S::V;
  const typename S::D d;
  constexpr auto group = static_cast<int>(S::lanes);
  const std::int64_t n = rows.length;
  const std::int64_t whole = n / S::lanes * S::lanes;
  W* value = static_cast<W*>(rows.value);
  W* rest = static_cast<W*>(rows.rest);
  const auto one_by_one = [&](std::int64_t r) {
    fold_row<S, Reading::near>(static_cast<const T*>(rows.x) + r * rows.stride, n, false, value[r],
                               rest[r]);
  };
  for (std::int64_t r = 0; r < rows.rows; r += group) {
    const int count = static_cast<int>(std::min<std::int64_t>(group, rows.rows - r));
    V v[group];
    [[maybe_unused]] auto ordered = hn::Eq(hn::Zero(d), hn::Zero(d));
#pragma GCC unroll 16
    for (int i = 0; i < group; ++i) {
      v[i] = S::identity();
      if (i >= count) continue;
      const T* x = static_cast<const T*>(rows.x) + (r + i) * rows.stride;
      const auto take = [&](V one) HWY_ATTR {
        v[i] = S::take(v[i], one);
        if constexpr (S::extreme && S::floating) ordered = hn::And(ordered, hn::Eq(one, one));
      };
      for (std::int64_t j = 0; j < whole; j += S::lanes) take(S::load(x + j));
      if (whole < n) take(S::load_some(x + whole, n - whole));
    }
    if constexpr (S::extreme && S::floating) {
      if (HWY_UNLIKELY(!hn::AllTrue(d, ordered))) {
        for (int i = 0; i < count; ++i) one_by_one(r + i);
        continue;
      }
    }
    HWY_ALIGN typename S::Lane total[group];
    hn::Store(across_each<S>(v), d, total);
    for (int i = 0; i < count; ++i) {
      value[r + i] = static_cast<W>(total[i]);
      rest[r + i] = 0;
      if constexpr (S::fold == Fold::squares && std::is_same_v<T, float>) {
        if (HWY_UNLIKELY(!squares_suffice(total[i]))) one_by_one(r + i);
      }
    }
  }
}

#endif

template <class S>
HWY_NOINLINE void rows_of(const Rows& rows) {
  using T = typename S::Element;
  using W = Wide<T>;
#if HWY_TARGET != HWY_SCALAR
  constexpr std::int64_t short_row = 4 * S::lanes;
  if (rows.grouped && rows.length <= short_row) return short_rows<S>(rows);
#endif
  const auto fold = [&]<Reading reading>() {
    each_row<T>(rows, [&](const T* x, std::int64_t n, W& value, W& rest) {
      fold_row<S, reading>(x, n, rows.arg, value, rest);
    });
  };
  switch (rows.reading) {
    case Reading::near:
      return fold.template operator()<Reading::near>();
    case Reading::streams:
      return fold.template operator()<Reading::streams>();
    case Reading::lines:
      return fold.template operator()<Reading::lines>();
    case Reading::pages:
      return fold.template operator()<Reading::pages>();
    case Reading::asked:
      return fold.template operator()<Reading::asked>();
  }
}

template <class T>
void rows_of_floats(Fold fold, const Rows& rows) {
  switch (fold) {
    case Fold::sum:
      return rows_of<Step<T, Fold::sum, T>>(rows);
    case Fold::squares:
      return rows_of<Step<T, Fold::squares, T>>(rows);
    case Fold::product:
      return rows_of<Step<T, Fold::product, T>>(rows);
    case Fold::least:
      return rows_of<Step<T, Fold::least, T>>(rows);
    case Fold::greatest:
      return rows_of<Step<T, Fold::greatest, T>>(rows);
  }
}

template <class T>
void rows_of_integers(Fold fold, const Rows& rows) {
  switch (fold) {
    case Fold::product:
      return each_row<T>(rows, [](const T* x, std::int64_t n, std::int64_t& value, std::int64_t&) {
        value = integer_product(x, n);
      });
    case Fold::least:
      return rows_of<Step<T, Fold::least, T>>(rows);
    case Fold::greatest:
      return rows_of<Step<T, Fold::greatest, T>>(rows);
    default:
      return rows_of<Step<T, Fold::sum, std::int64_t>>(rows);
  }
}

}  // namespace

inline void fold_rows(DType element, Fold fold, const Rows& rows) {
  switch (element) {
    case DType::f32:
      return rows_of_floats<float>(fold, rows);
    case DType::f64:
      return rows_of_floats<double>(fold, rows);
    case DType::i32:
      return rows_of_integers<std::int32_t>(fold, rows);
    default:
      return rows_of_integers<std::int64_t>(fold, rows);
  }
}

}  // namespace rung::reduce_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
