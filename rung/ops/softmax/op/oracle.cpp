// SPDX-License-Identifier: Apache-2.0
// softmax: what it must cost, what it must give, and how far a rung may be off.
#include <cmath>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "rung/core/rounding.hpp"
#include "rung/harness/inputs.hpp"
#include "rung/ops/softmax/op/softmax.hpp"

namespace rung {
namespace {

/// Double is not enough to judge double.
using Real = long double;

constexpr double smallest_normal(DType arithmetic) {
  return arithmetic == DType::f64 ? 0x1p-1022 : 0x1p-126;
}
constexpr DType arithmetic_of(const Softmax::Args& args) {
  return args.x.dtype == DType::f64 ? DType::f64 : DType::f32;
}

/// What the elements of a row have in common.
struct RowSums {
  Real maximum = -std::numeric_limits<Real>::infinity();
  Real sum = 0;    // forward: of exponentials; backward: of dy y, log: of dy
  Real terms = 0;  // of the absolute values of the same
  bool is_nan = false;
};

class Reference {
 public:
  explicit Reference(const Softmax::Args& args) : args_(args) {
    // The scale reaches the kernels in the arithmetic type.
    scale_ = arithmetic_of(args) == DType::f64 ? args.scale : nearest_f32(args.scale);
  }

  /// The element at these coordinates; false in `judged` never happens: all are defined.
  void element(const Extents& at, double* value, double* magnitude) {
    const RowSums& row = sums_of(at);
    const Real x = load(args_.x, at);
    const auto [result, size] =
        args_.backward ? backward(row, x, load(args_.dy, at)) : forward(row, x);
    *value = static_cast<double>(result);
    *magnitude = static_cast<double>(size);
  }

 private:
  struct Pair {
    Real value, magnitude;
  };

  static Real load(const ConstTensorRef& tensor, const Extents& at) {
    std::int64_t offset = 0;
    for (int axis = 0; axis < at.rank; ++axis) offset += at[axis] * tensor.strides[axis];
    const auto bytes = static_cast<std::int64_t>(size_of(tensor.dtype));
    return load_as_double(tensor.dtype,
                          static_cast<const std::byte*>(tensor.data) + offset * bytes);
  }

  const RowSums& sums_of(const Extents& element) {
    Extents at = element;
    at[args_.axis] = 0;
    std::int64_t key = 0;
    for (int axis = 0; axis < at.rank; ++axis) key = key * args_.x.shape[axis] + at[axis];
    const auto [found, is_new] = sums_.try_emplace(key);
    RowSums& row = found->second;
    if (!is_new) return row;
    std::int64_t& i = at[args_.axis];
    if (!args_.backward) {
      for (i = 0; i < args_.length(); ++i) {
        const Real x = load(args_.x, at);
        row.is_nan = row.is_nan || std::isnan(x) || x == std::numeric_limits<Real>::infinity();
        row.maximum = std::fmax(row.maximum, x);
      }
      if (row.is_nan || std::isinf(row.maximum)) return row;
    }
    for (i = 0; i < args_.length(); ++i) {
      const Real x = load(args_.x, at);
      const Real term = !args_.backward ? std::exp(scale_ * (x - row.maximum))
                        : args_.log     ? load(args_.dy, at)
                                        : load(args_.dy, at) * x;
      row.sum += term;
      row.terms += std::abs(term);
    }
    return row;
  }

  [[nodiscard]] Pair forward(const RowSums& row, Real x) const {
    const Real infinity = std::numeric_limits<Real>::infinity();
    if (row.is_nan) return {std::numeric_limits<Real>::quiet_NaN(), 0};
    if (std::isinf(x)) return {args_.log ? -infinity : 0, 0};
    const Real z = scale_ * (x - row.maximum);
    if (args_.log) return {z - std::log(row.sum), std::abs(z)};
    const Real y = std::exp(z) / row.sum;
    return {y, y * std::abs(z)};
  }

  [[nodiscard]] Pair backward(const RowSums& row, Real y, Real dy) const {
    if (!args_.log) {
      return {scale_ * (dy - row.sum) * y, scale_ * std::abs(y) * (std::abs(dy) + row.terms)};
    }
    const Real e = std::exp(y);
    // A flushed exponential is off by the smallest normal number.
    const Real flushed = smallest_normal(arithmetic_of(args_)) / epsilon(arithmetic_of(args_));
    const Real error = std::isinf(y) ? 0 : e * (1 + std::abs(y)) + flushed;
    return {scale_ * (dy - e * row.sum), scale_ * (std::abs(dy) + error * row.terms)};
  }

  const Softmax::Args& args_;
  Real scale_;
  std::unordered_map<std::int64_t, RowSums> sums_;
};

}  // namespace

Cost Softmax::cost(const Args& args) {
  const double elements =
      args.empty() ? 0.0 : static_cast<double>(args.length()) * static_cast<double>(args.count());
  const double in = static_cast<double>(size_of(args.x.dtype)) * (args.backward ? 2 : 1);
  // Forward: subtract, scale, exponential, sum, divide. Backward: multiply, sum, subtract,
  // multiply.
  const double written = elements * static_cast<double>(size_of(args.y.dtype));
  return {.bytes = elements * in + written,
          .operations = elements * (args.backward ? 4 : 5),
          .written = written};
}

void Softmax::reference(const Args& args, Oracle& oracle) {
  Oracle::Output& output = oracle.outputs.at(0);
  const Extents& shape = args.y.shape;
  Reference reference(args);
  std::size_t judged = 0;
  for (const std::int64_t row : output.rows) {
    Extents at = shape;
    std::int64_t rest = row;
    for (int axis = shape.rank - 2; axis >= 0; --axis) {
      at[axis] = rest % shape[axis];
      rest /= shape[axis];
    }
    std::int64_t& column = at[shape.rank - 1];
    for (column = 0; column < output.length; ++column, ++judged) {
      reference.element(at, &output.value[judged], &output.magnitude[judged]);
    }
  }
}

Tolerance Softmax::tolerance(const Args& args, const RungInfo& rung, Values values) {
  const DType arithmetic = arithmetic_of(args);
  const double unit = epsilon(arithmetic) / 2;
  // Teaching rungs, and others' libraries, may keep one sum; those that are picked keep eight or
  // more, those of a GPU 32.
  const bool one_sum = rung.peer || rung.teaching;
  const auto length = static_cast<double>(args.length());
  const double sum = (one_sum ? length : length / 8) + 40;
  Tolerance tolerance;
  // One rounding to y's type; oneDNN keeps its exponentials in bf16 and rounds three times.
  const double roundings = rung.peer && size_of(args.y.dtype) == 2 ? 3 : 1.01;
  tolerance.relative = epsilon(args.y.dtype) / 2 * roundings;
  tolerance.absolute = smallest_normal(arithmetic);
  if (args.y.dtype == DType::f16) tolerance.absolute = 0x1p-25;  // half its smallest step
  if (args.backward) {
    // Small whole numbers: every product and sum is exact.
    const bool exact = values == Values::integers && !args.log && args.scale == 1.0;
    tolerance.magnitude = exact ? 0 : (sum + (args.log ? 8 : 0)) * unit;
  } else if (args.log) {
    tolerance.magnitude = 8 * unit;
    tolerance.absolute += sum * unit;
  } else {
    tolerance.magnitude = 8 * unit;
    tolerance.relative += sum * unit;
  }
  return tolerance;
}

}  // namespace rung
