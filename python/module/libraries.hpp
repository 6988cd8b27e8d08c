// SPDX-License-Identifier: Apache-2.0
// Which library an array is of: how its memory is found, and how a result of its kind is made.
#pragma once

#include <cstdint>

#include "python/module/exchange.hpp"
#include "python/module/python.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung::python {

enum class Library : std::uint8_t { numpy, torch, cupy, jax, other };

/// Facts about a type of arrays, found once per type.
struct ArrayType {
  PyTypeObject* type = nullptr;
  Library library = Library::other;
  bool masked = false;                      // NumPy's masked arrays
  const ExchangeTable* exchange = nullptr;  // null where the type has none
};

/// The facts about an object's type; remembered for the types seen last.
ArrayType array_type(PyObject* object);

/// The DType of a NumPy typestr ("<f4") and, where that says "V" or "f1", the name of its dtype,
/// which `array` is asked for. Throws Error(unsupported).
DType dtype_of_typestr(const char* typestr, PyObject* array, const char* op, const char* name);
/// The DType of a DLPack type; throws Error(unsupported).
DType dtype_of_dlpack(DLDataType type, const char* op, const char* name);
/// The DType of a buffer's format ("f", "<d") and size of elements; false where there is none.
bool dtype_of_format(const char* format, Py_ssize_t size, DType& dtype);

/// Makes an array without values: of the library and on the device of `like`, in C order. Throws
/// Error(unsupported) where that library has no arrays to write to.
Object make_array(PyObject* like, DType like_dtype, const Extents& shape, DType dtype,
                  const char* op);

}  // namespace rung::python
