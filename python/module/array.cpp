// SPDX-License-Identifier: Apache-2.0
// Reads an array's memory, by the cheapest way first.
#include "python/module/array.hpp"

#include <cmath>
#include <cstring>
#include <string>

#include "python/module/errors.hpp"

namespace rung::python {
namespace {

/// Returns whether results must not be written: jax.Array is immutable by contract, whatever its
/// memory is.
bool is_immutable(const ArrayType& type) { return type.library == Library::jax; }

std::int64_t integer_item(PyObject* tuple, Py_ssize_t index) {
  PyObject* const item = PyTuple_GetItem(tuple, index);
  if (item == nullptr) throw PythonError{};
  const long long number = PyLong_AsLongLong(item);
  if (number == -1 && PyErr_Occurred() != nullptr) throw PythonError{};
  return number;
}

/// PyTorch would have to record a gradient of what it does not see.
bool records_gradient(PyObject* object) {
  const Object requires_grad = attribute_if_any(object, "requires_grad");
  if (!requires_grad || requires_grad.get() != Py_True) return false;
  PyObject* const torch = PyDict_GetItemString(PyImport_GetModuleDict(), "torch");
  if (torch == nullptr) return true;
  const Object enabled = checked(PyObject_CallMethod(torch, "is_grad_enabled", nullptr));
  return enabled.get() == Py_True;
}

/// Returns whether a tensor of PyTorch stands for the negative of its memory, as imag of conj()
/// does.
bool is_negated(PyObject* object) {
  const Object method = attribute_if_any(object, "is_neg");
  if (!method) return false;
  const Object answer = checked(PyObject_CallNoArgs(method.get()));
  return answer.get() == Py_True;
}

}  // namespace

Array::Array(PyObject* object, const char* op, const char* name, bool written,
             ArrayPlacement& place)
    : op_(op), name_(name), place_(&place), written_(written) {
  buffer_.obj = nullptr;
  if (object == Py_None) return;
  object_ = borrowed(object);
  given_ = true;
  try {
    read(object);
  } catch (...) {
    if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);  // no destructor runs
    throw;
  }
}

Array::Array(PyObject* number, const Array& like, const char* op, const char* name)
    : op_(op), name_(name), place_(like.place_), written_(false), given_(true) {
  buffer_.obj = nullptr;
  if (place_->on_device) {
    fail(ErrorCode::unsupported,
         "is a number, which goes with arrays in host memory only; give an array of no axes");
  }
  tensor_.dtype = like.dtype();
  tensor_.data = &number_;
  if (is_floating(like.dtype())) {
    const double value = PyFloat_AsDouble(number);
    if (value == -1 && PyErr_Occurred() != nullptr) throw PythonError{};
    store_from_double(like.dtype(), &number_, value);
    return;
  }
  if (PyFloat_Check(number) != 0) {
    fail(ErrorCode::invalid_argument,
         "is a float, the arrays have elements of type " + std::string(to_string(like.dtype())));
  }
  const long long value = PyLong_AsLongLong(number);
  if (value == -1 && PyErr_Occurred() != nullptr) throw PythonError{};
  number_ = value;  // little-endian: its low bytes are the narrower types'
  const int bits = 8 * static_cast<int>(size_of(like.dtype()));
  const bool is_unsigned = like.dtype() == DType::u8 || like.dtype() == DType::u16;
  const std::int64_t top = bits == 64 ? INT64_MAX : (std::int64_t{1} << (bits - !is_unsigned)) - 1;
  const std::int64_t bottom = is_unsigned ? 0 : -top - 1;
  if (value < bottom || value > top) {
    fail(ErrorCode::invalid_argument, "is " + std::to_string(value) + ", out of the range of " +
                                          std::string(to_string(like.dtype())));
  }
}

Array::~Array() {
  if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
}

/// Returns whether the object is exactly a float or an int. NumPy's float64 is a float too, but has
/// a dtype; bool and enums are ints.
bool Array::is_number(PyObject* object) {
  return PyFloat_CheckExact(object) != 0 || PyLong_CheckExact(object) != 0;
}

PyObject* Array::result() const {
  if (made_) return give_to_jax(*made_).release();
  PyObject* const object = object_ ? object_.get() : Py_None;
  Py_INCREF(object);
  return object;
}

