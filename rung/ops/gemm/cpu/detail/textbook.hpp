// SPDX-License-Identifier: Apache-2.0
//
// Building blocks of the portable rungs: typed arguments, and the epilogue of one element.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "rung/core/dtype.hpp"
#include "rung/core/view.hpp"
#include "rung/ops/gemm/cpu/detail/engine.hpp"

namespace rung::gemm_cpu {

template <class T>
T apply(Activation activation, T x) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x < T{0} ? T{0} : x;  // in this order NaN propagates
    case Activation::gelu:
      if (x < -40) return 0;  // below any type's range; -infinity * 0 would be NaN
      return x * std::erfc(-x / std::numbers::sqrt2_v<T>) / 2;
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
  }
  return x;
}

/// Typed arguments of a call: matrices of In and Out, sums in Sum.
template <class In, class Out>
struct Matrices {
  using Sum = Accumulator<In>;

  View<const In, 3> a, b;
  View<Out, 3> c;
  View<const Out, 3> bias, residual;
  Sum alpha, beta;
  Activation activation;
  std::int64_t batch, m, n, k;

  explicit Matrices(const Gemm::Args& args)
      : a(args.a.view<const In, 3>()),
        b(args.b.view<const In, 3>()),
        c(args.c.view<Out, 3>()),
        bias(args.bias.data != nullptr ? args.bias.view<const Out, 3>() : View<const Out, 3>{}),
        residual(args.residual.data != nullptr ? args.residual.view<const Out, 3>()
                                               : View<const Out, 3>{}),
        alpha(static_cast<Sum>(args.alpha)),
        beta(static_cast<Sum>(args.beta)),
        activation(args.activation),
        batch(args.batch()),
        m(args.m()),
        n(args.n()),
        k(args.alpha == 0.0 ? 0 : args.k()) {}  // A and B are not read if alpha is 0

  [[nodiscard]] Sum a_at(std::int64_t x, std::int64_t i, std::int64_t p) const {
    return static_cast<Sum>(a(x, i, p));
  }
  [[nodiscard]] Sum b_at(std::int64_t x, std::int64_t p, std::int64_t j) const {
    return static_cast<Sum>(b(x, p, j));
  }
  /// Computes C = act(alpha * sum + beta * C + bias) + residual; with beta = 0, C is not read.
  void finish(std::int64_t x, std::int64_t i, std::int64_t j, Sum sum) const {
    Sum value = alpha * sum;
    if (beta != Sum{0}) value += beta * static_cast<Sum>(c(x, i, j));
    if (bias.data != nullptr) value += static_cast<Sum>(bias(x, i, j));
    value = apply(activation, value);
    if (residual.data != nullptr) value += static_cast<Sum>(residual(x, i, j));
    c(x, i, j) = static_cast<Out>(value);
  }
};

/// Calls f(Matrices<In, Out>) for the types that require_wide_types accepts.
template <class F>
void with_types(const Gemm::Args& args, F&& f) {
  visit<float, double, bf16, f16>(args.a.dtype, [&]<class In>() {
    if (args.c.dtype == args.a.dtype) {
      f(Matrices<In, In>(args));
    } else {
      f(Matrices<In, float>(args));
    }
  });
}

}  // namespace rung::gemm_cpu
