// SPDX-License-Identifier: Apache-2.0
// rung.Context, and the contexts of calls that are given none.
#pragma once

#include "python/module/array.hpp"
#include "python/module/python.hpp"
#include "rung/core/context.hpp"

namespace rung::python {

/// Makes the type; called once, by the module's initialization.
Object make_context_type();
/// Returns the context of an argument. None stands for this thread's own for the place of the
/// arrays, on a CPU with all cores. Throws PythonError (TypeError) for any other object.
Context& context_of(PyObject* argument, const ArrayPlacement& place, const char* op);

}  // namespace rung::python
