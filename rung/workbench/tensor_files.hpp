// SPDX-License-Identifier: Apache-2.0
// The formats of files that hold a tensor, told apart by the end of their names, in either case:
// .png is a picture, .npy NumPy's. A file to read that has another name is taken for NumPy's.
#pragma once

#include <string>
#include <string_view>

#include "rung/core/tensor.hpp"

namespace rung::workbench {

/// One line for help texts.
inline constexpr std::string_view tensor_files_help =
    "Files are NumPy's (numpy.save writes them, numpy.load reads the result), or pictures: a .png "
    "is u8 of H x W x C, C 1 to 4, or u16 where it has 16 bits a channel.";

/// Returns true if the name is that of a picture.
bool is_picture_file(std::string_view path);
/// Throws Error(invalid_argument) that names `option` unless the path's end is that of a format.
void expect_tensor_file(std::string_view option, const std::string& path);

/// Into host memory. Throws Error that names the file.
Tensor read_tensor_file(const std::string& path);
/// Replaces the file, in full or not at all.
void write_tensor_file(const std::string& path, const ConstTensorRef& tensor);

}  // namespace rung::workbench
