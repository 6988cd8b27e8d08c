// SPDX-License-Identifier: Apache-2.0
// Reads arguments that are no arrays, with messages that name them.
#include "python/module/call.hpp"

#include <climits>

#include "rung/core/require.hpp"
#include "rung/core/suggestion.hpp"

namespace rung::python {

Call::Call(const char* op, PyObject* const* arguments, Py_ssize_t count)
    : op_(op), at_(arguments), end_(arguments + count), context_(next()), rung_(next()) {}

PyObject* Call::throw_too_few() const {
  throw_type_error(std::string(op_) + ": too few arguments for the extension module");
}

PyObject* Call::array(const char* name) {
  PyObject* const object = next();
  if (object == Py_None) {
    throw_type_error(std::string(op_) + ": " + name + " is None; accepted: an array");
  }
  return object;
}

Array Call::in_or_number(const char* name, const Array& like) {
  PyObject* const object = array(name);
  if (Array::is_number(object)) return {object, like, op_, name};
  return {object, op_, name, false, place_};
}

int Call::integer(const char* name) {
  PyObject* const object = next();
  const long number = PyLong_AsLong(object);
  if (number == -1 && PyErr_Occurred() != nullptr) {
    const bool huge = PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
    PyErr_Clear();
    if (huge) reject(std::string(name) + " is out of the range of an int");
    throw_type_error(std::string(op_) + ": " + name + " is a " + type_name(object) +
                     "; accepted: an int");
  }
  if (number < INT_MIN || number > INT_MAX) {
    reject(std::string(name) + " is " + std::to_string(number) + ", out of the range of an int");
  }
  return static_cast<int>(number);
}

double Call::real(const char* name) {
  PyObject* const object = next();
  const double number = PyFloat_AsDouble(object);
  if (number == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    throw_type_error(std::string(op_) + ": " + name + " is a " + type_name(object) +
                     "; accepted: a number");
  }
  return number;
}

Extents Call::integers(const char* name) {
  PyObject* const object = next();
  Extents list;
  if (object == Py_None) return list;
  const auto number_of = [&](PyObject* item) {
    const long long number = PyLong_AsLongLong(item);
    if (number == -1 && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      throw_type_error(std::string(op_) + ": " + name + " has a " + type_name(item) +
                       "; accepted: an int, or a sequence of them");
    }
    return static_cast<std::int64_t>(number);
  };
  if (PyTuple_Check(object) == 0 && PyList_Check(object) == 0) {
    list.rank = 1;
    list[0] = number_of(object);
    return list;
  }
  const Py_ssize_t count = PySequence_Size(object);
  if (count > max_rank || count == 0) {
    reject(std::string(name) + " has " + std::to_string(count) + " entries; accepted: 1 to " +
           std::to_string(max_rank));
  }
  list.rank = static_cast<int>(count);
  for (int i = 0; i < list.rank; ++i) {
    const Object item = checked(PySequence_GetItem(object, i));
    list[i] = number_of(item.get());
  }
  return list;
}

std::size_t Call::word_index(const char* name, const std::string_view* names, std::size_t count) {
  PyObject* const object = next();
  if (PyUnicode_Check(object) == 0) {
    throw_type_error(std::string(op_) + ": " + name + " is a " + type_name(object) +
                     "; accepted: a str");
  }
  Py_ssize_t size = 0;
  const char* const text = text_of(object, &size);
  const std::string_view word(text, static_cast<std::size_t>(size));
  const std::string_view* const found = std::find(names, names + count, word);
  if (found != names + count) return static_cast<std::size_t>(found - names);
  const std::vector<std::string_view> known(names, names + count);
  std::string accepted;
  for (const std::string_view one : known) {
    accepted += (accepted.empty() ? "" : ", ") + std::string(one);
  }
  reject(std::string(name) + " is '" + std::string(word) + "'; accepted: " + accepted +
         did_you_mean(word, known));
}

Pick Call::pick() const {
  if (rung_ == Py_None) return best;
  if (PyUnicode_Check(rung_) == 0) {
    throw_type_error(std::string(op_) + ": rung is a " + type_name(rung_) +
                     "; accepted: the name of a rung, or None for the best");
  }
  Py_ssize_t size = 0;
  const char* const text = text_of(rung_, &size);
  if (size == 0) reject("rung is ''; accepted: the name of a rung, or None for the best");
  return {.rung = {text, static_cast<std::size_t>(size)}};
}

void Call::reject(const std::string& message) const { rung::reject(op_, message); }

void Binding::add_all(PyObject* module) {
  for (const Binding* binding = first; binding != nullptr; binding = binding->next_) {
    if (PyModule_AddFunctions(module, binding->functions_) != 0) throw PythonError{};
  }
}

}  // namespace rung::python
