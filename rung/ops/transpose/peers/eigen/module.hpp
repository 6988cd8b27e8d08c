// SPDX-License-Identifier: Apache-2.0
// C interface of librung_peer_transpose_eigen_*.so, which the transpose peer Eigen loads.
//
// Eigen chooses its instructions at compile time, and its functions are inline: the linker would
// merge two copies with different flags in one library, and a machine without AVX-512 could run
// AVX-512 code. Therefore each instruction set is a module of its own with all other names hidden.
#pragma once

#include <cstdint>

namespace rung::peer_eigen_transpose {

/// Arguments: y (columns x rows) = the transpose of x (rows x columns), with contiguous rows and
/// row strides in elements.
struct EigenTransposeArguments {
  const void* x;
  void* y;
  std::int64_t rows, columns;
  std::int64_t x_row, y_row;
  int element_bytes;  // 1, 2, 4 or 8
};

/// Types of the module's symbols, all extern "C".
using Run = void(const EigenTransposeArguments* call);  // rung_eigen_transpose
using Version = int();                                  // rung_eigen_version: 30400 for 3.4.0

}  // namespace rung::peer_eigen_transpose
