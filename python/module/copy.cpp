// SPDX-License-Identifier: Apache-2.0
// rung.copy copies elements from one array to another, whatever the strides and devices.
#include "python/module/call.hpp"
#include "rung/core/require.hpp"
#include "rung/core/tensor.hpp"

namespace rung::python {
namespace {

/// Waits for work on the stream of an array, which copy() does not.
void wait_for(const ArrayPlacement& place) {
  if (place.on_device) context_of(Py_None, place, "copy").synchronize();
}

PyObject* run_copy(PyObject* /*module*/, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    if (count != 2) throw_type_error("copy: accepted are two arguments, x and out");
    if (arguments[0] == Py_None) throw_type_error("copy: x is None; accepted: an array");
    ArrayPlacement from, to;  // one for each array: they may be on two devices
    const Array x(arguments[0], "copy", "x", false, from);
    Array out(arguments[1], "copy", "out", true, to);
    out.make_if_left_out(x);
    // The library checks the same, with other names for the two.
    require_shape("copy", out, "out", x.shape());
    require_dtype("copy", out, "out", {x.dtype()});
    require_writable("copy", out, "out");
    require_apart("copy", out, "out", x, "x");
    {
      const Released released;
      wait_for(from);
      wait_for(to);
      copy(x, out);
    }
    return out.result();
  });
}

PyMethodDef functions[] = {
    {"copy", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(run_copy)), METH_FASTCALL,
     nullptr},
    {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
