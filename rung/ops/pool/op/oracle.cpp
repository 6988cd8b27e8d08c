// SPDX-License-Identifier: Apache-2.0
// pool: its minimum cost, reference results, and error bounds.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include "rung/harness/inputs.hpp"
#include "rung/ops/pool/op/pool.hpp"

namespace rung {
namespace {

/// Type of the reference: double is not precise enough to check double.
using Real = long double;

constexpr DType arithmetic_of(const Pool::Args& args) {
  return args.x.dtype == DType::f64 ? DType::f64 : DType::f32;
}

Real load(const ConstTensorRef& tensor, std::int64_t offset) {
  const auto bytes = static_cast<std::int64_t>(size_of(tensor.dtype));
  return load_as_double(tensor.dtype, static_cast<const std::byte*>(tensor.data) + offset * bytes);
}

/// y, the scale of its error, and the position of the maximum.
struct Pooled {
  Real value = 0;
  Real magnitude = 0;
  std::int64_t position = 0;
};

Pooled maximum(const Pool::Args& args, std::int64_t at, std::int64_t row, std::int64_t column) {
  Pooled found{.value = -std::numeric_limits<Real>::infinity(), .position = -1};
  for (std::int64_t i = 0; i < args.rows.kernel; ++i) {
    const std::int64_t h = row + i * args.rows.dilation;
    if (h < 0 || h >= args.rows.in) continue;
    for (std::int64_t j = 0; j < args.columns.kernel; ++j) {
      const std::int64_t w = column + j * args.columns.dilation;
      if (w < 0 || w >= args.columns.in) continue;
      const Real v = load(args.x, at + h * args.x.strides[2] + w * args.x.strides[3]);
      if (v > found.value || std::isnan(v) || found.position < 0) {
        found.value = v;
        found.position = h * args.columns.in + w;
      }
    }
  }
  return found;
}

/// Returns an average, weighted average or L2 norm by its definition, tap by tap.
Pooled mean(const Pool::Args& args, std::int64_t at, std::int64_t row, std::int64_t column) {
  const PoolOptions& options = args.options;
  const bool is_l2 = options.kind == Pooling::l2;
  Real sum = 0;
  Real terms = 0;
  Real divisor = 0;
  Real divisor_terms = 0;
  for (std::int64_t i = 0; i < args.rows.kernel; ++i) {
    const std::int64_t h = row + i * args.rows.dilation;
    if (h >= args.rows.in + args.rows.padding) continue;
    for (std::int64_t j = 0; j < args.columns.kernel; ++j) {
      const std::int64_t w = column + j * args.columns.dilation;
      if (w >= args.columns.in + args.columns.padding) continue;
      const bool inside = h >= 0 && h < args.rows.in && w >= 0 && w < args.columns.in;
      if (!inside && !options.count_padding) continue;
      const Real weight = options.kind == Pooling::weighted
                              ? load(options.weights, i * options.weights.strides[0] +
                                                          j * options.weights.strides[1])
                              : Real{1};
      divisor += weight;
      divisor_terms += std::abs(weight);
      if (!inside) continue;
      const Real v = load(args.x, at + h * args.x.strides[2] + w * args.x.strides[3]);
      const Real term = is_l2 ? v * v : weight * v;
      sum += term;
      terms += std::abs(term);
    }
  }
  if (is_l2) return {.value = std::sqrt(sum), .magnitude = std::sqrt(sum)};
  const Real value = sum / divisor;
  return {.value = value,
          .magnitude = (terms + std::abs(value) * divisor_terms) / std::abs(divisor)};
}

}  // namespace

Cost Pool::cost(const Args& args) {
  const auto element = static_cast<double>(size_of(args.x.dtype));
  const auto planes = static_cast<double>(args.images()) * static_cast<double>(args.channels());
  // With strides beyond the kernel's extent, parts of x are not read.
  const auto read = [](const PoolAxis& axis) {
    return static_cast<double>(smaller(axis.in, axis.out * axis.kernel));
  };
  const double results =
      planes * static_cast<double>(args.rows.out) * static_cast<double>(args.columns.out);
  const double written =
      results *
      (element +
       (args.has_indices() ? static_cast<double>(size_of(args.options.indices.dtype)) : 0.0));
  const auto taps = static_cast<double>(args.taps());
  return {.bytes = planes * read(args.rows) * read(args.columns) * element + written,
          .operations = results * taps * (args.kind() == Pooling::max ? 1 : 2),
          .written = written};
}

void Pool::reference(const Args& args, Oracle& oracle) {
  const Extents& weights = args.options.bias.strides;
  const auto judge = [&](Oracle::Output& output, bool positions) {
    // Extents in the caller's order of axes.
    const bool last = args.options.channels_last;
    const Extents shape =
        last ? Extents{args.images(), args.rows.out, args.columns.out, args.channels()}
             : args.y.shape;
    std::size_t judged = 0;
    for (const std::int64_t row : output.rows) {
      for (std::int64_t i = 0; i < output.length; ++i, ++judged) {
        std::int64_t at[4] = {0, 0, 0, i};
        std::int64_t rest = row;
        for (int axis = 2; axis >= 0; --axis) {
          at[axis] = rest % shape[axis];
          rest /= shape[axis];
        }
        const std::int64_t channel = last ? at[3] : at[1];
        const std::int64_t oh = last ? at[1] : at[2];
        const std::int64_t ow = last ? at[2] : at[3];
        const std::int64_t plane = at[0] * args.x.strides[0] + channel * args.x.strides[1];
        const auto of = args.kind() == Pooling::max ? maximum : mean;
        Pooled pooled = of(args, plane, args.rows.start(oh), args.columns.start(ow));
        if (positions) {
          output.value[judged] = static_cast<double>(pooled.position);
          continue;
        }
        if (args.options.bias.data != nullptr) {
          const Real bias = load(args.options.bias, channel * weights[0]);
          pooled.value += bias;
          pooled.magnitude += std::abs(bias) + std::abs(pooled.value);
        }
        output.value[judged] =
            static_cast<double>(reference_activation(args.options.activation, pooled.value));
        output.magnitude[judged] = static_cast<double>(pooled.magnitude);
      }
    }
  };
  judge(oracle.outputs.at(0), false);
  if (args.has_indices()) judge(oracle.outputs.at(1), true);
}

Tolerance Pool::tolerance(const Args& args, const RungInfo& rung, Values values) {
  Tolerance tolerance;
  const bool exact = args.kind() == Pooling::max;
  if (exact && !args.has_epilogue()) return tolerance;
  const DType arithmetic = arithmetic_of(args);
  const double unit = epsilon(arithmetic) / 2;
  const auto taps = static_cast<double>(args.taps());
  tolerance.relative = epsilon(args.y.dtype) / 2 * 1.01;
  switch (args.kind()) {
    case Pooling::max:
      tolerance.magnitude = unit;  // of the bias
      break;
    case Pooling::average:
    case Pooling::weighted:
      // Sums of small integers are exact: only the quotient and the bias round.
      tolerance.magnitude = (values == Values::integers ? 3 : taps + 4) * unit;
      break;
    case Pooling::l2:
      tolerance.magnitude = (values == Values::integers ? 3 : taps / 2 + 4) * unit;
      tolerance.absolute = std::sqrt(taps) * (arithmetic == DType::f64 ? 0x1p-537 : 0x1p-74);
      break;
  }
  if (args.options.activation != Activation::none) {
    tolerance.magnitude *= 1.13;      // maximum slope, of gelu
    tolerance.magnitude += 4 * unit;  // gelu: x times erf, which errs by a few units
    tolerance.relative += 8 * unit;
    tolerance.absolute += 4 * unit;
  }
  // Results below the smallest normal number are rounded to a fixed step.
  const double smallest = args.y.dtype == DType::f16    ? 0x1p-24
                          : args.y.dtype == DType::bf16 ? 0x1p-133
                          : args.y.dtype == DType::f64  ? 0x1p-1074
                                                        : 0x1p-149;
  tolerance.absolute += 2 * smallest;
  if (rung.peer) tolerance.absolute += 0x1p-126;  // oneDNN's bf16 kernels flush subnormals
  return tolerance;
}

}  // namespace rung
