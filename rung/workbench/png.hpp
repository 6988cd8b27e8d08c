// SPDX-License-Identifier: Apache-2.0
// Reads and writes PNG files as tensors, through libpng.
//
// Reading  Any PNG becomes H x W x C of u8, or of u16 if it has 16 bits per channel; C is 1 (gray),
//          2 (gray, alpha), 3 (RGB) or 4 (RGBA). Palettes are expanded to colors, transparent
//          colors to alpha; 1, 2 and 4 bits are widened to 8. Gamma, color profiles and comments
//          are ignored.
// Writing  H x W, or H x W x C with C from 1 to 4, of u8 or u16, with any strides on any device; 8
//          or 16 bits per channel. The file is replaced atomically (file_writer.hpp).
// Errors   Error(io): not a PNG, malformed or truncated; a file that declares more pixels than its
//          size can hold, or that has more than 16 KiB of compressed data past the last pixel,
//          which are not inflated. Error(out_of_memory): insufficient memory. Error(unsupported): a
//          tensor that PNG cannot represent. The message names the file.
#pragma once

#include <string>

#include "rung/core/tensor.hpp"

namespace rung::workbench {

Tensor read_png(const std::string& path);
void write_png(const std::string& path, const ConstTensorRef& tensor);

}  // namespace rung::workbench
