// SPDX-License-Identifier: Apache-2.0
// softmax_backward: cost, reference results and tolerances.
#include <cmath>
#include <cstdint>

#include "rung/ops/softmax/shared/oracle.hpp"
#include "rung/ops/softmax_backward/op/softmax_backward.hpp"

namespace rung {
namespace {

using namespace softmax_oracle;

/// Sums of a row.
struct RowSums {
  Real sum = 0;    // of dy y; log: of dy
  Real terms = 0;  // sum of the absolute values
};

RowSums sums_of_row(const SoftmaxBackward::Args& args, Extents at) {
  RowSums row;
  std::int64_t& i = at[args.axis];
  for (i = 0; i < args.length(); ++i) {
    const Real term = args.log ? load(args.dy, at) : load(args.dy, at) * load(args.y, at);
    row.sum += term;
    row.terms += std::abs(term);
  }
  return row;
}

}  // namespace

Cost SoftmaxBackward::cost(const Args& args) {
  const double elements =
      args.empty() ? 0.0 : static_cast<double>(args.length()) * static_cast<double>(args.count());
  const double written = elements * static_cast<double>(size_of(args.dx.dtype));
  // Per element: multiply, add, subtract, multiply.
  return {.bytes = elements * 2 * static_cast<double>(size_of(args.y.dtype)) + written,
          .operations = elements * 4,
          .written = written};
}

void SoftmaxBackward::reference(const Args& args, Oracle& oracle) {
  const DType arithmetic = arithmetic_of(args.y.dtype);
  const Real scale = scale_in(arithmetic, args.scale);
  // A flushed exponential has an error of the smallest normal number.
  const Real flushed = smallest_normal(arithmetic) / epsilon(arithmetic);
  RowCache<RowSums> rows(args.y.shape, args.axis);
  for_judged(oracle.outputs.at(0), args.dx.shape,
             [&](const Extents& at, double& value, double& magnitude) {
               const RowSums& row = rows.of(at, [&](RowSums& sums, const Extents& first) {
                 sums = sums_of_row(args, first);
               });
               const Real y = load(args.y, at);
               const Real dy = load(args.dy, at);
               if (!args.log) {
                 value = static_cast<double>(scale * (dy - row.sum) * y);
                 magnitude = static_cast<double>(scale * std::abs(y) * (std::abs(dy) + row.terms));
                 return;
               }
               const Real e = std::exp(y);
               const Real error = std::isinf(y) ? 0 : e * (1 + std::abs(y)) + flushed;
               value = static_cast<double>(scale * (dy - e * row.sum));
               magnitude = static_cast<double>(scale * (std::abs(dy) + error * row.terms));
             });
}

Tolerance SoftmaxBackward::tolerance(const Args& args, const RungInfo& rung, Values values) {
  const DType arithmetic = arithmetic_of(args.y.dtype);
  const double unit = epsilon(arithmetic) / 2;
  // Teaching rungs and peers may use one accumulator; pickable rungs use eight or more, on GPUs 32.
  const bool one_sum = rung.peer || rung.teaching;
  const auto length = static_cast<double>(args.length());
  const double sum = (one_sum ? length : length / 8) + 40;
  Tolerance tolerance;
  // One rounding to dx's type; libraries that keep intermediate results in bf16 round three times.
  const double roundings = rung.peer && size_of(args.dx.dtype) == 2 ? 3 : 1.01;
  tolerance.relative = epsilon(args.dx.dtype) / 2 * roundings;
  tolerance.absolute = smallest_normal(arithmetic);
  if (args.dx.dtype == DType::f16) tolerance.absolute = 0x1p-25;  // half a subnormal step
  // Small integers: every product and sum is exact.
  const bool exact = values == Values::integers && !args.log && args.scale == 1.0;
  tolerance.magnitude = exact ? 0 : (sum + (args.log ? 8 : 0)) * unit;
  return tolerance;
}

}  // namespace rung
