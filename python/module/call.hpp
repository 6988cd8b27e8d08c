// SPDX-License-Identifier: Apache-2.0
// A call from Python: its arguments in order, and the run without the interpreter's lock.
//
// rung/ops/X/python/X.py has the public functions, with signatures and docstrings; they call the
// functions that X.cpp beside it binds, with all arguments by position, context and rung first:
//
//   PyObject* run(Call& call) {
//     const Array x = call.in("x");
//     Array y = call.out("out");
//     const SoftmaxOptions options{.axis = call.integer("axis"), .scale = call.real("scale")};
//     y.make_if_left_out(x);
//     call.run([&](Context& context, Pick pick) { softmax(context, x, y, options, pick); });
//     return y.result();
//   }
//   PyMethodDef functions[] = {bound<"softmax", run>(), {}};
//   const Binding self{functions};
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/module/array.hpp"
#include "python/module/contexts.hpp"
#include "python/module/errors.hpp"
#include "rung/core/operator.hpp"

namespace rung::python {

class Call {
 public:
  Call(const char* op, PyObject* const* arguments, Py_ssize_t count);

  [[nodiscard]] const char* op() const { return op_; }

  // Each function reads the next argument; `name` is for messages.
  Array in(const char* name) { return {array(name), op_, name, false, place_}; }
  Array optional_in(const char* name) { return {next(), op_, name, false, place_}; }
  /// Reads an array to write. None stands for a result that is still to be made, or for one that
  /// the caller does not want.
  Array out(const char* name) { return {next(), op_, name, true, place_}; }
  /// Reads an array that is read and written, which must be given.
  Array in_out(const char* name) { return {array(name), op_, name, true, place_}; }
  /// Reads an array, or a number that stands for an array of the type of `like`.
  Array in_or_number(const char* name, const Array& like);

  /// Appends an array of a list to `arrays`; None stands for one that is left out.
  Array& emplace(std::deque<Array>& arrays, PyObject* object, const char* name, bool written) {
    return arrays.emplace_back(object, op_, name, written, place_);
  }

  int integer(const char* name);
  double real(const char* name);
  bool flag() { return next() == Py_True; }  // X.py passes bool(...)
  /// Reads axes. None is none of them, an int one, anything else a sequence.
  Extents integers(const char* name);
  [[nodiscard]] PyObject* peek() const { return at_ == end_ ? throw_too_few() : *at_; }
  PyObject* next() { return at_ == end_ ? throw_too_few() : *at_++; }

  /// Reads one of an enumeration's names, numbered from 0.
  template <class Enum, std::size_t n>
  Enum word(const char* name, const std::string_view (&names)[n]) {
    return static_cast<Enum>(word_index(name, names, n));
  }
  template <class Enum, std::size_t n>
  Enum word(const char* name, const std::pair<std::string_view, Enum> (&names)[n]) {
    std::string_view words[n];
    std::transform(std::begin(names), std::end(names), words,
                   [](const auto& pair) { return pair.first; });
    return names[word_index(name, words, n)].second;
  }

  /// Returns a tuple of results.
  static PyObject* pair(const Array& first, const Array& second) {
    return Py_BuildValue("(NN)", first.result(), second.result());
  }
  static PyObject* triple(const Array& first, const Array& second, const Array& third) {
    return Py_BuildValue("(NNN)", first.result(), second.result(), third.result());
  }
  static PyObject* quadruple(const Array& first, const Array& second, const Array& third,
                             const Array& fourth) {
    return Py_BuildValue("(NNNN)", first.result(), second.result(), third.result(),
                         fourth.result());
  }
  /// Computes on a GPU with arrays in host memory: on GPU 0 unless a context is given.
  void use_gpu() { place_ = {{Backend::cuda, 0}, nullptr, true, place_.wait}; }

  /// Calls function(context, pick), with the interpreter's lock released.
  template <class F>
  void run(F&& function) {
    Context& context = context_of(context_, place_, op_);
    const Pick pick = this->pick();
    const Released released;
    function(context, pick);
    if (place_.wait) context.synchronize();
  }
  /// Throws Error(invalid_argument) that begins with the operator's name.
  [[noreturn]] void reject(const std::string& message) const;

 private:
  PyObject* array(const char* name);
  Pick pick() const;
  std::size_t word_index(const char* name, const std::string_view* names, std::size_t count);
  [[noreturn]] PyObject* throw_too_few() const;

  const char* op_;
  PyObject* const* at_;
  PyObject* const* end_;
  PyObject* context_;
  PyObject* rung_;
  ArrayPlacement place_;
};

/// A string that is a template argument.
template <std::size_t n>
struct Name {
  char text[n];
  consteval Name(const char (&literal)[n]) {  // NOLINT: converts on purpose
    std::copy_n(literal, n, text);
  }
};

/// Returns the entry of a function in a Binding; messages begin with `op`.
template <Name name, auto run, Name op = name>
PyMethodDef bound() {
  using Fast = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t);
  const Fast fast = [](PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    return guarded([&] {
      Call call(op.text, arguments, count);
      return run(call);
    });
  };
  return {name.text, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(fast)),
          METH_FASTCALL, nullptr};
}

/// Functions that are added to the module; a constant of an operator's own file makes them known.
class Binding {
 public:
  /// `functions` ends with an empty one.
  explicit Binding(PyMethodDef* functions) : functions_(functions), next_(first) { first = this; }
  Binding(const Binding&) = delete;
  Binding& operator=(const Binding&) = delete;

  static void add_all(PyObject* module);

 private:
  inline static Binding* first = nullptr;
  PyMethodDef* functions_;
  Binding* next_;
};

}  // namespace rung::python
