// SPDX-License-Identifier: Apache-2.0
// softmax_backward: what it must cost, what it must give, and how far a rung may be off.
#include <cmath>
#include <cstdint>
#include <unordered_map>

#include "rung/core/rounding.hpp"
#include "rung/harness/inputs.hpp"
#include "rung/ops/softmax_backward/op/softmax_backward.hpp"

namespace rung {
namespace {

/// Double is not enough to judge double.
using Real = long double;

constexpr double smallest_normal(DType arithmetic) {
  return arithmetic == DType::f64 ? 0x1p-1022 : 0x1p-126;
}
constexpr DType arithmetic_of(const SoftmaxBackward::Args& args) {
  return args.y.dtype == DType::f64 ? DType::f64 : DType::f32;
}

/// What the elements of a row have in common.
struct RowSums {
  Real sum = 0;    // of dy y; log: of dy
  Real terms = 0;  // of the absolute values of the same
};

class Reference {
 public:
  explicit Reference(const SoftmaxBackward::Args& args) : args_(args) {
    // The scale reaches the kernels in the arithmetic type.
    scale_ = arithmetic_of(args) == DType::f64 ? args.scale : nearest_f32(args.scale);
  }

  /// Computes the element at these coordinates and what its rounding errors scale with.
  void element(const Extents& at, double* value, double* magnitude) {
    const RowSums& row = sums_of(at);
    const Real y = load(args_.y, at);
    const Real dy = load(args_.dy, at);
    if (!args_.log) {
      *value = static_cast<double>(scale_ * (dy - row.sum) * y);
      *magnitude = static_cast<double>(scale_ * std::abs(y) * (std::abs(dy) + row.terms));
      return;
    }
    const Real e = std::exp(y);
    // A flushed exponential is off by the smallest normal number.
    const Real flushed = smallest_normal(arithmetic_of(args_)) / epsilon(arithmetic_of(args_));
    const Real error = std::isinf(y) ? 0 : e * (1 + std::abs(y)) + flushed;
    *value = static_cast<double>(scale_ * (dy - e * row.sum));
    *magnitude = static_cast<double>(scale_ * (std::abs(dy) + error * row.terms));
  }

 private:
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
    for (int axis = 0; axis < at.rank; ++axis) key = key * args_.y.shape[axis] + at[axis];
    const auto [found, is_new] = sums_.try_emplace(key);
    RowSums& row = found->second;
    if (!is_new) return row;
    std::int64_t& i = at[args_.axis];
    for (i = 0; i < args_.length(); ++i) {
      const Real term = args_.log ? load(args_.dy, at) : load(args_.dy, at) * load(args_.y, at);
      row.sum += term;
      row.terms += std::abs(term);
    }
    return row;
  }

  const SoftmaxBackward::Args& args_;
  Real scale_;
  std::unordered_map<std::int64_t, RowSums> sums_;
};

}  // namespace

Cost SoftmaxBackward::cost(const Args& args) {
  const double elements =
      args.empty() ? 0.0 : static_cast<double>(args.length()) * static_cast<double>(args.count());
  const double written = elements * static_cast<double>(size_of(args.dx.dtype));
  // Multiply, sum, subtract, multiply.
  return {.bytes = elements * 2 * static_cast<double>(size_of(args.y.dtype)) + written,
          .operations = elements * 4,
          .written = written};
}

void SoftmaxBackward::reference(const Args& args, Oracle& oracle) {
  Oracle::Output& output = oracle.outputs.at(0);
  const Extents& shape = args.dx.shape;
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

Tolerance SoftmaxBackward::tolerance(const Args& args, const RungInfo& rung, Values values) {
  const DType arithmetic = arithmetic_of(args);
  const double unit = epsilon(arithmetic) / 2;
  // Teaching rungs, and others' libraries, may keep one sum; those that are picked keep eight or
  // more, those of a GPU 32.
  const bool one_sum = rung.peer || rung.teaching;
  const auto length = static_cast<double>(args.length());
  const double sum = (one_sum ? length : length / 8) + 40;
  Tolerance tolerance;
  // One rounding to dx's type; libraries that keep intermediate results in bf16 round three times.
  const double roundings = rung.peer && size_of(args.dx.dtype) == 2 ? 3 : 1.01;
  tolerance.relative = epsilon(args.dx.dtype) / 2 * roundings;
  tolerance.absolute = smallest_normal(arithmetic);
  if (args.dx.dtype == DType::f16) tolerance.absolute = 0x1p-25;  // half its smallest step
  // Small whole numbers: every product and sum is exact.
  const bool exact = values == Values::integers && !args.log && args.scale == 1.0;
  tolerance.magnitude = exact ? 0 : (sum + (args.log ? 8 : 0)) * unit;
  return tolerance;
}

}  // namespace rung
