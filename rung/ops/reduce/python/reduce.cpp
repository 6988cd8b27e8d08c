// SPDX-License-Identifier: Apache-2.0
// Python bindings of reduce.
#include "rung/ops/reduce/reduce.hpp"

#include "python/module/call.hpp"

namespace rung::python {
namespace {

constexpr std::string_view operation_names[] = {"sum",  "product", "min",    "max",
                                                "mean", "argmin",  "argmax", "norm"};

/// Returns the shape of y; the operator rejects axes that x lacks.
Extents reduced_shape(const Array& x, const Extents& axes, bool keepdims, const Array& offsets) {
  unsigned reduced = axes.rank == 0 && !offsets.given() ? ~0U : 0U;
  const int rank = x.shape().rank;
  for (int i = 0; i < axes.rank; ++i) {
    const std::int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis >= 0 && axis < rank) reduced |= 1U << axis;
  }
  Extents shape;
  for (int axis = 0; axis < rank; ++axis) {
    const bool last_of_segments = offsets.given() && axis == rank - 1;
    if (last_of_segments) {
      const std::int64_t numbers = offsets.shape().rank == 1 ? offsets.shape()[0] : 1;
      shape[shape.rank++] = numbers > 0 ? numbers - 1 : 0;
    } else if ((reduced >> axis & 1U) == 0) {
      shape[shape.rank++] = x.shape()[axis];
    } else if (keepdims) {
      shape[shape.rank++] = 1;
    }
  }
  return shape;
}

PyObject* run_reduce(Call& call) {
  const auto operation = call.word<Reduction>("operation", operation_names);
  const Array x = call.in("x");
  Array y = call.out("out");
  const Extents axes = call.integers("axes");
  const bool keepdims = call.flag();
  const Array offsets = call.optional_in("offsets");
  const ReduceOptions options{.operation = operation, .axes = axes, .offsets = offsets};
  y.make_if_left_out(x, reduced_shape(x, axes, keepdims, offsets),
                     reduced_dtype(operation, x.dtype()));
  call.run([&](Context& context, Pick pick) { reduce(context, x, y, options, pick); });
  return y.result();
}

PyMethodDef functions[] = {bound<"reduce", run_reduce>(), {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
