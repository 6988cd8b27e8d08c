// SPDX-License-Identifier: Apache-2.0
// Finds which library an array is of, how its memory is read, and how a result of its kind is made.
#pragma once

#include <cstdint>

#include "python/module/exchange.hpp"
#include "python/module/python.hpp"
#include "rung/core/tensor.hpp"
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

/// Returns the facts about an object's type, which it remembers for the types seen last.
ArrayType array_type(PyObject* object);

/// Returns the DType of a NumPy typestr ("<f4"). Where that says "V" or "f1", reads the name of the
/// dtype of `array`. Throws Error(unsupported).
DType dtype_of_typestr(const char* typestr, PyObject* array, const char* op, const char* name);
/// Returns the DType of a DLPack type; throws Error(unsupported).
DType dtype_of_dlpack(DLDataType type, const char* op, const char* name);
/// Finds the DType of a buffer's format ("f", "<d") and size of elements; returns false where there
/// is none.
bool dtype_of_format(const char* format, Py_ssize_t size, DType& dtype);

/// Makes an array without values, of the library and on the device of `like`, in C order. Throws
/// Error(unsupported) where that library has no writable arrays: those of JAX go by give_to_jax().
Object make_array(PyObject* like, DType like_dtype, const Extents& shape, DType dtype,
                  const char* op);

/// Makes an array of JAX of a tensor, whose memory it takes over.
Object give_to_jax(const Tensor& tensor);

}  // namespace rung::python
