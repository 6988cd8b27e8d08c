// SPDX-License-Identifier: Apache-2.0
// Warp matrix instructions of the simulated GPU: ldmatrix and mma.sync with the register layouts of
// the PTX manual, so that kernels built on these layouts run unchanged.
//
// Multiplications of two f16, bf16 or TF32 elements are exact in float. Terms are added in order of
// k, with a rounding to float after each. A GPU adds in another order and truncates: only the error
// bound is the same.
#pragma once

#include <cstdint>

#include "rung/core/export.hpp"
#include "rung/simt/sync.hpp"

namespace rung::simt {

/// Loads matrices (ldmatrix.m8n8.x{1,2,4}.b16). Lane 8 i + r passes the address of row r of matrix
/// i. Register i of lane l receives elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4 (of column l
/// / 4 if transposed).
RUNG_API void load_matrix(std::uint32_t* registers, int count, bool transposed, const void* row,
                          Place place);

enum class MatrixType : std::uint8_t { tf32, f16, bf16 };
/// Computes d = a b + c with float sums: mma.sync.m16n8k8 (tf32) or m16n8k16 (f16, bf16).
RUNG_API void multiply_m16n8(float* d, const std::uint32_t* a, const std::uint32_t* b,
                             const float* c, MatrixType type, Place place);

/// Computes sums += a b in f64: mma.sync.m16n8k4, m16n8k8 or m16n8k16, by `depth`.
RUNG_API void multiply_m16n8_f64(double* sums, const double* a, const double* b, int depth,
                                 Place place);

/// Computes d = a b + c for 8-bit integers: mma.sync.m16n8k32.
RUNG_API void multiply_bytes(int* d, const std::uint32_t* a, const std::uint32_t* b, const int* c,
                             bool a_signed, bool b_signed, Place place);

/// Stores matrices (stmatrix.m8n8.x{1,2,4}.b16); the inverse of load_matrix().
RUNG_API void store_matrix(void* row, const std::uint32_t* registers, int count, bool transposed,
                           Place place);

/// Rounds to TF32 (10 mantissa bits) to nearest, ties away from zero (cvt.rna).
RUNG_API float round_to_tf32(float value);
/// Returns the value that a tensor core uses for a float that has not been rounded to TF32.
inline float truncate_to_tf32(float value) {
  return __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, value) & 0xffffe000u);
}

}  // namespace rung::simt
