// SPDX-License-Identifier: Apache-2.0
// Python bindings of transpose.
#include "rung/ops/transpose/transpose.hpp"

#include "python/module/call.hpp"

namespace rung::python {
namespace {

PyObject* run_transpose(Call& call) {
  const Array x = call.in("x");
  Array y = call.out("out");
  Extents order = call.integers("axes");
  const int rank = x.shape().rank;
  for (int axis = 0; axis < order.rank; ++axis) {
    if (order[axis] < 0) order[axis] += rank;
  }
  Extents shape = x.shape();
  if (order.rank == 0) {
    if (rank >= 2) std::swap(shape[rank - 1], shape[rank - 2]);
  } else if (order.rank == rank) {
    for (int axis = 0; axis < rank; ++axis) {
      if (order[axis] >= 0 && order[axis] < rank) {  // the operator rejects other values
        shape[axis] = x.shape()[static_cast<int>(order[axis])];
      }
    }
  }
  y.make_if_left_out(x, shape, x.dtype());
  call.run([&](Context& context, Pick pick) { transpose(context, x, y, {.order = order}, pick); });
  return y.result();
}

PyMethodDef functions[] = {bound<"transpose", run_transpose>(), {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
