// SPDX-License-Identifier: Apache-2.0
// Reads and writes tensors in NumPy's .npy format, versions 1.0 to 3.0.
//
// Types    f32 f64 f16 i8 u8 i32 i64 u16, read in either byte order, written little-endian.
// Order    C, or Fortran (column-major strides).
// Errors   Error(io): the file cannot be opened, is malformed, or its size differs from its header.
//          Error(unsupported): a valid file of another type. Messages name the file.
#pragma once

#include <string>

#include "rung/core/export.hpp"
#include "rung/core/tensor.hpp"

namespace rung {

/// Reads a file into host memory. Allocates no more than the file's size.
RUNG_API Tensor read_npy(const std::string& path);

/// Writes a tensor of any strides on any device; the file is replaced atomically (file_writer.hpp).
RUNG_API void write_npy(const std::string& path, const ConstTensorRef& tensor,
                        bool fortran_order = false);

}  // namespace rung