void Array::make_if_left_out(const Array& like, const Extents& shape, DType dtype) {
  if (given_) return;
  if (array_type(like.object()).library == Library::jax) {
    made_.emplace(dtype, shape, like.ref().device);
    tensor_ = *made_;
    given_ = true;
    place_->wait = true;
    return;
  }
  object_ = make_array(like.object(), like.dtype(), shape, dtype, op_);
  given_ = true;
  read(object_.get());
}

void Array::read(PyObject* object) {
  const ArrayType type = array_type(object);
  if (type.masked) {
    fail(ErrorCode::unsupported, "is a masked array, whose mask would be ignored; give its data");
  }
  if (written_ && is_immutable(type)) throw_read_only();
  if (type.library == Library::torch && is_negated(object)) {
    fail(ErrorCode::unsupported, "is a negated view; give x.resolve_neg()");
  }
  if (type.exchange != nullptr) {
    const ExchangeTable& table = *type.exchange;
    if (records_gradient(object)) {
      fail(ErrorCode::unsupported,
           "requires a gradient, which rung does not record; give "
           "x.detach(), or call within torch.no_grad()");
    }
    DLTensor described;
    if (table.describe(object, &described) != 0) throw PythonError{};
    take(described);
    if (described.device.device_type != kDLCUDA) return;
    void* stream = nullptr;
    if (table.current_stream(kDLCUDA, described.device.device_id, &stream) != 0) {
      throw PythonError{};
    }
    note_stream(stream);
    return;
  }
  if (type.library == Library::torch && records_gradient(object)) {
    fail(ErrorCode::unsupported,
         "requires a gradient, which rung does not record; give "
         "x.detach(), or call within torch.no_grad()");
  }
  // CuPy's arrays have a buffer, and raise an error for those that are in device memory.
  if (type.library == Library::cupy && read_cuda_interface()) return;
  if (PyObject_CheckBuffer(object) != 0 && read_buffer()) return;
  if (type.library == Library::numpy) return read_array_interface();
  if (type.library != Library::torch && read_cuda_interface()) return;
  read_dlpack();
}

