// SPDX-License-Identifier: Apache-2.0
// softmax: cost, reference results and tolerances.
#include <cmath>
#include <cstdint>
#include <limits>

#include "rung/ops/softmax/op/softmax.hpp"
#include "rung/ops/softmax/shared/oracle.hpp"

namespace rung {
namespace {

using namespace softmax_oracle;

/// Maximum and sum of a row.
struct RowSums {
  Real maximum = -std::numeric_limits<Real>::infinity();
  Real sum = 0;  // of exponentials relative to the maximum
  bool is_nan = false;
};

RowSums sums_of_row(const Softmax::Args& args, Real scale, Extents at) {
  RowSums row;
  std::int64_t& i = at[args.axis];
  for (i = 0; i < args.length(); ++i) {
    const Real x = load(args.x, at);
    row.is_nan = row.is_nan || std::isnan(x) || x == std::numeric_limits<Real>::infinity();
    row.maximum = std::fmax(row.maximum, x);
  }
  if (row.is_nan || std::isinf(row.maximum)) return row;
  for (i = 0; i < args.length(); ++i) row.sum += std::exp(scale * (load(args.x, at) - row.maximum));
  return row;
}

/// Reference value and the magnitude that its error bound scales with.
struct Judged {
  Real value, magnitude;
};

Judged element_of(const RowSums& row, Real x, Real scale, bool log) {
  const Real infinity = std::numeric_limits<Real>::infinity();
  if (row.is_nan) return {std::numeric_limits<Real>::quiet_NaN(), 0};
  if (std::isinf(x)) return {log ? -infinity : 0, 0};
  const Real z = scale * (x - row.maximum);
  if (log) return {z - std::log(row.sum), std::abs(z)};
  const Real y = std::exp(z) / row.sum;
  return {y, y * std::abs(z)};
}

}  // namespace

Cost Softmax::cost(const Args& args) {
  const double elements =
      args.empty() ? 0.0 : static_cast<double>(args.length()) * static_cast<double>(args.count());
  const double in = static_cast<double>(size_of(args.x.dtype));
  // Per element: subtract, scale, exponential, sum, divide.
  const double written = elements * static_cast<double>(size_of(args.y.dtype));
  return {.bytes = elements * in + written, .operations = elements * 5, .written = written};
}

void Softmax::reference(const Args& args, Oracle& oracle) {
  const Real scale = scale_in(arithmetic_of(args.x.dtype), args.scale);
  RowCache<RowSums> rows(args.x.shape, args.axis);
  for_judged(oracle.outputs.at(0), args.y.shape,
             [&](const Extents& at, double& value, double& magnitude) {
               const RowSums& row = rows.of(at, [&](RowSums& sums, const Extents& first) {
                 sums = sums_of_row(args, scale, first);
               });
               const Judged judged = element_of(row, load(args.x, at), scale, args.log);
               value = static_cast<double>(judged.value);
               magnitude = static_cast<double>(judged.magnitude);
             });
}

Tolerance Softmax::tolerance(const Args& args, const RungInfo& rung, Values) {
  const DType arithmetic = arithmetic_of(args.x.dtype);
  const double unit = epsilon(arithmetic) / 2;
  // Teaching rungs and peers may use one accumulator; pickable rungs use eight or more, on GPUs 32.
  const bool one_sum = rung.peer || rung.teaching;
  const auto length = static_cast<double>(args.length());
  const double sum = (one_sum ? length : length / 8) + 40;
  Tolerance tolerance;
  // One rounding to y's type; oneDNN keeps exponentials in bf16 and rounds three times.
  const double roundings = rung.peer && size_of(args.y.dtype) == 2 ? 3 : 1.01;
  tolerance.relative = epsilon(args.y.dtype) / 2 * roundings;
  tolerance.absolute = smallest_normal(arithmetic);
  if (args.y.dtype == DType::f16) tolerance.absolute = 0x1p-25;  // half a subnormal step
  if (args.log) {
    tolerance.magnitude = 8 * unit;
    tolerance.absolute += sum * unit;
  } else {
    tolerance.magnitude = 8 * unit;
    tolerance.relative += sum * unit;
  }
  return tolerance;
}

}  // namespace rung
