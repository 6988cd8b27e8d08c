// SPDX-License-Identifier: Apache-2.0
// C interface of histogram.
#include "rung/c/options.hpp"
#include "rung/ops/histogram/histogram.h"
#include "rung/ops/histogram/histogram.hpp"

namespace {

using namespace rung::c_api;
using C = rung_histogram_options;
using Cpp = rung::HistogramOptions;

constexpr auto table = options_table<C, Cpp>(
    "rung_histogram_options", field("low", &C::low, &Cpp::low), field("high", &C::high, &Cpp::high),
    field("edges", &C::edges, &Cpp::edges), field("accumulate", &C::accumulate, &Cpp::accumulate));

}  // namespace

rung_status rung_histogram_options_init(rung_histogram_options* options, size_t size) {
  return table.init(options, size);
}

rung_status rung_histogram(rung_context* context, const rung_tensor* x, const rung_tensor* counts,
                           const rung_histogram_options* options) {
  return table.call(rung::histogram, context, options, Argument{x, "x"},
                    Argument{counts, "counts"});
}
