// SPDX-License-Identifier: Apache-2.0
// elementwise / naive
//
// Idea     the definition: one element after another, each found through its strides.
// Changes  nothing yet: this is where the ladder stands.
// Cost     every operand once and the result once, as must be; but each element costs a division an
//          axis to find, a choice of the function, and a scalar computation.
// Limits   every valid call; some 0.2 to 1 GB/s where memory delivers 40.
// Source   any textbook.
#include <cmath>
#include <type_traits>

#include "rung/ops/elementwise/cpu/detail/gelu.hpp"

namespace rung {
namespace {

using enum ElementwiseFunction;

template <class Real>
Real evaluate(ElementwiseFunction function, Real alpha, Real x, Real y, Real w) {
  switch (function) {
    case add:
      return x + y;
    case sub:
      return x - y;
    case mul:
      return x * y;
    case div:
      return x / y;
    case axpy:
      return std::fma(alpha, x, y);
    case fma:
      return std::fma(x, y, w);
    case relu:
      return x < 0 ? Real{0} : x;
    case sigmoid: {
      const Real e = std::exp(-std::abs(x));  // cannot overflow
      return (x < 0 ? e : Real{1}) / (1 + e);
    }
    case tanh:
      return std::tanh(x);
    case gelu:
      return static_cast<Real>(elementwise_cpu::gelu_f64(static_cast<double>(x)));
    case exp:
      return std::exp(x);
  }
  return x;
}

/// Overflow is defined, and wraps, in unsigned types; u8 would be promoted to a signed int.
template <class T>
T evaluate_integer(ElementwiseFunction function, T x, T y, T w) {
  using Wide = std::uint64_t;
  const auto a = static_cast<Wide>(x);
  const auto b = static_cast<Wide>(y);
  switch (function) {
    case sub:
      return static_cast<T>(a - b);
    case mul:
      return static_cast<T>(a * b);
    case fma:
      return static_cast<T>(a * b + static_cast<Wide>(w));
    case relu:
      return x < 0 ? T{0} : x;
    default:
      return static_cast<T>(a + b);
  }
}

template <class T>
void naive(const Elementwise::Args& args) {
  const auto value = [&](int operand, std::int64_t at) {
    const auto index = static_cast<std::size_t>(operand);
    return operand < args.arity() ? static_cast<const T*>(args.in[index].data)[at] : T{};
  };
  for (std::int64_t i = 0; i < args.size(); ++i) {
    std::int64_t at[4];
    args.layout.offsets(i, at);
    T& z = static_cast<T*>(args.z.data)[at[0]];
    const T x = value(0, at[1]);
    const T y = value(1, at[2]);
    const T w = value(2, at[3]);
    if constexpr (std::is_integral_v<T>) {
      z = evaluate_integer(args.function, x, y, w);
    } else {
      using Real = Accumulator<T>;
      z = static_cast<T>(evaluate(args.function, static_cast<Real>(args.alpha),
                                  static_cast<Real>(x), static_cast<Real>(y),
                                  static_cast<Real>(w)));
    }
  }
}

double estimate(const Elementwise::Args& args, const Context&) {
  return 5e-9 * static_cast<double>(args.size());
}

void run(const Elementwise::Args& args, Context&) {
  visit<float, double, f16, bf16, std::int32_t, std::int64_t, std::uint8_t>(
      args.z.dtype, [&]<class T>() { naive<T>(args); });
}

const Rung<Elementwise> self{{.name = "naive", .step = 10, .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
