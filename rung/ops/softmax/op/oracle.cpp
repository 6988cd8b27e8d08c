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
  Real sum = 0;  // of exponentials
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
    const auto [result, size] = of(row, x);
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
    for (i = 0; i < args_.length(); ++i) {
      const Real x = load(args_.x, at);
      row.is_nan = row.is_nan || std::isnan(x) || x == std::numeric_limits<Real>::infinity();
      row.maximum = std::fmax(row.maximum, x);
    }
    if (row.is_nan || std::isinf(row.maximum)) return row;
    for (i = 0; i < args_.length(); ++i) {
      row.sum += std::exp(scale_ * (load(args_.x, at) - row.maximum));
    }
    return row;
  }

  [[nodiscard]] Pair of(const RowSums& row, Real x) const {
    const Real infinity = std::numeric_limits<Real>::infinity();
    if (row.is_nan) return {std::numeric_limits<Real>::quiet_NaN(), 0};
    if (std::isinf(x)) return {args_.log ? -infinity : 0, 0};
    const Real z = scale_ * (x - row.maximum);
    if (args_.log) return {z - std::log(row.sum), std::abs(z)};
    const Real y = std::exp(z) / row.sum;
    return {y, y * std::abs(z)};
  }

  const Softmax::Args& args_;
  Real scale_;
  std::unordered_map<std::int64_t, RowSums> sums_;
};

}  // namespace

Cost Softmax::cost(const Args& args) {
  const double elements =
      args.empty() ? 0.0 : static_cast<double>(args.length()) * static_cast<double>(args.count());
  const double in = static_cast<double>(size_of(args.x.dtype));
  // Subtract, scale, exponential, sum, divide.
  const double written = elements * static_cast<double>(size_of(args.y.dtype));
  return {.bytes = elements * in + written, .operations = elements * 5, .written = written};
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

Tolerance Softmax::tolerance(const Args& args, const RungInfo& rung, Values) {
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