/// Returns false, with no exception set, for elements that the protocol lacks: bf16 of ml_dtypes.
bool Array::read_buffer() {
  if (PyObject_GetBuffer(object_.get(), &buffer_, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    buffer_.obj = nullptr;
    const bool unknown = PyErr_ExceptionMatches(PyExc_ValueError) != 0 ||
                         PyErr_ExceptionMatches(PyExc_BufferError) != 0;
    if (!unknown) throw PythonError{};
    PyErr_Clear();
    return false;
  }
  if (written_ && buffer_.readonly != 0) throw_read_only();
  if (!dtype_of_format(buffer_.format, buffer_.itemsize, tensor_.dtype)) {
    fail(ErrorCode::unsupported, "has elements of format '" + std::string(buffer_.format) +
                                     "'; accepted: " + dtype_names());
  }
  if (buffer_.ndim > max_rank) {
    fail(ErrorCode::invalid_argument,
         "has " + axis_count(buffer_.ndim) + "; at most " + std::to_string(max_rank));
  }
  tensor_.data = buffer_.buf;
  tensor_.shape.rank = buffer_.ndim;
  for (int axis = 0; axis < buffer_.ndim; ++axis) tensor_.shape[axis] = buffer_.shape[axis];
  std::int64_t bytes[max_rank];
  for (int axis = 0; axis < buffer_.ndim; ++axis) bytes[axis] = buffer_.strides[axis];
  take_strides(buffer_.ndim, bytes);
  return true;
}

void Array::take_strides(int rank, const std::int64_t* bytes) {
  const auto size = static_cast<std::int64_t>(size_of(tensor_.dtype));
  tensor_.strides.rank = rank;
  for (int axis = 0; axis < rank; ++axis) {
    if (bytes[axis] % size != 0 && tensor_.shape[axis] > 1) {
      fail(ErrorCode::unsupported, "has a stride of " + std::to_string(bytes[axis]) +
                                       " bytes, not a multiple of its " + std::to_string(size) +
                                       "-byte elements; give a copy");
    }
    tensor_.strides[axis] = bytes[axis] / size;
  }
}

void Array::read_array_interface() {
  const Object interface = attribute_if_any(object_.get(), "__array_interface__");
  if (!interface) throw_no_array();
  take_interface(interface.get(), false);
}

bool Array::read_cuda_interface() {
  const Object interface = attribute_if_any(object_.get(), "__cuda_array_interface__");
  if (!interface) return false;
  take_interface(interface.get(), true);
  // 1 and 2 are names of the default streams, which the driver knows as such.
  PyObject* const stream = PyDict_GetItemString(interface.get(), "stream");
  if (stream == nullptr || stream == Py_None) {
    note_stream(nullptr);
    return true;
  }
  const std::uintptr_t handle = PyLong_AsSize_t(stream);
  if (PyErr_Occurred() != nullptr) throw PythonError{};
  note_stream(reinterpret_cast<void*>(handle));
  return true;
}

void Array::take_interface(PyObject* interface, bool on_device) {
  const auto entry = [&](const char* key) {
    PyObject* const value = PyDict_GetItemString(interface, key);
    if (value == nullptr) {
      fail(ErrorCode::invalid_argument, "has an array interface without " + std::string(key));
    }
    return value;
  };
  PyObject* const data = entry("data");
  if (PyTuple_Check(data) == 0 || PyTuple_Check(entry("shape")) == 0) throw_no_array();
  PyObject* const mask = PyDict_GetItemString(interface, "mask");
  if (mask != nullptr && mask != Py_None) {
    fail(ErrorCode::unsupported, "has a mask, which would be ignored; give its data");
  }
  if (written_ && PyObject_IsTrue(PyTuple_GetItem(data, 1)) != 0) throw_read_only();
  tensor_.dtype = dtype_of_typestr(text_of(entry("typestr")), object_.get(), op_, name_);
  tensor_.data = PyLong_AsVoidPtr(PyTuple_GetItem(data, 0));
  if (PyErr_Occurred() != nullptr) throw PythonError{};
  PyObject* const shape = entry("shape");
  const Py_ssize_t rank = PyTuple_Size(shape);
  if (rank > max_rank) {
    fail(ErrorCode::invalid_argument,
         "has " + axis_count(static_cast<int>(rank)) + "; at most " + std::to_string(max_rank));
  }
  tensor_.shape.rank = static_cast<int>(rank);
  for (int axis = 0; axis < tensor_.shape.rank; ++axis) {
    tensor_.shape[axis] = integer_item(shape, axis);
  }
  PyObject* const strides = PyDict_GetItemString(interface, "strides");
  if (strides == nullptr || strides == Py_None) {
    tensor_.strides = tensor_.shape.contiguous_strides();
  } else {
    std::int64_t bytes[max_rank];
    for (int axis = 0; axis < tensor_.shape.rank; ++axis) bytes[axis] = integer_item(strides, axis);
    take_strides(tensor_.shape.rank, bytes);
  }
  if (on_device) {
    const Object device = attribute_if_any(object_.get(), "device");
    const Object index = device ? attribute_if_any(device.get(), "id") : Object();
    const long id = index && PyLong_Check(index.get()) != 0 ? PyLong_AsLong(index.get()) : 0;
    tensor_.device = {Backend::cuda, static_cast<int>(id)};
  }
}

void Array::read_dlpack() {
  PyObject* const object = object_.get();
  const Object method = attribute_if_any(object, "__dlpack__");
  const Object device_method = method ? attribute_if_any(object, "__dlpack_device__") : Object();
  if (!device_method) throw_no_array();
  const Object device = checked(PyObject_CallObject(device_method.get(), nullptr));
  if (PyTuple_Check(device.get()) == 0) throw_no_array();
  const bool on_device = integer_item(device.get(), 0) == kDLCUDA;
  void* stream = nullptr;
  Object named = checked(Py_BuildValue("{s:(ii)}", "max_version", 1, 1));
  if (on_device) {
    // The producer makes the stream on which the call will run wait for its own work. 1 is the
    // default stream.
    std::uintptr_t handle = 1;
    PyObject* const torch = PyDict_GetItemString(PyImport_GetModuleDict(), "torch");
    if (array_type(object).library == Library::torch && torch != nullptr) {
      const Object cuda = attribute(torch, "cuda");
      const Object current =
          checked(PyObject_CallMethod(cuda.get(), "current_stream", "L",
                                      static_cast<long long>(integer_item(device.get(), 1))));
      const Object number = attribute(current.get(), "cuda_stream");
      stream = PyLong_AsVoidPtr(number.get());
      if (PyErr_Occurred() != nullptr) throw PythonError{};
      if (stream != nullptr) handle = reinterpret_cast<std::uintptr_t>(stream);
    }
    const Object value = checked(PyLong_FromSize_t(handle));
    if (PyDict_SetItemString(named.get(), "stream", value.get()) != 0) throw PythonError{};
  }
  const Object nothing = checked(PyTuple_New(0));
  Object capsule(PyObject_Call(method.get(), nothing.get(), named.get()));
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError) != 0) {  // from before DLPack 1.0
    PyErr_Clear();
    if (PyDict_DelItemString(named.get(), "max_version") != 0) throw PythonError{};
    capsule = Object(PyObject_Call(method.get(), nothing.get(), named.get()));
  }
  if (!capsule) throw PythonError{};
  capsule_ = std::move(capsule);  // it owns the structure, which its destructor frees
  read_dlpack_capsule(capsule_.get(), on_device);
  if (on_device) note_stream(stream);
}

