// SPDX-License-Identifier: Apache-2.0
// Epilogue of the kernels that combine slices of k: four sums to four adjacent elements of C.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/device/activate_all.hpp"
#include "rung/device/tile/epilogue.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// Applies the epilogue to four adjacent elements of a row of C and stores those inside C. Wide:
/// takes_wide_stores<4>(p).
template <class P>
__device__ __forceinline__ void finish_group(const P& p, bool wide, int batch, std::int64_t row,
                             std::int64_t column, const Pack<typename P::Sum, 4>& sums) {
  using Out = typename P::Out;
  using Sum = typename P::Sum;
  const std::int64_t left = p.n() - column;
  if (row >= p.m() || left <= 0) return;
  const bool whole = wide && left >= 4;
  Out* const c = &p.c(batch, row, column);
  Pack<Sum, 4> values;
#pragma unroll
  for (int i = 0; i < 4; ++i) values[i] = p.alpha * sums[i];
  if (p.beta != 0) {
    Pack<Out, 4> old;
    if (whole) {
      old = load_wide<4>(c);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) old[i] = i < left ? c[i * p.c.strides[2]] : zero<Out>();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) values[i] += p.beta * convert<Sum>(old[i]);
  }
  if (p.bias.data != nullptr) {
    const Out* const bias = &p.bias(batch, row, column);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i < left) values[i] += convert<Sum>(bias[i * p.bias.strides[2]]);
    }
  }
  if constexpr (std::is_unsigned_v<Sum>) {
#pragma unroll
    for (int i = 0; i < 4; ++i) values[i] = activated<Out>(p.activation, values[i]);
  } else {
    activate_all<Out>(p.activation, values);
  }
  if (p.residual.data != nullptr) {
    const Out* const residual = &p.residual(batch, row, column);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i < left) values[i] += convert<Sum>(residual[i * p.residual.strides[2]]);
    }
  }
  const Pack<Out, 4> finished = convert<Out>(values);
  if (whole) {
    store_wide(c, finished);
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (i < left) c[i * p.c.strides[2]] = finished[i];
  }
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
