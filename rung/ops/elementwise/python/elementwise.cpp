// SPDX-License-Identifier: Apache-2.0
// Python bindings of elementwise.
#include "rung/ops/elementwise/elementwise.hpp"

#include "python/module/call.hpp"

namespace rung::python {
namespace {

constexpr std::string_view function_names[] = {"add", "sub",  "mul",     "div",  "axpy",
                                               "fma", "relu", "sigmoid", "tanh", "gelu",
                                               "exp", "silu", "sign"};

/// Returns the shape to which the operands' shapes broadcast, as in NumPy. The operator rejects
/// extents that do not match, by the operand's name.
Extents broadcast(const Extents& a, const Extents& b) {
  const Extents& more = a.rank >= b.rank ? a : b;
  const Extents& fewer = a.rank >= b.rank ? b : a;
  Extents shape = more;
  for (int i = 0; i < fewer.rank; ++i) {
    std::int64_t& extent = shape[shape.rank - 1 - i];
    if (extent == 1) extent = fewer[fewer.rank - 1 - i];
  }
  return shape;
}

PyObject* run_unary(Call& call) {
  const auto function = call.word<ElementwiseFunction>("function", function_names);
  const Array x = call.in("x");
  Array z = call.out("out");
  z.make_if_left_out(x);
  call.run([&](Context& context, Pick pick) {
    elementwise(context, {.x = x}, z, {.function = function}, pick);
  });
  return z.result();
}

PyObject* run_binary(Call& call) {
  const auto function = call.word<ElementwiseFunction>("function", function_names);
  const Array x = call.in("x");
  const Array y = call.in_or_number("y", x);
  Array z = call.out("out");
  const double alpha = call.real("alpha");
  z.make_if_left_out(x, broadcast(x.shape(), y.shape()), x.dtype());
  call.run([&](Context& context, Pick pick) {
    elementwise(context, {.x = x, .y = y}, z, {.function = function, .alpha = alpha}, pick);
  });
  return z.result();
}

PyObject* run_fma(Call& call) {
  const Array x = call.in("x");
  const Array y = call.in_or_number("y", x);
  const Array w = call.in_or_number("w", x);
  Array z = call.out("out");
  z.make_if_left_out(x, broadcast(broadcast(x.shape(), y.shape()), w.shape()), x.dtype());
  call.run([&](Context& context, Pick pick) {
    elementwise(context, {.x = x, .y = y, .w = w}, z, {.function = ElementwiseFunction::fma}, pick);
  });
  return z.result();
}

PyMethodDef functions[] = {bound<"elementwise_unary", run_unary, "elementwise">(),
                           bound<"elementwise_binary", run_binary, "elementwise">(),
                           bound<"fma", run_fma, "elementwise">(),
                           {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
