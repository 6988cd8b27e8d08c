// SPDX-License-Identifier: Apache-2.0
// Partial results of reduce's CPU rungs: identities, combination, and conversion to y.
//
// A partial result is a pair (value, rest) of a wide type W: double for floating x, int64 for
// integers. A sum is value + rest, where rest is the rounding error of value (f64 only). For an
// index search rest is the position, or -1.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "rung/cpu/piece_work.hpp"
#include "rung/ops/reduce/op/fold.hpp"

namespace rung::reduce_cpu {

using reduce_fold::Fold;
using reduce_fold::fold_of;

/// Type in which elements of T are summed and compared.
template <class T>
using Wide = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;

/// Returns the result of an empty fold. Extremes of integers are those of int64; finish() clamps
/// them to y's type.
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

/// Returns a + b, modulo 2^64 for integers (signed overflow is undefined in C++).
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

/// Adds `term` to `value` and the rounding error of that addition to `rest` [D. Knuth, TAOCP 4.2.2:
/// two-sum], unless the sum is infinite or NaN.
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

/// Returns whether `candidate` replaces `best`: a NaN replaces any number; an equal element never
/// does, which keeps the first.
template <class W>
bool wins(Fold fold, W candidate, W best) {
  if constexpr (!std::is_integral_v<W>) {
    if (std::isnan(best)) return false;
    if (std::isnan(candidate)) return true;
  }
  return fold == Fold::least ? candidate < best : candidate > best;
}

/// Combines a partial result with the partial result of later terms.
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
      // An infinity equals the identity: rest < 0 marks a pair without elements.
      if (wins(fold, later_value, value) || (arg && rest < 0)) {
        value = later_value;
        rest = later_rest;
      }
  }
}

/// Returns y's value for a pair (value, rest) over `terms` terms.
template <class Y, class W>
Y finish(Reduction operation, W value, W rest, std::int64_t terms) {
  if (operation == Reduction::argmin || operation == Reduction::argmax) {
    return static_cast<Y>(static_cast<std::int64_t>(rest));
  }
  if constexpr (std::is_integral_v<Y>) {
    if (operation == Reduction::min || operation == Reduction::max) {
      using Limits = std::numeric_limits<Y>;
      // Only the extreme of an empty fold is out of range.
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

/// Calls f with y's type, one of the result types that W converts to.
template <class W, class F>
void with_result_type(DType y, F&& f) {
  if constexpr (std::is_integral_v<W>) {
    visit<std::int64_t, std::int32_t, float, double, std::uint8_t, std::int8_t, std::uint16_t>(
        y, std::forward<F>(f));
  } else {
    visit<float, double, f16, bf16, std::int64_t, std::int32_t>(y, std::forward<F>(f));
  }
}

/// Stores `count` results at y's elements first, first + step and so on. Each result has `terms`
/// terms, or the terms between its bounds.
template <class W>
void store_results(const Reduce::Args& args, std::int64_t first, std::int64_t step,
                   std::int64_t count, const W* value, const W* rest, std::int64_t terms,
                   const std::int64_t* bounds = nullptr) {
  with_result_type<W>(args.y.dtype, [&]<class Y>() {
    Y* y = static_cast<Y*>(args.y.data) + first;
    if (args.operation == Reduction::sum && !std::is_integral_v<Y>) {
      // Sums skip the switch per result: short rows have many results.
      for (std::int64_t i = 0; i < count; ++i) {
        y[i * step] = finish<Y>(Reduction::sum, value[i], rest[i], 1);
      }
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t n = bounds != nullptr ? bounds[i + 1] - bounds[i] : terms;
      y[i * step] = finish<Y>(args.operation, value[i], rest[i], n);
    }
  });
}

inline std::string_view fold_path(const Reduce::Args& args) {
  const bool contiguous = args.terms.is_contiguous();
  if (args.is_arg()) return contiguous ? "arg" : "arg apart";
  if (args.x.dtype == DType::f64) return contiguous ? "f64" : "f64 apart";
  if (size_of(args.x.dtype) < 4) return contiguous ? "narrow" : "narrow apart";
  return contiguous ? "" : "apart";
}

/// Returns the work of a reduction along rows, for the rate model: a cost per result and per term.
/// Gathered rows, widened types and index searches have rates keys of their own.
inline Work row_facts(const Reduce::Args& args, int threads) {
  return cpu::piece_work(args.results(), Reduce::cost(args).operations, threads, fold_path(args));
}

}  // namespace rung::reduce_cpu
