// SPDX-License-Identifier: Apache-2.0
// stmatrix: stores a warp's fragments to shared memory, the inverse of ldmatrix (ptx/matrix.hpp).
// Compute capability 9.0.
#pragma once

#include <cstdint>

#include "rung/device/ptx/matrix.hpp"

namespace rung::inline RUNG_TARGET::ptx {

#if defined(__CUDACC__)

/// Stores Count (1, 2, 4) matrices of 8 rows of 16 bytes. Lane 8 i + r passes the address of row r
/// of matrix i. Register i of lane l holds elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4 of
/// matrix i (of column l / 4 if transposed).
template <int Count, bool Transposed = false>
__device__ __forceinline__ void store_matrix(void* row, const std::uint32_t (&from)[Count]) {
  static_assert(Count == 1 || Count == 2 || Count == 4);
  const std::uint32_t address = shared_address(row);
  if constexpr (Count == 1 && !Transposed) {
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(address), "r"(from[0])
                 : "memory");
  } else if constexpr (Count == 1) {
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(address),
                 "r"(from[0])
                 : "memory");
  } else if constexpr (Count == 2 && !Transposed) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(address),
                 "r"(from[0]), "r"(from[1])
                 : "memory");
  } else if constexpr (Count == 2) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(address),
                 "r"(from[0]), "r"(from[1])
                 : "memory");
  } else if constexpr (!Transposed) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
                 "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])
                 : "memory");
  } else {
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
        "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])
        : "memory");
  }
}

#else

template <int Count, bool Transposed = false>
void store_matrix(void* row, const std::uint32_t (&from)[Count],
                  simt::Place place = simt::Place::current()) {
  static_assert(Count == 1 || Count == 2 || Count == 4);
  simt::store_matrix(row, from, Count, Transposed, place);
}

#endif

}  // namespace rung::inline RUNG_TARGET::ptx
