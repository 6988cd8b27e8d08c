// SPDX-License-Identifier: Apache-2.0
// Tensor core instructions: ldmatrix, mma.sync and the rounding to tf32.
//
// Registers follow the PTX manual ("Warp-level matrix fragments"). With group = lane / 4 and
// t = lane % 4:
//   C, D  m16n8   c[0..1]: row group, columns 2t, 2t+1;  c[2..3]: row group + 8
//   A     m16k16  a[0]: row group, columns 2t, 2t+1; a[1]: row group + 8; a[2], a[3]: columns + 8
//   B     k16n8   b[0]: rows 2t, 2t+1 of column group; b[1]: rows + 8
//   A     m16k8   a[0]: (group, t); a[1]: (group + 8, t); a[2], a[3]: column t + 4     (tf32)
//   B     k8n8    b[0]: (t, group); b[1]: (t + 4, group)                              (tf32)
//   A     m16k32  a[0]: row group, columns 4t to 4t+3; a[1]: row group + 8; a[2], a[3]: + 16
//   B     k32n8   b[0]: rows 4t to 4t+3 of column group; b[1]: rows + 16         (8-bit integers)
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/core/dtype.hpp"
#include "rung/device/device.hpp"

#if !defined(__CUDACC__)
#include "rung/simt/matrix.hpp"
#endif

namespace rung::inline RUNG_TARGET::ptx {

/// True for the element types of mma_m16n8k32(): std::int8_t and std::uint8_t.
template <class T>
inline constexpr bool is_byte_integer =
    std::is_same_v<T, std::int8_t> || std::is_same_v<T, std::uint8_t>;

#if defined(__CUDACC__)

/// Loads Count (1, 2, 4) matrices of 8 rows of 16 bytes from shared memory. Lane 8 i + r passes the
/// address of row r of matrix i.
template <int Count, bool Transposed = false>
__device__ __forceinline__ void load_matrix(std::uint32_t (&to)[Count], const void* row) {
  static_assert(Count == 1 || Count == 2 || Count == 4);
  const std::uint32_t address = shared_address(row);
  if constexpr (Count == 1 && !Transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(to[0])
                 : "r"(address)
                 : "memory");
  } else if constexpr (Count == 1) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(to[0])
                 : "r"(address)
                 : "memory");
  } else if constexpr (Count == 2 && !Transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1])
                 : "r"(address)
                 : "memory");
  } else if constexpr (Count == 2) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1])
                 : "r"(address)
                 : "memory");
  } else if constexpr (!Transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  }
}

namespace device_detail {
/// Shape and types of the mma instruction for operands of type T.
template <class T>
struct MmaInstruction;
template <>
struct MmaInstruction<f16> {
  static constexpr char name[] = "m16n8k16.row.col.f32.f16.f16.f32";
};
template <>
struct MmaInstruction<bf16> {
  static constexpr char name[] = "m16n8k16.row.col.f32.bf16.bf16.f32";
};
template <>
struct MmaInstruction<float> {
  static constexpr char name[] = "m16n8k8.row.col.f32.tf32.tf32.f32";
};
/// Operand types within the instruction's name.
template <class A, class B>
inline constexpr char byte_integers[] = {
    '.', std::is_signed_v<A> ? 's' : 'u', '8', '.', std::is_signed_v<B> ? 's' : 'u', '8', 0};
}  // namespace device_detail

/// Computes d += a b, with 4 sums in d: m16n8k16 for f16 and bf16, m16n8k8 for float, with a and b
/// rounded by to_tf32().
template <class T>
__device__ __forceinline__ void mma(float* d, const std::uint32_t (&a)[4],
                                    const std::uint32_t (&b)[2]) {
  asm("mma.sync.aligned.%10 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]),
        "C"(device_detail::MmaInstruction<T>::name));
}

/// Computes d = a b + c for 16 x 8 x 32 elements of 8-bit integers A and B, four per register; sums
/// wrap.
template <class A, class B = A>
__device__ __forceinline__ void mma_m16n8k32(int (&d)[4], const std::uint32_t (&a)[4],
                                             const std::uint32_t (&b)[2], const int (&c)[4]) {
  static_assert(is_byte_integer<A> && is_byte_integer<B>);
  asm("mma.sync.aligned.m16n8k32.row.col.s32%14.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%10, %11, %12, %13};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]),
        "r"(c[2]), "r"(c[3]), "C"((device_detail::byte_integers<A, B>)));
}

/// Rounds to tf32, to nearest, ties away from zero; tensor cores would truncate.
__device__ __forceinline__ std::uint32_t to_tf32(float value) {
  std::uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}

#else

template <int Count, bool Transposed = false>
void load_matrix(std::uint32_t (&to)[Count], const void* row,
                 simt::Place place = simt::Place::current()) {
  static_assert(Count == 1 || Count == 2 || Count == 4);
  simt::load_matrix(to, Count, Transposed, row, place);
}
template <class T>
void mma(float* d, const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
         simt::Place place = simt::Place::current()) {
  constexpr auto type = std::is_same_v<T, f16>    ? simt::MatrixType::f16
                        : std::is_same_v<T, bf16> ? simt::MatrixType::bf16
                                                  : simt::MatrixType::tf32;
  static_assert(type != simt::MatrixType::tf32 || std::is_same_v<T, float>);
  simt::multiply_m16n8(d, a, b, d, type, place);
}
template <class A, class B = A>
void mma_m16n8k32(int (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                  const int (&c)[4], simt::Place place = simt::Place::current()) {
  static_assert(is_byte_integer<A> && is_byte_integer<B>);
  simt::multiply_bytes(d, a, b, c, std::is_signed_v<A>, std::is_signed_v<B>, place);
}
inline std::uint32_t to_tf32(float value) { return __float_as_uint(simt::round_to_tf32(value)); }

#endif

}  // namespace rung::inline RUNG_TARGET::ptx
