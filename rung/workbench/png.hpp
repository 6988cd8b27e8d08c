// SPDX-License-Identifier: Apache-2.0
// Reads and writes PNG files as tensors, through libpng.
//
// Reading  any PNG becomes H x W x C of u8, or of u16 where it has 16 bits a channel: C is 1
//          (grey), 2 (grey, alpha), 3 (R G B) or 4 (R G B, alpha). Palettes become their colors,
//          transparent colors alpha; 1, 2 and 4 bits are widened to 8. Gamma and color profiles
//          are left alone, comments skipped.
// Writing  u8 or u16 of H x W, or H x W x C with C 1 to 4, of any strides on any device; 8 or 16
//          bits a channel.
//          The file appears in full or not at all (file_writer.hpp).
// Errors   Error(io): no PNG, malformed or truncated; a file that claims more pixels than its size
//          can hold, or whose image data go on for more than 16 KiB, as compressed, behind the last
//          pixel: they are not inflated. Error(out_of_memory): more than is available.
//          Error(unsupported): a tensor that no PNG can be made of. The message names the file.
#pragma once

#include <string>

#include "rung/core/tensor.hpp"

namespace rung::workbench {

Tensor read_png(const std::string& path);
void write_png(const std::string& path, const ConstTensorRef& tensor);

}  // namespace rung::workbench
