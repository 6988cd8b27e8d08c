// SPDX-License-Identifier: Apache-2.0
// activation_backward: cost, reference results and tolerances.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "rung/harness/inputs.hpp"
#include "rung/ops/activation_backward/op/activation_backward.hpp"

namespace rung {
namespace {

/// Type of the oracle's arithmetic: double would be too narrow to check f64.
using Real = long double;
using Args = ActivationBackward::Args;

Real element(const ConstTensorRef& tensor, const Extents& at) {
  std::int64_t offset = 0;
  for (int axis = 0; axis < at.rank; ++axis) offset += at[axis] * tensor.strides[axis];
  const auto bytes = static_cast<std::int64_t>(size_of(tensor.dtype));
  return load_as_double(tensor.dtype, static_cast<const std::byte*>(tensor.data) + offset * bytes);
}

struct Slope {
  Real value = 0;
  Real error = 0;  // in units of roundoff
};

Slope slope_at(ActivationFunction function, Real saved) {
  if (std::isnan(saved)) return {saved, 0};
  using enum ActivationFunction;
  switch (function) {
    case sign:
      return {std::abs(saved) <= 1 ? 1.0L : 0.0L, 0};
    case relu:
      return {saved > 0 ? 1.0L : 0.0L, 0};
    case sigmoid: {
      const Real value = saved * (1 - saved);
      return {value, 6 * std::abs(value)};
    }
    case tanh: {
      const Real value = (1 - saved) * (1 + saved);
      return {value, 6 * std::abs(value)};
    }
    case gelu: {
      if (std::isinf(saved)) return {saved > 0 ? 1.0L : 0.0L, 0};
      const Real phi = std::exp(-saved * saved / 2) * 0.398942280401432677939946L;
      const Real below = std::erfc(-saved * 0.707106781186547524401L) / 2;
      return {below + saved * phi, 16 * (below + std::abs(saved) * (1 + saved * saved / 8) * phi)};
    }
    case silu: {
      if (std::isinf(saved)) return {saved > 0 ? 1.0L : 0.0L, 0};
      const Real s = 1 / (1 + std::exp(-saved));
      const Real rest = 1 / (1 + std::exp(saved));
      return {s + saved * s * rest,
              16 * (s + std::abs(saved) * (1 + std::abs(saved) / 8) * s * rest)};
    }
  }
  return {};
}

Real smallest(DType type) {
  return type == DType::f16 ? 0x1p-25L : type == DType::f64 ? 0x1p-1022L : 0x1p-126L;
}

}  // namespace

Cost ActivationBackward::cost(const Args& args) {
  const auto count = static_cast<double>(args.dx.size());
  const auto size = static_cast<double>(size_of(args.dx.dtype));
  using enum ActivationFunction;
  const bool plain = args.function == sign || args.function == relu;
  const bool from_y = args.function == sigmoid || args.function == tanh;
  return {.bytes = 3 * count * size,
          .operations = count * (plain    ? 1
                                 : from_y ? 3
                                          : 8),
          .written = count * size};
}

void ActivationBackward::reference(const Args& args, Oracle& oracle) {
  Oracle::Output& output = oracle.outputs.at(0);
  const Extents& shape = args.dx.shape;
  const DType type = args.dx.dtype;
  const Real unit = epsilon(type == DType::f64 ? DType::f64 : DType::f32) / 2;
  // Error of an f' that underflows; it is multiplied by dy.
  const Real vanishing = smallest(type == DType::f64 ? DType::f64 : DType::f32);
  std::size_t i = 0;
  for (const std::int64_t row : output.rows) {
    Extents at = shape;
    std::int64_t rest = row;
    for (int axis = shape.rank - 2; axis >= 0; --axis) {
      at[axis] = rest % shape[axis];
      rest /= shape[axis];
    }
    for (std::int64_t column = 0; column < output.length; ++column, ++i) {
      if (shape.rank > 0) at[shape.rank - 1] = column;
      const Real dy = element(args.dy, at);
      const Slope slope = slope_at(args.function, element(args.saved, at));
      const bool gated =
          args.function == ActivationFunction::relu || args.function == ActivationFunction::sign;
      const Real value = gated && slope.value == 0 ? 0 : dy * slope.value;
      const Real rounding = std::abs(value) * epsilon(type) / 2 * 1.01L + smallest(type);
      const Real error = slope.error == 0 ? 0 : std::abs(dy) * (slope.error * unit + vanishing);
      output.value[i] = static_cast<double>(value);
      output.magnitude[i] = static_cast<double>(gated ? 0 : error + rounding);
    }
  }
}

Tolerance ActivationBackward::tolerance(const Args&, const RungInfo&, Values) {
  return {.magnitude = 1};
}

}  // namespace rung
