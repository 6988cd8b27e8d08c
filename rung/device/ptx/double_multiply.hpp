// SPDX-License-Identifier: Apache-2.0
// Tensor cores in double precision: mma.sync of f64.
//
// Registers as in ptx/matrix.hpp, one number each. With group = lane / 4 and t = lane % 4:
//   C, D  m16n8  c[0..1]: row group, columns 2t, 2t+1;  c[2..3]: row group + 8
//   A     m16k8  a[0]: (group, t); a[1]: (group + 8, t); a[2], a[3]: column t + 4
//         m16k4: its first half; m16k16: a[4], a[5]: column t + 8; a[6], a[7]: column t + 12, too
//   B     k8n8   b[0]: (t, group); b[1]: (t + 4, group)
//         k4n8: its first half; k16n8: b[2]: (t + 8, group); b[3]: (t + 12, group), too
#pragma once

#include "rung/device/device.hpp"

#if !defined(__CUDACC__)
#include "rung/simt/matrix.hpp"
#endif

namespace rung::inline RUNG_TARGET::ptx {

#if defined(__CUDACC__)

/// Computes sums += a b for 16 x 8 x 4 elements: one instruction on compute capability 9.0 and
/// newer, two of 8 x 8 x 4 before.
__device__ __forceinline__ void mma_m16n8k4_f64(double (&sums)[4], const double (&a)[2],
                                                const double& b) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : "+d"(sums[0]), "+d"(sums[1]), "+d"(sums[2]), "+d"(sums[3])
      : "d"(a[0]), "d"(a[1]), "d"(b));
#else
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(sums[2 * i]), "+d"(sums[2 * i + 1])
        : "d"(a[i]), "d"(b));
  }
#endif
}

/// Computes sums += a b for 16 x 8 x 8 elements: one instruction on compute capability 9.0 and
/// newer, four of 8 x 8 x 4 before.
__device__ __forceinline__ void mma_m16n8k8_f64(double (&sums)[4], const double (&a)[4],
                                                const double (&b)[2]) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+d"(sums[0]), "+d"(sums[1]), "+d"(sums[2]), "+d"(sums[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(sums[i % 2 * 2]), "+d"(sums[i % 2 * 2 + 1])
        : "d"(a[i]), "d"(b[i / 2]));
  }
#endif
}

/// Computes sums += a b for 16 x 8 x 16 elements: one instruction on compute capability 9.0 and
/// newer, eight of 8 x 8 x 4 before.
__device__ __forceinline__ void mma_m16n8k16_f64(double (&sums)[4], const double (&a)[8],
                                                 const double (&b)[4]) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
      "{%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
      : "+d"(sums[0]), "+d"(sums[1]), "+d"(sums[2]), "+d"(sums[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]),
        "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
#else
  mma_m16n8k8_f64(sums, {a[0], a[1], a[2], a[3]}, {b[0], b[1]});
  mma_m16n8k8_f64(sums, {a[4], a[5], a[6], a[7]}, {b[2], b[3]});
#endif
}

#else

inline void mma_m16n8k4_f64(double (&sums)[4], const double (&a)[2], const double& b,
                            simt::Place place = simt::Place::current()) {
  simt::multiply_m16n8_f64(sums, a, &b, 4, place);
}

inline void mma_m16n8k8_f64(double (&sums)[4], const double (&a)[4], const double (&b)[2],
                            simt::Place place = simt::Place::current()) {
  simt::multiply_m16n8_f64(sums, a, b, 8, place);
}

inline void mma_m16n8k16_f64(double (&sums)[4], const double (&a)[8], const double (&b)[4],
                             simt::Place place = simt::Place::current()) {
  simt::multiply_m16n8_f64(sums, a, b, 16, place);
}

#endif

}  // namespace rung::inline RUNG_TARGET::ptx
