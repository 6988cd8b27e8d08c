// SPDX-License-Identifier: Apache-2.0
// CPython's limited API of 3.11, and owning references to its objects.
//
// One binary serves every CPython from 3.11 on (docs/adr/0019). Nothing outside of the limited API
// is used: no structure of Python's is read, but Py_buffer, which belongs to it since 3.11.
#pragma once

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030b0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string>
#include <utility>

namespace rung::python {

/// Thrown when a Python exception is set: guarded() returns it to the interpreter.
struct PythonError {};

/// Owns a reference; empty where it holds null.
class Object {
 public:
  Object() = default;
  explicit Object(PyObject* owned) noexcept : object_(owned) {}
  Object(Object&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Object& operator=(Object&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Object() { Py_XDECREF(object_); }

  [[nodiscard]] PyObject* get() const noexcept { return object_; }
  [[nodiscard]] PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

/// Owns what a function of Python's returned; throws PythonError where that is null.
inline Object checked(PyObject* returned) {
  if (returned == nullptr) throw PythonError{};
  return Object(returned);
}

inline Object borrowed(PyObject* object) {
  Py_XINCREF(object);
  return Object(object);
}

/// Returns an attribute, or nothing where the object lacks it; throws other errors.
inline Object attribute_if_any(PyObject* object, const char* name) {
  PyObject* const found = PyObject_GetAttrString(object, name);
  if (found == nullptr) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) throw PythonError{};
    PyErr_Clear();
  }
  return Object(found);
}
inline Object attribute(PyObject* object, const char* name) {
  return checked(PyObject_GetAttrString(object, name));
}

/// Returns the UTF-8 of a str, which is valid as long as the str.
inline const char* text_of(PyObject* text, Py_ssize_t* size = nullptr) {
  const char* const utf8 = PyUnicode_AsUTF8AndSize(text, size);
  if (utf8 == nullptr) throw PythonError{};
  return utf8;
}

/// Returns the name of an object's type: "list".
inline std::string type_name(PyObject* object) {
  const Object type(borrowed(reinterpret_cast<PyObject*>(Py_TYPE(object))));
  const Object name = attribute(type.get(), "__name__");
  return text_of(name.get());
}

/// Lets other threads of Python run while it lives.
class Released {
 public:
  Released() : state_(PyEval_SaveThread()) {}
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;
  ~Released() { PyEval_RestoreThread(state_); }

 private:
  PyThreadState* state_;
};

}  // namespace rung::python
