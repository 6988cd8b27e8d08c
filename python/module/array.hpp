// SPDX-License-Identifier: Apache-2.0
// An array that a Python function was given: its memory, held until the call has ended.
//
// Ways   PyTorch and others with an exchange table: a C function of theirs. NumPy, memoryview,
//        array.array: the buffer protocol; NumPy's bf16 and fp8 (ml_dtypes), which it does not
//        know: __array_interface__. CuPy, Numba: __cuda_array_interface__. All others: __dlpack__.
// Copies none. A result for JAX, whose arrays are immutable, is computed in memory of ours, which
// JAX takes over by DLPack once the call has ended.
#pragma once

#include <cstdint>
#include <optional>

#include "python/module/libraries.hpp"
#include "python/module/python.hpp"
#include "rung/core/tensor.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung::python {

/// Device and stream of the arrays of one call; that of the first array on a device counts.
struct ArrayPlacement {
  Device device;
  void* stream = nullptr;
  bool on_device = false;
  bool wait =
      false;  // the call ends when its work has: its result goes to a library of other streams
};

class Array {
 public:
  /// `object` is an array, or None where the argument may be left out.
  Array(PyObject* object, const char* op, const char* name, bool written, ArrayPlacement& place);
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array();

  [[nodiscard]] bool given() const { return given_; }
  [[nodiscard]] const TensorRef& ref() const { return tensor_; }
  operator TensorRef() const { return tensor_; }       // NOLINT: as C++ functions take it
  operator ConstTensorRef() const { return tensor_; }  // NOLINT
  [[nodiscard]] const Extents& shape() const { return tensor_.shape; }
  [[nodiscard]] DType dtype() const { return tensor_.dtype; }
  [[nodiscard]] PyObject* object() const { return object_.get(); }

  /// Makes the array where it was left out: of the kind and on the device of `like`.
  void make_if_left_out(const Array& like, const Extents& shape, DType dtype);
  void make_if_left_out(const Array& like) { make_if_left_out(like, like.shape(), like.dtype()); }
  /// Takes a number in place of an array: one element of the type of `like`, without axes.
  static bool is_number(PyObject* object);
  Array(PyObject* number, const Array& like, const char* op, const char* name);
  /// Returns a new reference for Python; None where the array was left out.
  [[nodiscard]] PyObject* result() const;

 private:
  void read(PyObject* object);
  bool read_buffer();
  void read_array_interface();
  bool read_cuda_interface();
  void read_dlpack();
  void read_dlpack_capsule(PyObject* capsule, bool on_device);
  void take(const DLTensor& described);
  void take_interface(PyObject* interface, bool on_device);
  void take_strides(int rank, const std::int64_t* bytes);
  void note_stream(void* stream);
  [[noreturn]] void throw_read_only() const;
  [[noreturn]] void throw_no_array() const;
  [[noreturn]] void fail(ErrorCode code, const std::string& message) const;

  const char* op_;
  const char* name_;
  ArrayPlacement* place_;
  TensorRef tensor_;
  Object object_;
  Object capsule_;
  std::optional<Tensor> made_;  // a result that result() hands over
  Py_buffer buffer_;            // held if buffer_.obj is set
  std::int64_t number_ = 0;
  bool written_;
  bool given_ = false;
};

}  // namespace rung::python
