// SPDX-License-Identifier: Apache-2.0
// Types of arrays: recognized by the module that defines them, then looked up.
#include "python/module/libraries.hpp"

#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "python/module/errors.hpp"
#include "rung/core/dlpack.hpp"
#include "rung/core/dlpack_abi.hpp"

namespace rung::python {
namespace {

[[noreturn]] void throw_dtype(const char* op, const char* name, const std::string& given) {
  throw Error(ErrorCode::unsupported, std::string(op) + ": " + name + " has elements of type " +
                                          given + "; accepted: " + dtype_names());
}

struct Root {
  std::string_view module;
  Library library;
};
constexpr Root roots[] = {{"numpy", Library::numpy}, {"torch", Library::torch},
                          {"cupy", Library::cupy},   {"jaxlib", Library::jax},
                          {"jax", Library::jax},     {"ml_dtypes", Library::numpy}};

/// Returns the library whose module defines the type or one of its bases.
Library library_of(PyObject* type, bool& masked) {
  const Object bases = attribute(type, "__mro__");
  const Py_ssize_t count = PyTuple_Size(bases.get());
  Library found = Library::other;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const base = PyTuple_GetItem(bases.get(), i);
    const Object module = attribute_if_any(base, "__module__");
    if (!module || PyUnicode_Check(module.get()) == 0) continue;
    const std::string_view path = text_of(module.get());
    const std::string_view root = path.substr(0, path.find('.'));
    for (const Root& known : roots) {
      if (known.module == root && found == Library::other) found = known.library;
    }
    const Object name = attribute(base, "__name__");
    if (root == "numpy" && std::string_view(text_of(name.get())) == "MaskedArray") masked = true;
  }
  return found;
}

const ExchangeTable* exchange_of(PyObject* type) {
  Object capsule = attribute_if_any(type, "__dlpack_c_exchange_api__");
  if (!capsule) capsule = attribute_if_any(type, "__c_dlpack_exchange_api__");
  constexpr const char* name = "dlpack_exchange_api";
  if (!capsule || PyCapsule_IsValid(capsule.get(), name) == 0) return nullptr;
  auto* header = static_cast<ExchangeHeader*>(PyCapsule_GetPointer(capsule.get(), name));
  while (header != nullptr && header->version.major != 1) header = header->previous;
  const auto* const table = reinterpret_cast<const ExchangeTable*>(header);
  const bool usable =
      table != nullptr && table->describe != nullptr && table->current_stream != nullptr;
  return usable ? table : nullptr;
}

PyObject* module_if_loaded(const char* name) {  // borrowed; null where it is not loaded
  PyObject* const modules = PyImport_GetModuleDict();
  return PyDict_GetItemString(modules, name);
}

/// Names that NumPy, PyTorch and CuPy share.
constexpr const char* library_name(DType dtype) {
  constexpr const char* names[] = {"float32",       "float64",     "float16", "bfloat16",
                                   "float8_e4m3fn", "float8_e5m2", "int8",    "uint8",
                                   "int32",         "int64",       "uint16"};
  return names[static_cast<std::size_t>(dtype)];
}

/// Returns the dtype for np.empty(): a name, or ml_dtypes' class for a type that NumPy lacks.
Object numpy_dtype(DType dtype) {
  if (dtype == DType::bf16 || dtype == DType::e4m3 || dtype == DType::e5m2) {
    const Object types = checked(PyImport_ImportModule("ml_dtypes"));
    return attribute(types.get(), library_name(dtype));
  }
  return checked(PyUnicode_FromString(library_name(dtype)));
}

Object shape_tuple(const Extents& shape) {
  Object tuple = checked(PyTuple_New(shape.rank));
  for (int axis = 0; axis < shape.rank; ++axis) {
    Object extent = checked(PyLong_FromLongLong(shape[axis]));
    PyTuple_SetItem(tuple.get(), axis, extent.release());
  }
  return tuple;
}

Object make_torch(PyObject* like, PyObject* shape, bool same, DType dtype) {
  if (same) return checked(PyObject_CallMethod(like, "new_empty", "(O)", shape));
  const Object function = attribute(like, "new_empty");
  const Object torch = checked(PyImport_ImportModule("torch"));
  const Object type = attribute(torch.get(), library_name(dtype));
  const Object positional = checked(PyTuple_Pack(1, shape));
  const Object named = checked(Py_BuildValue("{s:O}", "dtype", type.get()));
  return checked(PyObject_Call(function.get(), positional.get(), named.get()));
}

/// CuPy makes arrays on the current device, which need not be that of `like`.
Object make_cupy(PyObject* like, PyObject* shape, PyObject* dtype) {
  const Object cupy = checked(PyImport_ImportModule("cupy"));
  const Object device = attribute(like, "device");
  const Object entered = checked(PyObject_CallMethod(device.get(), "__enter__", nullptr));
  Object made(PyObject_CallMethod(cupy.get(), "empty", "OO", shape, dtype));
  if (made) {
    checked(PyObject_CallMethod(device.get(), "__exit__", "OOO", Py_None, Py_None, Py_None));
    return made;
  }
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  const Object left(
      PyObject_CallMethod(device.get(), "__exit__", "OOO", Py_None, Py_None, Py_None));
  PyErr_Restore(type, value, trace);
  throw PythonError{};
}

}  // namespace

