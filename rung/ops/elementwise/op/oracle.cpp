// SPDX-License-Identifier: Apache-2.0
// elementwise: cost, reference results and tolerances.
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <type_traits>

#include "rung/harness/inputs.hpp"
#include "rung/ops/elementwise/op/elementwise.hpp"

namespace rung {
namespace {

using Function = ElementwiseFunction;

/// Returns the function in Real: double, or long double for double operands.
template <class Real>
Real exact(ElementwiseFunction function, Real alpha, Real x, Real y, Real w) {
  switch (function) {
    case Function::add:
      return x + y;
    case Function::sub:
      return x - y;
    case Function::mul:
      return x * y;
    case Function::div:
      return x / y;
    case Function::axpy:
      return std::fma(alpha, x, y);
    case Function::fma:
      return std::fma(x, y, w);
    case Function::relu:
      return x < 0 ? Real{0} : x;
    case Function::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Function::tanh:
      return std::tanh(x);
    case Function::gelu:
      if (x < -40) return 0;  // the limit; -infinity * 0 would be NaN
      return x * std::erfc(-x / std::numbers::sqrt2_v<Real>) / 2;
    case Function::exp:
      return std::exp(x);
    case Function::silu:
      if (x < -Real{800}) return 0;  // the limit; -infinity * 0 would be NaN
      return x / (1 + std::exp(-x));
    case Function::sign:
      return x > 0 ? Real{1} : x < 0 ? Real{-1} : x;
  }
  return x;
}

/// Returns the function of integers, in the unsigned type of the same size, where overflow wraps.
template <class T>
T wrapped(ElementwiseFunction function, T x, T y, T w) {
  using Wide = std::uint64_t;
  const auto a = static_cast<Wide>(x);
  const auto b = static_cast<Wide>(y);
  switch (function) {
    case Function::add:
      return static_cast<T>(a + b);
    case Function::sub:
      return static_cast<T>(a - b);
    case Function::mul:
      return static_cast<T>(a * b);
    case Function::fma:
      return static_cast<T>(a * b + static_cast<Wide>(w));
    default:
      return x < 0 ? T{0} : x;
  }
}

template <class T>
double value_at(const Elementwise::Args& args, const std::int64_t (&at)[3]) {
  T in[3] = {};
  for (std::size_t i = 0; i < 3 && static_cast<int>(i) < args.arity(); ++i) {
    in[i] = static_cast<const T*>(args.in[i].data)[at[i]];
  }
  if constexpr (std::is_integral_v<T>) {
    return static_cast<double>(wrapped(args.function, in[0], in[1], in[2]));
  } else {
    using Real = std::conditional_t<std::is_same_v<T, double>, long double, double>;
    using Computed = Accumulator<T>;
    // Operations that IEEE rounds once are computed in double: long double would round f64 twice,
    // and cannot hold the product of a fused operation.
    const bool arithmetic = args.function <= Function::fma;
    const auto real = [](const T& value) { return static_cast<Computed>(value); };
    const auto alpha = static_cast<Computed>(args.alpha);
    if (arithmetic) {
      return exact<double>(args.function, alpha, real(in[0]), real(in[1]), real(in[2]));
    }
    return static_cast<double>(
        exact<Real>(args.function, alpha, real(in[0]), real(in[1]), real(in[2])));
  }
}

/// Returns the sum of the absolute values of the added terms, the scale for the error of two
/// roundings instead of a fused one.
template <class T>
double terms_at(const Elementwise::Args& args, const std::int64_t (&at)[3]) {
  const auto size = [&](std::size_t i) {
    return std::abs(static_cast<double>(
        static_cast<Accumulator<T>>(static_cast<const T*>(args.in[i].data)[at[i]])));
  };
  if (args.function == Function::axpy) return std::abs(args.alpha) * size(0) + size(1);
  if (args.function == Function::fma) return size(0) * size(1) + size(2);
  return 0;
}

}  // namespace

Cost Elementwise::cost(const Args& args) {
  // An operand repeated along an axis is read once.
  double elements = static_cast<double>(args.size());
  const double operations =
      (args.function == Function::axpy || args.function == Function::fma ? 2.0 : 1.0) * elements;
  for (int i = 1; i <= args.arity(); ++i) {
    double distinct = 1;
    for (int axis = 0; axis < args.layout.rank; ++axis) {
      if (args.layout.strides[i][axis] != 0) {
        distinct *= static_cast<double>(args.layout.shape[axis]);
      }
    }
    elements += args.size() == 0 ? 0.0 : distinct;
  }
  const auto size = static_cast<double>(size_of(args.z.dtype));
  return {.bytes = elements * size,
          .operations = operations,
          .written = static_cast<double>(args.size()) * size};
}

void Elementwise::reference(const Args& args, Oracle& oracle) {
  Oracle::Output& output = oracle.outputs.at(0);
  const int rank = args.z.rank();
  visit<float, double, f16, bf16, std::int32_t, std::int64_t, std::uint8_t>(
      args.z.dtype, [&]<class T>() {
        std::size_t to = 0;
        for (const std::int64_t row : output.rows) {
          std::int64_t start[3] = {};
          std::int64_t rest = row;
          for (int axis = rank - 2; axis >= 0; --axis) {
            const std::int64_t index = rest % args.z.shape[axis];
            rest /= args.z.shape[axis];
            for (std::size_t i = 0; i < 3; ++i) start[i] += index * args.in[i].strides[axis];
          }
          for (std::int64_t column = 0; column < output.length; ++column, ++to) {
            std::int64_t at[3];
            for (std::size_t i = 0; i < 3; ++i) {
              at[i] = start[i] + (rank > 0 ? column * args.in[i].strides[rank - 1] : 0);
            }
            output.value[to] = value_at<T>(args, at);
            output.magnitude[to] = terms_at<T>(args, at);
          }
        }
      });
}

Tolerance Elementwise::tolerance(const Args& args, const RungInfo& rung, Values) {
  const DType type = args.z.dtype;
  const bool exact = args.function == Function::relu || args.function == Function::sign;
  if (!is_floating(type) || exact) return {};
  // elementwise.hpp's bound; the extra 1 % covers the oracle's own rounding.
  const double last_place = epsilon(type == DType::f64 ? DType::f64 : DType::f32);
  double units = 0;
  if (args.function == Function::gelu) units = 8;
  if (args.function == Function::exp || args.function == Function::tanh ||
      args.function == Function::sigmoid)
    units = 4;
  if (args.function == Function::silu) units = 5;
  const bool brief =
      size_of(type) == 2 && (args.function == Function::gelu ||
                             args.function == Function::sigmoid || args.function == Function::silu);
  if (brief) units = 0x1p-16 / last_place;
  Tolerance tolerance;
  tolerance.relative = units * last_place + epsilon(type) / 2 * 1.01;
  tolerance.absolute = type == DType::f16    ? 0x1p-24
                       : type == DType::f64  ? 0x1p-1074
                       : type == DType::bf16 ? 0x1p-133
                                             : 0x1p-149;
  if (args.function == Function::sigmoid && type != DType::f16) {
    tolerance.absolute = type == DType::f64 ? 0x1p-1022 : 0x1p-126;
  }
  if (args.function == Function::silu && type != DType::f16) {
    tolerance.absolute = type == DType::f64 ? 0x1p-1012 : 0x1p-119;
  }
  if (rung.peer && units > 0) {
    // Libraries document no bounds: some guarantee only an absolute error, and flush subnormals to
    // zero.
    tolerance.relative += 64 * last_place;
    tolerance.absolute += 8 * last_place;
  } else if (rung.peer) {
    tolerance.magnitude = last_place;  // a multiplication and an addition, each rounded
    tolerance.absolute += 0x1p-126;
  }
  return tolerance;
}

}  // namespace rung
