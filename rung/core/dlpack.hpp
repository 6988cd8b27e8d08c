// SPDX-License-Identifier: Apache-2.0
// Tensors of other libraries (PyTorch, JAX, CuPy, NumPy), and ours for them, without a copy, by
// the DLPack protocol. Its structures are declared in rung/core/dlpack_abi.hpp or in the
// project's own <dlpack/dlpack.h>; either may be included beside this header.
//
// Types    all of rung's; fp8 by the codes of DLPack 1.1. One lane.
// Devices  CPU, CUDA, and CUDA's pinned host memory (a CPU tensor here).
// Errors   Error(unsupported) for other types, lanes and devices, Error(invalid_argument) for
//          malformed structures; a structure that is refused is not touched: its deleter is not
//          called, and it stays the caller's.
#pragma once

#include "rung/core/export.hpp"
#include "rung/core/tensor.hpp"

struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace rung {

/// Takes the structure over: its deleter is called once, when the last copy of the tensor goes.
/// Synchronizing with the stream that fills it is the caller's part, as DLPack has it. The
/// device_id of host memory is not used: there is one host.
RUNG_API Tensor from_dlpack(DLManagedTensor* managed);
/// Refuses another major version, and tensors marked read-only unless `accept_read_only`: a
/// Tensor may be written through.
RUNG_API Tensor from_dlpack(DLManagedTensorVersioned* managed, bool accept_read_only = false);

/// The receiver calls ->deleter(itself) when done; the tensor's memory lives until then.
/// Throws Error(unsupported) for tensors of the simulated GPU, which DLPack cannot name.
RUNG_API DLManagedTensor* to_dlpack(const Tensor& tensor);
RUNG_API DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor);

}  // namespace rung
