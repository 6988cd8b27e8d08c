// SPDX-License-Identifier: Apache-2.0
// Python bindings of stencil.
#include "rung/ops/stencil/stencil.hpp"

#include "python/module/call.hpp"

namespace rung::python {
namespace {

constexpr std::string_view edge_names[] = {"zero", "clamp", "mirror", "wrap"};

StencilOptions options_of(Call& call) {
  return {.window = call.integers("window"),
          .anchor = call.integers("anchor"),
          .edge = call.word<StencilEdge>("edge", edge_names),
          .convolution = call.flag(),
          .scale = call.real("scale"),
          .iterations = call.integer("iterations")};
}

PyObject* run_stencil(Call& call) {
  const Array x = call.in("x");
  const Array mask = call.optional_in("mask");
  Array y = call.out("out");
  const StencilOptions options = options_of(call);
  y.make_if_left_out(x);
  call.run([&](Context& context, Pick pick) { stencil(context, x, mask, y, options, pick); });
  return y.result();
}

PyObject* run_separable(Call& call) {
  const Array x = call.in("x");
  const Array across = call.in("across");
  const Array down = call.optional_in("down");
  const Array through = call.optional_in("through");
  Array y = call.out("out");
  const StencilOptions options = options_of(call);
  y.make_if_left_out(x);
  call.run([&](Context& context, Pick pick) {
    stencil_separable(context, x, across, down, through, y, options, pick);
  });
  return y.result();
}

PyMethodDef functions[] = {
    bound<"stencil", run_stencil>(), bound<"stencil_separable", run_separable>(), {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
