// SPDX-License-Identifier: Apache-2.0
// What is compiled once for each instruction set: values to bins, and counting around one value
// that makes up most of the data.
#pragma once

#include <cstdint>

#include "rung/ops/histogram/op/bins.hpp"

namespace rung::histogram_cpu {

/// The formula for even bins in every type that x may have: one of them is in use.
struct EvenFormula {
  EvenBins<float> f32{};
  EvenBins<double> f64{};
  WholeBins whole{};
  std::uint32_t bins = 0;

  static EvenFormula make(const Histogram::Args& args) {
    EvenFormula formula;
    formula.bins = static_cast<std::uint32_t>(args.bins());
    switch (key_dtype(args.x.dtype)) {
      case DType::f32:
        formula.f32 = EvenBins<float>::make(args);
        break;
      case DType::f64:
        formula.f64 = EvenBins<double>::make(args);
        break;
      default:
        formula.whole = WholeBins::make(args);
    }
    return formula;
  }
};

/// indices[i] = the bin of x[i], or `bins` for a value outside: a place of its own in each table
/// spares a branch.
template <class T>
void find_even_bins(const EvenFormula& formula, const T* x, std::int64_t count,
                    std::uint32_t* indices);

/// Counts the elements that are not `value` into four tables that take turns (or are the same one);
/// gives the number of those that are.
std::int64_t count_around(std::uint8_t value, const std::uint8_t* x, std::int64_t count,
                          std::uint32_t* const (&tables)[4]);
std::int64_t count_around(std::uint32_t value, const std::uint32_t* x, std::int64_t count,
                          std::uint32_t* const (&tables)[4]);

}  // namespace rung::histogram_cpu
