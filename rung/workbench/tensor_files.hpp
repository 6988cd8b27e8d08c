// SPDX-License-Identifier: Apache-2.0
// File formats of tensors, identified by the file suffix, case-insensitively: .png is a picture,
// .npy NumPy. Input files with any other suffix are read as .npy.
#pragma once

#include <string>
#include <string_view>

#include "rung/core/tensor.hpp"

namespace rung::workbench {

/// Description of the formats for help texts.
inline constexpr std::string_view tensor_files_help =
    "Files are NumPy's (numpy.save writes them, numpy.load reads the result), or pictures: a .png "
    "is u8 of H x W x C, C 1 to 4, or u16 where it has 16 bits a channel.";

/// Returns true if the suffix is that of a picture.
bool is_picture_file(std::string_view path);
/// Throws Error(invalid_argument) that names `option` unless the suffix is that of a known format.
void expect_tensor_file(std::string_view option, const std::string& path);

/// Reads a file into host memory. Throws Error that names the file.
Tensor read_tensor_file(const std::string& path);
/// Replaces the file atomically: complete or not at all.
void write_tensor_file(const std::string& path, const ConstTensorRef& tensor);

}  // namespace rung::workbench
