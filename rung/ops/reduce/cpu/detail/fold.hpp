// SPDX-License-Identifier: Apache-2.0
// What reduce's CPU rungs share: which fold an operation is, how partial results are combined
// and what becomes of them in the end.
//
// All partial results are pairs (value, rest) of a wide type W: double for floating x, int64 for
// integers. Sums: value + rest, rest being what value lost to rounding (f64 only). Index searches:
// rest is the position, or -1.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "rung/ops/reduce/op/fold.hpp"

namespace rung::reduce_cpu {

using reduce_fold::Fold;
using reduce_fold::fold_of;

/// What sums and comparisons of T are made in.
template <class T>
using Wide = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;

/// The fold of nothing. Of integers the extremes are those of the widest; finish() cuts them to
/// y's type.
template <class W>
W identity(Fold fold) {
  using Limits = std::numeric_limits<W>;
  constexpr bool floating = !std::is_integral_v<W>;
  switch (fold) {
    case Fold::product:
      return 1;
    case Fold::least:
      return floating ? Limits::infinity() : Limits::max();
    case Fold::greatest:
      return floating ? -Limits::infinity() : Limits::lowest();
    default:
      return 0;
  }
}

/// a + b modulo 2^64 for integers, which must not overflow as signed ones.
template <class W>
W add(W a, W b) {
  if constexpr (std::is_integral_v<W>) {
    return static_cast<W>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else {
    return a + b;
  }
}
template <class W>
W multiply(W a, W b) {
  if constexpr (std::is_integral_v<W>) {
    return static_cast<W>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  } else {
    return a * b;
  }
}

/// Adds `term` and keeps in `rest` what the addition lost [D. Knuth, TAOCP 4.2.2: two-sum]. An
/// infinite or NaN sum has lost nothing.
inline void add_exactly(double& value, double& rest, double term) {
  const double sum = value + term;
  const double of_term = sum - value;
  const double lost = (value - (sum - of_term)) + (term - of_term);
  value = sum;
  if (std::isfinite(sum)) rest += lost;
}
inline void add_exactly(std::int64_t& value, std::int64_t&, std::int64_t term) {
  value = add(value, term);
}

/// Whether `candidate` wins `best`: a NaN does, unless there is one already; an equal element
/// does not, so that the first one stays.
template <class W>
bool wins(Fold fold, W candidate, W best) {
  if constexpr (!std::is_integral_v<W>) {
    if (std::isnan(best)) return false;
    if (std::isnan(candidate)) return true;
  }
  return fold == Fold::least ? candidate < best : candidate > best;
}

/// Puts the partial result of later terms behind that of earlier ones.
template <class W>
void combine(Fold fold, bool arg, W& value, W& rest, W later_value, W later_rest) {
  switch (fold) {
    case Fold::sum:
    case Fold::squares:
      add_exactly(value, rest, later_value);
      rest = add(rest, later_rest);
      break;
    case Fold::product:
      value = multiply(value, later_value);
      break;
    default:
      // The first of nothing but infinities is found too: rest tells nothing from something.
      if (wins(fold, later_value, value) || (arg && rest < 0)) {
        value = later_value;
        rest = later_rest;
      }
  }
}

/// From the pair to what y holds, for `terms` terms.
template <class Y, class W>
Y finish(Reduction operation, W value, W rest, std::int64_t terms) {
  if (operation == Reduction::argmin || operation == Reduction::argmax) {
    return static_cast<Y>(static_cast<std::int64_t>(rest));
  }
  if constexpr (std::is_integral_v<Y>) {
    if (operation == Reduction::min || operation == Reduction::max) {
      using Limits = std::numeric_limits<Y>;
      // Only the extreme of nothing is out of range.
      return static_cast<Y>(
          std::clamp(value, static_cast<W>(Limits::lowest()), static_cast<W>(Limits::max())));
    }
    return static_cast<Y>(value);  // keeps the low bits
  } else {
    auto result = static_cast<double>(add(value, rest));
    if (operation == Reduction::mean) result /= static_cast<double>(terms);
    if (operation == Reduction::norm) result = std::sqrt(result);
    if constexpr (std::is_class_v<Y>) {
      return Y(static_cast<float>(result));
    } else {
      return static_cast<Y>(result);
    }
  }
}

/// Calls f with y's type among those that x's wide type W can end in.
template <class W, class F>
void with_result_type(DType y, F&& f) {
  if constexpr (std::is_integral_v<W>) {
    visit<std::int64_t, std::int32_t, float, double, std::uint8_t, std::int8_t, std::uint16_t>(
        y, std::forward<F>(f));
  } else {
    visit<float, double, f16, bf16, std::int64_t, std::int32_t>(y, std::forward<F>(f));
  }
}

}  // namespace rung::reduce_cpu
