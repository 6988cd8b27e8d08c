// SPDX-License-Identifier: Apache-2.0
// elementwise / naive
//
// Idea     The definition: z[i] = f(x[i], y[i]) in one loop.
// Changes  Baseline.
// Cost     Every operand loaded once, the result stored once. The compiler may use x86-64's
//          baseline vectors of 4 floats for add, mul and relu; exp and gelu call a function of the
//          C library per element.
// Limits   f32, tensors contiguous in the same order; add, mul, axpy, relu, exp and gelu.
// Source   any textbook.
#include <cmath>

#include "rung/ops/elementwise/cpu/detail/gelu.hpp"

namespace rung {
namespace {

void run(const Elementwise::Args& args, Context&) {
  using enum ElementwiseFunction;
  const std::int64_t n = args.size();
  const auto* x = static_cast<const float*>(args.in[0].data);
  const auto* y = static_cast<const float*>(args.in[1].data);
  auto* z = static_cast<float*>(args.z.data);
  switch (args.function) {
    case add:
      for (std::int64_t i = 0; i < n; ++i) z[i] = x[i] + y[i];
      break;
    case mul:
      for (std::int64_t i = 0; i < n; ++i) z[i] = x[i] * y[i];
      break;
    case axpy: {
      const auto alpha = static_cast<float>(args.alpha);
      for (std::int64_t i = 0; i < n; ++i) z[i] = std::fma(alpha, x[i], y[i]);
      break;
    }
    case relu:
      for (std::int64_t i = 0; i < n; ++i) z[i] = x[i] < 0 ? 0.0F : x[i];
      break;
    case exp:
      for (std::int64_t i = 0; i < n; ++i) z[i] = std::exp(x[i]);
      break;
    default:
      for (std::int64_t i = 0; i < n; ++i) {
        z[i] = static_cast<float>(elementwise_cpu::gelu_f64(static_cast<double>(x[i])));
      }
  }
}

Support supports(const Elementwise::Args& args, const Context&) {
  using enum ElementwiseFunction;
  switch (args.function) {
    case add:
    case mul:
    case axpy:
    case relu:
    case exp:
    case gelu:
      break;
    default:
      return unsupported("add, mul, axpy, relu, exp and gelu");
  }
  if (args.z.dtype != DType::f32) return unsupported("f32 only");
  if (!args.flat()) {
    return unsupported("takes contiguous tensors of one order, without broadcasting");
  }
  return supported;
}

const Rung<Elementwise> self{
    {.name = "naive", .step = 10, .teaching = true, .supports = supports, .run = run}};

}  // namespace
}  // namespace rung
