// SPDX-License-Identifier: Apache-2.0
// Python binding of loss.
#include "rung/ops/loss/loss.hpp"

#include "python/module/call.hpp"

namespace rung::python {
namespace {

constexpr std::string_view kind_names[] = {"cross_entropy", "hinge", "squared"};
constexpr std::string_view reduction_names[] = {"mean", "sum"};

PyObject* run_loss(Call& call) {
  LossOptions options{.kind = call.word<LossKind>("kind", kind_names)};
  const Array x = call.in("x");
  const Array target = call.in("target");
  Array result = call.out("out");
  options.reduction = call.word<LossReduction>("reduction", reduction_names);
  options.axis = call.integer("axis");
  options.smoothing = call.real("smoothing");
  options.margin = call.real("margin");
  PyObject* const ignored = call.peek();
  if (ignored == Py_None) {
    call.next();
  } else {
    options.ignored_label = call.integer("ignored_label");
  }
  Array dx = call.out("dx");
  const Array losses = call.out("losses");
  const bool return_grad = call.flag();
  result.make_if_left_out(x, {}, x.dtype() == DType::f64 ? DType::f64 : DType::f32);
  if (return_grad) dx.make_if_left_out(x);
  options.dx = dx;
  options.losses = losses;
  call.run([&](Context& context, Pick pick) { loss(context, x, target, result, options, pick); });
  return return_grad ? call.pair(result, dx) : result.result();
}

PyMethodDef functions[] = {bound<"loss", run_loss>(), {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
