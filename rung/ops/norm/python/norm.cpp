// SPDX-License-Identifier: Apache-2.0
// Python binding of norm.
#include "rung/ops/norm/norm.hpp"

#include "python/module/call.hpp"

namespace rung::python {
namespace {

/// Returns the shape of mean and rstd: x's without the normalized axes. Invalid axes are left to
/// the operator, which rejects them.
Extents other_axes(const Extents& x, int axis, int axes) {
  const int first = axis < 0 ? axis + x.rank : axis;
  Extents shape;
  for (int i = 0; i < x.rank; ++i) {
    if (i < first || i >= first + axes) shape[shape.rank++] = x[i];
  }
  return shape;
}

template <bool layer>
PyObject* run_norm(Call& call) {
  const Array x = call.in("x");
  Array y = call.out("out");
  const Array gamma = call.optional_in("gamma");
  const Array beta = call.optional_in("beta");
  NormOptions options{
      .axis = call.integer("axis"), .axes = call.integer("axes"), .epsilon = call.real("epsilon")};
  const Array residual = call.optional_in("residual");
  const Array sum = call.out("sum");
  Array mean = call.out("mean");
  Array rstd = call.out("rstd");
  const bool return_stats = call.flag();
  y.make_if_left_out(x);
  if (return_stats) {
    const Extents shape = other_axes(x.shape(), options.axis, options.axes);
    const DType dtype = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
    if (layer) mean.make_if_left_out(x, shape, dtype);
    rstd.make_if_left_out(x, shape, dtype);
  }
  options.gamma = gamma;
  options.beta = beta;
  options.residual = residual;
  options.sum = sum;
  options.mean = mean;
  options.rstd = rstd;
  call.run([&](Context& context, Pick pick) {
    (layer ? layer_norm : rms_norm)(context, x, y, options, pick);
  });
  if (!return_stats) return y.result();
  return layer ? call.triple(y, mean, rstd) : call.pair(y, rstd);
}

PyMethodDef functions[] = {
    bound<"layer_norm", run_norm<true>>(), bound<"rms_norm", run_norm<false>>(), {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
