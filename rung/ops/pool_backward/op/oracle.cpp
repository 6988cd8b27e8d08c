// SPDX-License-Identifier: Apache-2.0
// pool_backward: its minimum cost, reference results, and error bounds.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rung/harness/inputs.hpp"
#include "rung/ops/pool_backward/op/pool_backward.hpp"

namespace rung {
namespace {

/// Type of the reference: double is not precise enough to check double.
using Real = long double;
using Args = PoolBackward::Args;

Real load(const ConstTensorRef& tensor, std::int64_t a, std::int64_t b, std::int64_t c = 0,
          std::int64_t d = 0) {
  const std::int64_t at[4] = {a, b, c, d};
  std::int64_t offset = 0;
  for (int axis = 0; axis < tensor.rank(); ++axis) offset += at[axis] * tensor.strides[axis];
  const auto bytes = static_cast<std::int64_t>(size_of(tensor.dtype));
  return load_as_double(tensor.dtype, static_cast<const std::byte*>(tensor.data) + offset * bytes);
}

struct Divisor {
  Real sum = 0;
  Real terms = 0;  // sum of the terms' absolute values
};

/// Returns the divisor of window (oh, ow), by its definition.
Divisor divisor_of(const Args& args, std::int64_t oh, std::int64_t ow) {
  Divisor divisor;
  const auto counts = [&](const PoolAxis& axis, std::int64_t place) {
    const std::int64_t around = args.options.count_padding ? axis.padding : 0;
    return place >= -around && place < axis.in + around;
  };
  for (std::int64_t i = 0; i < args.rows.kernel; ++i) {
    if (!counts(args.rows, args.rows.start(oh) + i * args.rows.dilation)) continue;
    for (std::int64_t j = 0; j < args.columns.kernel; ++j) {
      if (!counts(args.columns, args.columns.start(ow) + j * args.columns.dilation)) continue;
      const Real weight =
          args.kind() == Pooling::weighted ? load(args.options.weights, i, j) : Real{1};
      divisor.sum += weight;
      divisor.terms += std::abs(weight);
    }
  }
  return divisor;
}

struct Gradient {
  Real value = 0;
  Real magnitude = 0;
};

Gradient gradient_at(const Args& args, std::int64_t n, std::int64_t c, std::int64_t h,
                     std::int64_t w) {
  Gradient gradient;
  for (std::int64_t i = 0; i < args.rows.kernel; ++i) {
    const std::int64_t row = h + args.rows.padding - i * args.rows.dilation;
    if (row < 0 || row % args.rows.stride != 0 || row / args.rows.stride >= args.rows.out) continue;
    const std::int64_t oh = row / args.rows.stride;
    for (std::int64_t j = 0; j < args.columns.kernel; ++j) {
      const std::int64_t column = w + args.columns.padding - j * args.columns.dilation;
      const std::int64_t ow = column / args.columns.stride;
      if (column < 0 || column % args.columns.stride != 0 || ow >= args.columns.out) continue;
      const Real dy = load(args.dy, n, c, oh, ow);
      Real term = 0;
      Real scale = 1;
      switch (args.kind()) {
        case Pooling::max:
          if (load(args.options.indices, n, c, oh, ow) == h * args.columns.in + w) term = dy;
          break;
        case Pooling::l2: {
          const Real y = load(args.options.y, n, c, oh, ow);
          if (y == 0) break;
          const Real quotient = load(args.options.x, n, c, h, w) / y;
          term = dy * quotient;
          // A quotient below the smallest normal number has fewer significant bits.
          const Real smallest = args.dx.dtype == DType::f64 ? 0x1p-1022L : 0x1p-126L;
          if (std::abs(quotient) < smallest) gradient.magnitude += std::abs(dy) * smallest;
          break;
        }
        case Pooling::average:
        case Pooling::weighted: {
          const Divisor divisor = divisor_of(args, oh, ow);
          term = dy / divisor.sum;
          if (args.kind() == Pooling::weighted) term *= load(args.options.weights, i, j);
          scale = divisor.terms / std::abs(divisor.sum);
          break;
        }
      }
      gradient.value += term;
      gradient.magnitude += std::abs(term) * scale;
    }
  }
  return gradient;
}

/// Returns the maximum number of windows over a position.
double windows(const PoolAxis& axis) {
  const std::int64_t span = (axis.kernel - 1) * axis.dilation + 1;
  return static_cast<double>(smaller(axis.out, smaller(axis.kernel, ceil_div(span, axis.stride))));
}

}  // namespace

Cost PoolBackward::cost(const Args& args) {
  const auto element = static_cast<double>(size_of(args.dx.dtype));
  const auto of_image = static_cast<double>(args.dx.size());
  const auto of_pooled = static_cast<double>(args.dy.size());
  double read = of_pooled * element;
  if (args.kind() == Pooling::max) {
    read += of_pooled * static_cast<double>(size_of(args.options.indices.dtype));
  }
  if (args.kind() == Pooling::l2) read += (of_image + of_pooled) * element;
  return {.bytes = read + of_image * element,
          .operations = 2 * of_image * windows(args.rows) * windows(args.columns),
          .written = of_image * element};
}

void PoolBackward::reference(const Args& args, Oracle& oracle) {
  Oracle::Output& output = oracle.outputs.at(0);
  // Extents of dx in the caller's order of axes.
  const bool last = args.options.channels_last;
  const Extents shape =
      last ? Extents{args.images(), args.rows.in, args.columns.in, args.channels()} : args.dx.shape;
  std::size_t judged = 0;
  for (const std::int64_t row : output.rows) {
    for (std::int64_t i = 0; i < output.length; ++i, ++judged) {
      std::int64_t at[4] = {0, 0, 0, i};
      std::int64_t rest = row;
      for (int axis = 2; axis >= 0; --axis) {
        at[axis] = rest % shape[axis];
        rest /= shape[axis];
      }
      const Gradient found = last ? gradient_at(args, at[0], at[3], at[1], at[2])
                                  : gradient_at(args, at[0], at[1], at[2], at[3]);
      output.value[judged] = static_cast<double>(found.value);
      output.magnitude[judged] = static_cast<double>(found.magnitude);
    }
  }
}

Tolerance PoolBackward::tolerance(const Args& args, const RungInfo&, Values values) {
  Tolerance tolerance;
  const bool wide = args.dx.dtype == DType::f64;
  const double unit = epsilon(wide ? DType::f64 : DType::f32) / 2;
  const double n = windows(args.rows) * windows(args.columns);
  const auto taps = static_cast<double>(args.taps());
  const bool max = args.kind() == Pooling::max;
  const bool exact = max && (values == Values::integers || n <= 1);
  tolerance.relative = epsilon(args.dx.dtype) / 2 * 1.01;
  tolerance.magnitude = exact ? 0
                              : (n + (max                                ? 0
                                      : args.kind() == Pooling::weighted ? taps + 4
                                                                         : 4)) *
                                    unit;
  // Absolute tolerance for results, and terms, below the smallest normal number.
  const double smallest = args.dx.dtype == DType::f16    ? 0x1p-24
                          : args.dx.dtype == DType::bf16 ? 0x1p-133
                          : wide                         ? 0x1p-1074
                                                         : 0x1p-149;
  const double flushed = exact ? 0 : n * (wide ? 0x1p-1022 : 0x1p-126);
  tolerance.absolute = 2 * smallest + flushed;
  return tolerance;
}

}  // namespace rung
