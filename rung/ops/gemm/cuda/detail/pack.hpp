// SPDX-License-Identifier: Apache-2.0
// pack: copies operands into a layout that TMA and vector loads support.
#pragma once

#include <cstdint>

#include "rung/core/view.hpp"
#include "rung/device/load_anywhere.hpp"
#include "rung/ops/gemm/shared/cuda/product.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

constexpr std::int64_t most_packed_bytes = std::int64_t{1} << 30;

/// Returns the pitch, in elements, of lines of `length` elements that begin at multiples of 128
/// bytes.
template <class T>
constexpr std::int64_t packed_pitch(std::int64_t length) {
  constexpr std::int64_t line = 128 / sizeof(T);
  return tiles_of(length, line) * line;
}

/// Loads elements [at, at + N) of a line, `stride` apart; elements from `length` on are zero.
template <int N, class T>
__device__ __forceinline__ RawPack<T, N> load_line(const T* line, std::int64_t stride,
                                                   std::int64_t at, std::int64_t length) {
  if (stride == 1) return load_anywhere<N>(line, at, length);
  Pack<T, N> values;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    values[i] = at + i < length ? line[(at + i) * stride] : zero<T>();
  }
  return raw(values);
}

/// Copies `from` (matrices x lines x along, any strides) to zero-padded lines of packed_pitch()
/// elements at `to`, and returns the view of the copy. `to` must be large enough and aligned to 16
/// bytes. One launch, at 0.4 (8-bit types) to 0.6 of an H100's memory bandwidth. T: u8, f16, bf16
/// or f32.
template <class T>
View<const T, 3> pack(Context& context, const View<const T, 3>& from, T* to);

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
