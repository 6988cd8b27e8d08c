// SPDX-License-Identifier: Apache-2.0
// rung.Error is a class of Python, so that it can be pickled and documented there.
#include "python/module/errors.hpp"

#include <cstring>

namespace rung::python {
namespace {

PyObject* error_class = nullptr;
PyObject* out_of_memory_class = nullptr;
PyObject* in_terms_of_caller = nullptr;

/// Returns the message with the names of the Python function that was called, or the message itself
/// where that fails.
Object translated(const char* message) {
  Object text(PyObject_CallFunction(in_terms_of_caller, "s", message));
  if (text) return text;
  PyErr_Clear();
  return Object(
      PyUnicode_DecodeUTF8(message, static_cast<Py_ssize_t>(std::strlen(message)), "replace"));
}

/// Returns the value of rung.Error.code.
const char* code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::not_available:
      return "not_available";
    case ErrorCode::out_of_memory:
      return "out_of_memory";
    case ErrorCode::io:
      return "io";
    case ErrorCode::device:
      return "device";
    case ErrorCode::internal:
      break;
  }
  return "internal";
}

}  // namespace

void load_errors() {
  const Object module = checked(PyImport_ImportModule("rung._errors"));
  error_class = attribute(module.get(), "Error").release();
  out_of_memory_class = attribute(module.get(), "OutOfMemoryError").release();
  in_terms_of_caller = attribute(module.get(), "in_terms_of_caller").release();
}

void set_error(ErrorCode code, const char* message) noexcept {
  PyObject* const type = code == ErrorCode::out_of_memory ? out_of_memory_class : error_class;
  const Object text = translated(message);
  if (!text) return;
  const Object error(PyObject_CallFunction(type, "Os", text.get(), code_name(code)));
  if (error) PyErr_SetObject(type, error.get());
}

void throw_type_error(const std::string& message) {
  const Object text = translated(message.c_str());
  if (text) PyErr_SetObject(PyExc_TypeError, text.get());
  throw PythonError{};
}

}  // namespace rung::python
