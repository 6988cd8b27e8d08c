// SPDX-License-Identifier: Apache-2.0
// Python bindings of transfer.
#include "rung/ops/transfer/transfer.hpp"

#include "python/module/call.hpp"

namespace rung::python {
namespace {

PyObject* run_transfer(Call& call) {
  constexpr std::pair<std::string_view, ElementwiseFunction> names[] = {
      {"relu", ElementwiseFunction::relu}, {"sigmoid", ElementwiseFunction::sigmoid},
      {"tanh", ElementwiseFunction::tanh}, {"gelu", ElementwiseFunction::gelu},
      {"exp", ElementwiseFunction::exp},   {"silu", ElementwiseFunction::silu},
      {"sign", ElementwiseFunction::sign}};
  const auto function = call.word("function", names);
  const Array x = call.in("x");
  Array y = call.out("out");
  y.make_if_left_out(x);
  call.use_gpu();
  call.run(
      [&](Context& context, Pick pick) { transfer(context, x, y, {.function = function}, pick); });
  return y.result();
}

PyMethodDef functions[] = {bound<"transfer", run_transfer>(), {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
