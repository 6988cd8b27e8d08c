// SPDX-License-Identifier: Apache-2.0
// Zero-copy exchange of tensors with other libraries (PyTorch, JAX, CuPy, NumPy) by the DLPack
// protocol. Its structures are declared in rung/core/dlpack_abi.hpp and in DLPack's own header
// <dlpack/dlpack.h>; a program may include either.
//
// Types    all of rung's element types, fp8 with the codes of DLPack 1.1; one lane per element.
// Devices  CPU, CUDA, and CUDA's pinned host memory (a CPU tensor here).
// Errors   Error(unsupported) for other types, lane counts and devices, Error(invalid_argument)
//          for malformed structures. A rejected structure is not touched: its deleter is not
//          called, and the caller still owns it.
#pragma once

#include "rung/core/export.hpp"
#include "rung/core/tensor.hpp"

struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace rung {

/// Takes ownership: the structure's deleter is called once, when the last copy of the tensor is
/// destroyed. The caller synchronizes with the stream that fills the tensor, as DLPack requires.
/// The device_id of host memory is ignored.
RUNG_API Tensor from_dlpack(DLManagedTensor* managed);
/// Takes ownership of a versioned structure. Throws for another major version, and for tensors
/// marked read-only unless `accept_read_only` is true (a Tensor is writable).
RUNG_API Tensor from_dlpack(DLManagedTensorVersioned* managed, bool accept_read_only = false);

/// Returns a structure whose consumer calls its deleter when done; it keeps the tensor's memory
/// alive until then. Throws Error(unsupported) for tensors of the simulated GPU, for which DLPack
/// has no device type.
RUNG_API DLManagedTensor* to_dlpack(const Tensor& tensor);
RUNG_API DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor);

}  // namespace rung
