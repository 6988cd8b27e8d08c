// SPDX-License-Identifier: Apache-2.0
// Epilogue of four sums at a time, whose loads of C, bias and residual are in flight together.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/device/activate_all.hpp"
#include "rung/device/tile/epilogue.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// Applies the epilogue to four elements of C, adjacent along an axis (1: in a column, 2: in a
/// row), and stores those inside C. Wide: takes_wide_stores<4>(p), for axis 2 only.
template <int Axis = 2, class P>
__device__ __forceinline__ void finish_group(const P& p, bool wide, int batch, std::int64_t row,
                                             std::int64_t column,
                                             const Pack<typename P::Sum, 4>& sums) {
  using Out = typename P::Out;
  using Sum = typename P::Sum;
  const std::int64_t left = Axis == 2 ? p.n() - column : p.m() - row;
  if (row >= p.m() || column >= p.n()) return;
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
      for (int i = 0; i < 4; ++i) old[i] = i < left ? c[i * p.c.strides[Axis]] : zero<Out>();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) values[i] += p.beta * convert<Sum>(old[i]);
  }
  if (p.bias.data != nullptr) {
    const Out* const bias = &p.bias(batch, row, column);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i < left) values[i] += convert<Sum>(bias[i * p.bias.strides[Axis]]);
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
      if (i < left) values[i] += convert<Sum>(residual[i * p.residual.strides[Axis]]);
    }
  }
  const Pack<Out, 4> finished = convert<Out>(values);
  if (whole) {
    store_wide(c, finished);
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (i < left) c[i * p.c.strides[Axis]] = finished[i];
  }
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