void Array::read_dlpack_capsule(PyObject* capsule, bool on_device) {
  const DLTensor* described = nullptr;
  if (PyCapsule_IsValid(capsule, "dltensor_versioned") != 0) {
    const auto* const managed = static_cast<const DLManagedTensorVersioned*>(
        PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    if (managed->version.major != 1) {
      fail(ErrorCode::unsupported,
           "comes by DLPack " + std::to_string(managed->version.major) + "; accepted: version 1");
    }
    if (written_ && (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0) throw_read_only();
    described = &managed->dl_tensor;
  } else if (PyCapsule_IsValid(capsule, "dltensor") != 0) {
    described =
        &static_cast<const DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"))->dl_tensor;
  } else {
    throw_no_array();
  }
  take(*described);
  if (on_device != (tensor_.device.backend == Backend::cuda)) throw_no_array();
}

void Array::take(const DLTensor& described) {
  if (described.ndim > max_rank || described.ndim < 0) {
    fail(ErrorCode::invalid_argument,
         "has " + axis_count(described.ndim) + "; at most " + std::to_string(max_rank));
  }
  switch (described.device.device_type) {
    case kDLCPU:
    case kDLCUDAHost:
      break;
    case kDLCUDA:
      tensor_.device = {Backend::cuda, described.device.device_id};
      break;
    default:
      fail(ErrorCode::unsupported, "is on a device of DLPack's type " +
                                       std::to_string(described.device.device_type) +
                                       "; accepted: host memory and CUDA");
  }
  tensor_.dtype = dtype_of_dlpack(described.dtype, op_, name_);
  tensor_.data = static_cast<char*>(described.data) + described.byte_offset;
  tensor_.shape.rank = described.ndim;
  for (int axis = 0; axis < described.ndim; ++axis) tensor_.shape[axis] = described.shape[axis];
  if (described.strides == nullptr) {
    tensor_.strides = tensor_.shape.contiguous_strides();
    return;
  }
  tensor_.strides.rank = described.ndim;
  for (int axis = 0; axis < described.ndim; ++axis) {
    tensor_.strides[axis] = described.strides[axis];
  }
}

void Array::note_stream(void* stream) {
  if (place_->on_device) return;
  *place_ = {tensor_.device, stream, true, place_->wait};
}

void Array::throw_read_only() const {
  fail(ErrorCode::invalid_argument, "is written, and read-only; give a writable array");
}

void Array::throw_no_array() const {
  throw_type_error(std::string(op_) + ": " + name_ + " is a " + type_name(object_.get()) +
                   "; accepted: an array of NumPy, PyTorch, CuPy or JAX, or what has the buffer "
                   "protocol, __dlpack__ or __cuda_array_interface__");
}

void Array::fail(ErrorCode code, const std::string& message) const {
  throw Error(code, std::string(op_) + ": " + name_ + " " + message);
}

}  // namespace rung::python