ArrayType array_type(PyObject* object) {
  static std::array<ArrayType, 16> known;
  static std::size_t next = 0;
  PyTypeObject* const type = Py_TYPE(object);
  for (const ArrayType& one : known) {
    if (one.type == type) return one;
  }
  ArrayType found;
  found.type = type;
  auto* const as_object = reinterpret_cast<PyObject*>(type);
  found.library = library_of(as_object, found.masked);
  found.exchange = exchange_of(as_object);
  Py_INCREF(as_object);  // its address must not become another type's
  PyTypeObject* const former = known[next].type;
  known[next] = found;
  next = (next + 1) % known.size();
  Py_XDECREF(reinterpret_cast<PyObject*>(former));
  return found;
}

bool dtype_of_format(const char* format, Py_ssize_t size, DType& dtype) {
  constexpr char native_order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>';
  if (format == nullptr) format = "B";
  if (*format == '@' || *format == '=' || *format == native_order) ++format;
  if (format[0] == '\0' || format[1] != '\0') return false;
  struct Known {
    char letter;
    Py_ssize_t size;
    DType dtype;
  };
  constexpr Known letters[] = {{'f', 4, DType::f32}, {'d', 8, DType::f64}, {'e', 2, DType::f16},
                               {'b', 1, DType::i8},  {'B', 1, DType::u8},  {'H', 2, DType::u16},
                               {'i', 4, DType::i32}, {'l', 8, DType::i64}, {'q', 8, DType::i64},
                               {'l', 4, DType::i32}};
  for (const Known& one : letters) {
    if (one.letter == *format && one.size == size) {
      dtype = one.dtype;
      return true;
    }
  }
  return false;
}

DType dtype_of_typestr(const char* typestr, PyObject* array, const char* op, const char* name) {
  struct Known {
    std::string_view text;
    DType dtype;
  };
  constexpr Known kinds[] = {{"f4", DType::f32}, {"f8", DType::f64}, {"f2", DType::f16},
                             {"i1", DType::i8},  {"u1", DType::u8},  {"u2", DType::u16},
                             {"i4", DType::i32}, {"i8", DType::i64}};
  constexpr Known by_name[] = {
      {"bfloat16", DType::bf16}, {"float8_e4m3fn", DType::e4m3}, {"float8_e5m2", DType::e5m2}};
  const std::string_view text = typestr;
  if (text.size() > 1 && (text[0] == '<' || text[0] == '|')) {
    for (const Known& one : kinds) {
      if (one.text == text.substr(1)) return one.dtype;
    }
  }
  const Object dtype = attribute_if_any(array, "dtype");
  const Object said = dtype ? attribute_if_any(dtype.get(), "name") : Object();
  if (!said) throw_dtype(op, name, typestr);
  for (const Known& one : by_name) {
    if (one.text == text_of(said.get())) return one.dtype;
  }
  // Known types arrive here only in another byte order.
  throw_dtype(op, name,
              std::string(text_of(said.get())) + (text[0] == '>' ? " in foreign byte order" : ""));
}

DType dtype_of_dlpack(DLDataType type, const char* op, const char* name) {
  struct Known {
    DLDataTypeCode code;
    int bits;
    DType dtype;
  };
  constexpr Known types[] = {{kDLFloat, 32, DType::f32},
                             {kDLFloat, 64, DType::f64},
                             {kDLFloat, 16, DType::f16},
                             {kDLBfloat, 16, DType::bf16},
                             {kDLFloat8_e4m3fn, 8, DType::e4m3},
                             {kDLFloat8_e5m2, 8, DType::e5m2},
                             {kDLInt, 8, DType::i8},
                             {kDLUInt, 8, DType::u8},
                             {kDLInt, 32, DType::i32},
                             {kDLInt, 64, DType::i64},
                             {kDLUInt, 16, DType::u16}};
  for (const Known& one : types) {
    if (one.code == type.code && one.bits == type.bits && type.lanes == 1) return one.dtype;
  }
  throw_dtype(op, name,
              "DLPack's code " + std::to_string(type.code) + " with " + std::to_string(type.bits) +
                  " bits and " + std::to_string(type.lanes) + " lanes");
}

Object make_array(PyObject* like, DType like_dtype, const Extents& shape, DType dtype,
                  const char* op) {
  const Library library = array_type(like).library;
  const Object extents = shape_tuple(shape);
  const bool same = dtype == like_dtype;
  if (library == Library::torch) return make_torch(like, extents.get(), same, dtype);
  if (library == Library::numpy || library == Library::cupy) {
    const Object type = same ? attribute(like, "dtype") : numpy_dtype(dtype);
    if (library == Library::cupy) return make_cupy(like, extents.get(), type.get());
    static PyObject* empty = nullptr;
    if (empty == nullptr) empty = attribute(module_if_loaded("numpy"), "empty").release();
    return checked(PyObject_CallFunctionObjArgs(empty, extents.get(), type.get(), nullptr));
  }
  throw Error(ErrorCode::unsupported,
              std::string(op) + ": no result of the kind of a " + type_name(like) +
                  " can be made; give out=, an array of NumPy, PyTorch or CuPy");
}

Object give_to_jax(const Tensor& tensor) {
  Object capsule = checked(PyCapsule_New(to_dlpack(tensor), "dltensor", [](PyObject* capsule) {
    // Who takes the tensor over renames the capsule.
    if (PyCapsule_IsValid(capsule, "dltensor") == 0) return;
    auto* const managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
    managed->deleter(managed);
  }));
  const Device device = tensor.ref().device;
  const bool on_device = device.backend == Backend::cuda;
  const Object jax = checked(PyImport_ImportModule("rung._jax"));
  return checked(PyObject_CallMethod(jax.get(), "adopt", "Oii", capsule.get(),
                                     on_device ? kDLCUDA : kDLCPU, device.index));
}

}  // namespace rung::python
