// SPDX-License-Identifier: Apache-2.0
// The header of a .npy file: a Python dictionary in ASCII, such as
//   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
// Files are untrusted, so the parser is strict and accepts this dictionary only, not Python.
// Internal to core.
#pragma once

#include <string>
#include <string_view>

#include "rung/core/tensor_ref.hpp"

namespace rung::detail {

struct NpyHeader {
  DType dtype = DType::f32;
  bool big_endian = false;
  bool fortran_order = false;
  Extents shape;
};

/// Parses a header. Throws Error(io) or Error(unsupported) whose message starts with `path`.
NpyHeader parse_npy_header(std::string_view text, const std::string& path);

/// Returns the dictionary, without padding or line feed. Throws Error(unsupported) for dtypes that
/// NumPy lacks.
std::string format_npy_header(const NpyHeader& header, const std::string& path);

}  // namespace rung::detail
