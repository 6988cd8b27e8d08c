// SPDX-License-Identifier: Apache-2.0
// The extension module rung._rung: the operators' bindings, rung.Context, and facts about the
// library.
#include "python/module/call.hpp"
#include "python/module/contexts.hpp"
#include "python/module/errors.hpp"
#include "python/module/python.hpp"
#include "rung/core/version.hpp"
#include "rung/harness/any_operator.hpp"

namespace rung::python {
namespace {

Object text(std::string_view view) {
  return checked(PyUnicode_FromStringAndSize(view.data(), static_cast<Py_ssize_t>(view.size())));
}

void append(const Object& list, const Object& item) {
  if (PyList_Append(list.get(), item.get()) != 0) throw PythonError{};
}

PyObject* version_of_library(PyObject* /*module*/, PyObject* /*nothing*/) {
  return PyUnicode_FromString(version());
}

/// Returns [(name, summary), ...].
PyObject* list_operators(PyObject* /*module*/, PyObject* /*nothing*/) {
  return guarded([] {
    Object list = checked(PyList_New(0));
    for (const AnyOperator* op : operators()) {
      const Object name = text(op->name());
      const Object summary = text(op->summary());
      append(list, checked(PyTuple_Pack(2, name.get(), summary.get())));
    }
    return list.release();
  });
}

/// Returns [(name, step, backend, after, peer, teaching, file), ...].
PyObject* list_rungs(PyObject* /*module*/, PyObject* name) {
  return guarded([&] {
    if (PyUnicode_Check(name) == 0) {
      throw_type_error("rungs: the operator is a " + type_name(name) + "; accepted: its name");
    }
    Object list = checked(PyList_New(0));
    for (const RungInfo* info : find_operator(text_of(name)).rungs()) {
      const Object rung = text(info->name);
      const Object after = text(info->after);
      const Object file = text(info->file);
      append(list, checked(Py_BuildValue(
                       "(OisONNO)", rung.get(), info->step, to_string(info->backend), after.get(),
                       PyBool_FromLong(static_cast<long>(info->peer)),
                       PyBool_FromLong(static_cast<long>(info->teaching)), file.get())));
    }
    return list.release();
  });
}

/// Returns (usable, reason).
PyObject* ask_available(PyObject* /*module*/, PyObject* name) {
  return guarded([&] {
    if (PyUnicode_Check(name) == 0) {
      throw_type_error("available: the backend is a " + type_name(name) + "; accepted: its name");
    }
    const Availability answer = available(parse_backend(text_of(name)));
    return Py_BuildValue("(Ns)", PyBool_FromLong(static_cast<long>(answer.ok)), answer.why.c_str());
  });
}

PyMethodDef functions[] = {{"version", version_of_library, METH_NOARGS, nullptr},
                           {"operators", list_operators, METH_NOARGS, nullptr},
                           {"rungs", list_rungs, METH_O, nullptr},
                           {"available", ask_available, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

// Single-phase initialization says that state is global: interpreters with a lock of their own
// refuse the module.
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "rung._rung",
                          nullptr,
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace rung::python

PyMODINIT_FUNC PyInit__rung() {
  using namespace rung::python;
  return guarded([]() -> PyObject* {
    load_errors();
    Object module = checked(PyModule_Create(&definition));
    const Object type = make_context_type();
    if (PyModule_AddObjectRef(module.get(), "Context", type.get()) != 0) throw PythonError{};
    Binding::add_all(module.get());
    return module.release();
  });
}
