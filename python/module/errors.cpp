// SPDX-License-Identifier: Apache-2.0
// rung.Error is a class of Python, so that it can be pickled and documented there.
#include "python/module/errors.hpp"

namespace rung::python {
namespace {

PyObject* error_class = nullptr;
PyObject* out_of_memory_class = nullptr;

/// The value of rung.Error.code.
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
}

void set_error(ErrorCode code, const char* message) noexcept {
  PyObject* const type = code == ErrorCode::out_of_memory ? out_of_memory_class : error_class;
  const Object error(PyObject_CallFunction(type, "ss", message, code_name(code)));
  if (error) PyErr_SetObject(type, error.get());
}

void throw_type_error(const std::string& message) {
  PyErr_SetString(PyExc_TypeError, message.c_str());
  throw PythonError{};
}

}  // namespace rung::python
