// SPDX-License-Identifier: Apache-2.0
// The C interface of librung_peer_transpose_eigen_*.so: what the transpose peer Eigen loads.
//
// Eigen chooses its instructions when it is compiled, and its functions are inline: two copies with
// different flags in one library would be merged by the linker, and a machine without AVX-512 would
// run the other's. So each instruction set is a module of its own with all other names hidden.
#pragma once

#include <cstdint>

namespace rung::peer_eigen_transpose {

/// y (columns x rows) = the transpose of x (rows x columns); rows are contiguous, and so many
/// elements apart.
struct Call {
  const void* x;
  void* y;
  std::int64_t rows, columns;
  std::int64_t x_row, y_row;
  int element_bytes;  // 1, 2, 4 or 8
};

/// The module's symbols, all extern "C".
using Run = void(const Call* call);  // rung_eigen_transpose
using Version = int();               // rung_eigen_version: 30400 for 3.4.0

}  // namespace rung::peer_eigen_transpose
