// SPDX-License-Identifier: Apache-2.0
// Files of NumPy's .npy format, versions 1.0 to 3.0, as tensors and back.
//
// Types    f32 f64 f16 i8 u8 i32 i64 u16, of either byte order when reading; written little-endian.
// Order    C, or Fortran (column-major strides).
// Errors   Error(io): the file cannot be opened, or is malformed, truncated or longer than it says.
//          Error(unsupported): a valid file of another type. The message names the file.
#pragma once

#include <string>

#include "rung/core/export.hpp"
#include "rung/core/tensor.hpp"

namespace rung {

/// Reads a file into host memory. Nothing is allocated that the file's size does not bear out.
RUNG_API Tensor read_npy(const std::string& path);

/// Writes a tensor of any strides on any device, as file_writer.hpp says: the file appears whole or
/// not at all.
RUNG_API void write_npy(const std::string& path, const ConstTensorRef& tensor,
                        bool fortran_order = false);

}  // namespace rung
