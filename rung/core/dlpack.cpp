// SPDX-License-Identifier: Apache-2.0
// Converts DLPack structures to tensors and back.
#include "rung/core/dlpack.hpp"

#include <memory>
#include <string>

#include "rung/core/dlpack_abi.hpp"

namespace rung {
namespace {

constexpr DLPackVersion our_version{1, 1};

struct TypeCode {
  DType dtype;
  std::uint8_t code;
  std::uint8_t bits;
};
constexpr TypeCode type_codes[] = {
    {DType::f32, kDLFloat, 32},
    {DType::f64, kDLFloat, 64},
    {DType::f16, kDLFloat, 16},
    {DType::bf16, kDLBfloat, 16},
    {DType::e4m3, kDLFloat8_e4m3fn, 8},
    {DType::e5m2, kDLFloat8_e5m2, 8},
    {DType::i8, kDLInt, 8},
    {DType::u8, kDLUInt, 8},
    {DType::i32, kDLInt, 32},
    {DType::i64, kDLInt, 64},
    {DType::u16, kDLUInt, 16},
};

DType dtype_from(const DLDataType& type) {
  if (type.lanes != 1) {
    throw Error(ErrorCode::unsupported, "DLPack tensor: elements have " +
                                            std::to_string(type.lanes) + " lanes; accepted: 1");
  }
  for (const TypeCode& known : type_codes) {
    if (known.code == type.code && known.bits == type.bits) return known.dtype;
  }
  const std::string kind = type.code == kDLBool      ? "bool"
                           : type.code == kDLComplex ? "complex"
                                                     : "type code " + std::to_string(type.code);
  throw Error(ErrorCode::unsupported, "DLPack tensor: " + kind + " of " +
                                          std::to_string(type.bits) +
                                          " bits is not supported; accepted: " + dtype_names());
}

Device device_from(const DLDevice& device) {
  switch (device.device_type) {
    case kDLCPU:
    case kDLCUDAHost:
      return {Backend::cpu, 0};  // pinned memory, which the CPU accesses directly
    case kDLCUDA:
      return {Backend::cuda, device.device_id};
    default:
      break;
  }
  throw Error(ErrorCode::unsupported,
              "DLPack tensor: device type " + std::to_string(static_cast<int>(device.device_type)) +
                  " is not supported; accepted: CPU (1), CUDA (2), CUDA pinned host (3)");
}

[[noreturn]] void malformed(const std::string& what) {
  throw Error(ErrorCode::invalid_argument, "DLPack tensor: " + what);
}

TensorRef reference_from(const DLTensor& tensor) {
  const DType dtype = dtype_from(tensor.dtype);
  const Device device = device_from(tensor.device);
  if (tensor.ndim < 0) malformed("rank " + std::to_string(tensor.ndim) + " is negative");
  const auto rank = static_cast<std::size_t>(tensor.ndim);
  if (rank > 0 && tensor.shape == nullptr) malformed("shape is null");
  const Extents shape(std::span<const std::int64_t>(tensor.shape, rank));
  const bool empty = shape.product() == 0;  // throws for negative and overflowing extents
  const Extents strides = tensor.strides == nullptr
                              ? shape.contiguous_strides()
                              : Extents(std::span<const std::int64_t>(tensor.strides, rank));
  if (tensor.data == nullptr && !empty) malformed("data is null, shape is " + to_string(shape));
  std::uintptr_t address = 0;
  if (__builtin_add_overflow(reinterpret_cast<std::uintptr_t>(tensor.data), tensor.byte_offset,
                             &address)) {
    malformed("byte_offset " + std::to_string(tensor.byte_offset) + " leaves the address space");
  }
  // An offset from a null pointer would give an invalid address.
  std::byte* const data =
      tensor.data == nullptr ? nullptr : static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  try {
    const TensorRef reference(data, dtype, shape, strides, device);
    static_cast<void>(byte_range(reference));
    return reference;
  } catch (const Error& error) {
    malformed(error.what());
  }
}

template <class Managed>
Tensor adopt(Managed* managed) {
  const TensorRef reference = reference_from(managed->dl_tensor);
  return {reference, std::shared_ptr<void>(managed, [](void* self) {
            auto* const owned = static_cast<Managed*>(self);
            if (owned->deleter != nullptr) owned->deleter(owned);
          })};
}

/// Owner of the memory that a returned structure refers to; the structure's manager_ctx.
template <class Managed>
struct Lent {
  Managed managed{};
  Tensor tensor;
  Extents shape;
  Extents strides;
};

template <class Managed>
Managed* lend(const Tensor& tensor) {
  const TensorRef reference = tensor.ref();
  if (reference.device.backend == Backend::simt) {
    throw Error(ErrorCode::unsupported,
                "DLPack cannot name the simulated GPU; copy the tensor to the CPU first");
  }
  if (reference.device.backend == Backend::opencl) {
    throw Error(ErrorCode::unsupported,
                "an OpenCL tensor is not lent through DLPack; copy it to the CPU first");
  }
  const TypeCode* type = nullptr;
  for (const TypeCode& known : type_codes) {
    if (known.dtype == reference.dtype) type = &known;
  }
  if (type == nullptr) detail::throw_dtype(reference.dtype);
  auto lent = std::make_unique<Lent<Managed>>();
  lent->tensor = tensor;
  lent->shape = reference.shape;
  lent->strides = reference.strides;
  const bool cuda = reference.device.backend == Backend::cuda;
  lent->managed.dl_tensor = {reference.data,
                             {cuda ? kDLCUDA : kDLCPU, cuda ? reference.device.index : 0},
                             reference.rank(),
                             {type->code, type->bits, 1},
                             lent->shape.at,
                             lent->strides.at,
                             0};
  lent->managed.manager_ctx = lent.get();
  lent->managed.deleter = [](Managed* self) {
    delete static_cast<Lent<Managed>*>(self->manager_ctx);
  };
  return &lent.release()->managed;
}

}  // namespace

Tensor from_dlpack(DLManagedTensor* managed) {
  if (managed == nullptr) malformed("the structure is null");
  return adopt(managed);
}

Tensor from_dlpack(DLManagedTensorVersioned* managed, bool accept_read_only) {
  if (managed == nullptr) malformed("the structure is null");
  if (managed->version.major != our_version.major) {
    throw Error(ErrorCode::unsupported,
                "DLPack tensor: version " + std::to_string(managed->version.major) + "." +
                    std::to_string(managed->version.minor) + "; accepted: 1.x");
  }
  if ((managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0 && !accept_read_only) {
    throw Error(ErrorCode::invalid_argument,
                "DLPack tensor: it is read-only; pass accept_read_only to use it as an input");
  }
  return adopt(managed);
}

DLManagedTensor* to_dlpack(const Tensor& tensor) { return lend<DLManagedTensor>(tensor); }

DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor) {
  auto* const managed = lend<DLManagedTensorVersioned>(tensor);
  managed->version = our_version;
  return managed;
}

}  // namespace rung
