// SPDX-License-Identifier: Apache-2.0
// Python binding of norm_backward.
#include "rung/ops/norm_backward/norm_backward.hpp"

#include "python/module/call.hpp"

namespace rung::python {
namespace {

/// Returns the extents of the normalized axes; invalid axes are left to the operator.
Extents normalized_axes(const Extents& x, int axis, int axes) {
  const int first = axis < 0 ? axis + x.rank : axis;
  Extents shape;
  for (int i = 0; i < x.rank; ++i) {
    if (i >= first && i < first + axes) shape[shape.rank++] = x[i];
  }
  return shape;
}

template <bool layer>
PyObject* run_norm_backward(Call& call) {
  const Array dy = call.in("dy");
  const Array x = call.in("x");
  Array dx = call.out("out");
  const Array gamma = call.optional_in("gamma");
  NormBackwardOptions options{
      .axis = call.integer("axis"), .axes = call.integer("axes"), .epsilon = call.real("epsilon")};
  const Array mean = call.optional_in("mean");
  const Array rstd = call.optional_in("rstd");
  Array dgamma = call.out("dgamma");
  Array dbeta = call.out("dbeta");
  const bool return_weights = call.flag();
  dx.make_if_left_out(x);
  if (return_weights) {
    const Extents shape = normalized_axes(x.shape(), options.axis, options.axes);
    const DType dtype = gamma.given() ? gamma.dtype() : x.dtype();
    dgamma.make_if_left_out(x, shape, dtype);
    dbeta.make_if_left_out(x, shape, dtype);
  }
  options.gamma = gamma;
  options.mean = mean;
  options.rstd = rstd;
  options.dgamma = dgamma;
  options.dbeta = dbeta;
  call.run([&](Context& context, Pick pick) {
    (layer ? layer_norm_backward : rms_norm_backward)(context, dy, x, dx, options, pick);
  });
  return return_weights ? call.triple(dx, dgamma, dbeta) : dx.result();
}

PyMethodDef functions[] = {bound<"layer_norm_backward", run_norm_backward<true>>(),
                           bound<"rms_norm_backward", run_norm_backward<false>>(),
                           {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
