// SPDX-License-Identifier: Apache-2.0
//
// The kernel of reduce along contiguous rows.
#if defined(RUNG_OPS_REDUCE_CPU_ROWS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_REDUCE_CPU_ROWS_INL_HPP_
#undef RUNG_OPS_REDUCE_CPU_ROWS_INL_HPP_
#else
#define RUNG_OPS_REDUCE_CPU_ROWS_INL_HPP_
#endif

#include "rung/ops/reduce/cpu_block-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::reduce_cpu::HWY_NAMESPACE {
namespace {

template <class S>
HWY_INLINE void fold_row(const typename S::Element* x, std::int64_t n, bool arg, bool far,
                         Wide<typename S::Element>& value, Wide<typename S::Element>& rest) {
  using W = Wide<typename S::Element>;
  constexpr std::int64_t block = Shape<S>::block;
  if constexpr (S::extreme) {
    using T = typename S::Element;
    T best = reduce_cpu::identity<T>(S::fold);
    std::int64_t where = 0;  // the block that holds the best
    for (std::int64_t i = 0; i < n; i += block) {
      const T one = fold_block<S>(x + i, std::min(block, n - i), far);
      if (!displaces(S::fold, one, best)) continue;
      best = one;
      where = i;
    }
    // Of nothing, the widest type's extreme: finish() cuts it to y's.
    value = n > 0 ? static_cast<W>(best) : reduce_cpu::identity<W>(S::fold);
    rest = 0;
    if (arg) {
      rest = n == 0 ? W{-1} : static_cast<W>(where + find(x + where, n - where, best));
    }
  } else {
    value = reduce_cpu::identity<W>(S::fold);
    rest = 0;
    if (n <= block) {  // the most frequent case, with nothing in the way
      value = n == 0 ? value
                     : static_cast<W>(S::fold == Fold::squares ? square_sum<S>(x, n, far)
                                                               : fold_block<S>(x, n, far));
      return;
    }
    for (std::int64_t i = 0; i < n; i += block) {
      const std::int64_t count = std::min(block, n - i);
      if constexpr (S::fold == Fold::squares) {
        add_exactly(value, rest, square_sum<S>(x + i, count, far));
      } else if constexpr (S::fold == Fold::product) {
        value = reduce_cpu::multiply(value, static_cast<W>(fold_block<S>(x + i, count, far)));
      } else {
        add_exactly(value, rest, static_cast<W>(fold_block<S>(x + i, count, far)));
      }
    }
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

template <class S>
HWY_NOINLINE void rows_of(const Rows& rows) {
  using T = typename S::Element;
  using W = Wide<T>;
  each_row<T>(rows, [&](const T* x, std::int64_t n, W& value, W& rest) {
    fold_row<S>(x, n, rows.arg, rows.far, value, rest);
  });
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
