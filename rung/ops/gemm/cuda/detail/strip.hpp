// SPDX-License-Identifier: Apache-2.0
// The epilogue of the tensor-core rungs. The sums of a warp are 16 rows of C, scattered over its
// lanes as the instructions leave them (D of mma m16n8 and of wgmma alike): with group = lane / 4
// and t = lane % 4, sums[i] is row group + 8 (i / 2 % 2), column 8 (i / 4) + 2 t + i % 2. They go
// to C by way of 2 KiB of shared memory per warp, in pieces of 16 x 32, so that a lane finishes
// four neighbours and a row's lanes touch contiguous memory.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/device/activate_all.hpp"
#include "rung/device/swizzled_tile.hpp"
#include "rung/ops/gemm/cuda/detail/epilogue.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// What a warp has of shared memory for its strip. Aligned, because the pieces are swizzled.
struct alignas(1024) StripStage {
  static constexpr int rows = 16;
  static constexpr int columns = 32;
  unsigned char bytes[rows * columns * 4];
};

/// The product with C, and bias, of another type: the kernels of 16-bit operands learn at run time
/// whether C is f32, instead of being compiled twice.
template <class Out, class P>
__device__ Product<typename P::In, Out> with_output(const P& p) {
  const auto retyped = [](auto& to, const auto& from) {
    to.data = reinterpret_cast<decltype(to.data)>(from.data);
    for (int axis = 0; axis < 3; ++axis) {
      to.shape[axis] = from.shape[axis];
      to.strides[axis] = from.strides[axis];
    }
  };
  Product<typename P::In, Out> q{p.a, p.b, {}, {}, p.alpha, p.beta, p.activation, {}};
  retyped(q.c, p.c);
  retyped(q.bias, p.bias);
  retyped(q.residual, p.residual);
  return q;
}
/// finish(the product), with C of T where the result is narrow and T has 16 bits, else as it is.
template <class T, class P, class Finish>
__device__ __forceinline__ void with_output_type(const P& p, bool narrow, const Finish& finish) {
  if constexpr (sizeof(T) == 2) {
    if (narrow) return finish(with_output<T>(p));
  }
  finish(p);
}

/// Four neighbours along a row of C, as far as they exist. Wide: takes_wide_stores<4>(p).
template <class P>
__device__ void finish_group(const P& p, bool wide, int batch, std::int64_t row,
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

/// Finishes a warp's 16 x Columns elements of C from (first_row, first_column) on; sums(i) gives
/// the calling lane's i-th of Columns / 2. All lanes call. The loop over pieces is rolled:
/// unrolled, each would carry its own copy of every activation.
template <int Columns, class P, class Sums>
__device__ __forceinline__ void finish_strip(const P& p, StripStage& stage, int batch,
                                             std::int64_t first_row, std::int64_t first_column,
                                             const Sums& sums) {
  using Sum = typename P::Sum;
  static_assert(sizeof(Sum) == 4);
  constexpr int width = StripStage::columns < Columns ? StripStage::columns : Columns;
  static_assert(Columns % width == 0 && width % 8 == 0);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool wide = takes_wide_stores<4>(p);
  const auto at = [&](int row, int column) {
    return reinterpret_cast<Sum*>(stage.bytes +
                                  swizzled<Swizzle::bytes_128>(row * 128 + column * 4));
  };
#pragma unroll 1
  for (int piece = 0; piece < Columns / width; ++piece) {
    __syncwarp();  // the piece before has been read
#pragma unroll
    for (int candidate = 0; candidate < Columns / width; ++candidate) {
      if (candidate != piece) continue;
#pragma unroll
      for (int i = 0; i < width / 2; i += 2) {
        const int row = lane / 4 + 8 * (i / 2 % 2);
        const int column = 8 * (i / 4) + 2 * (lane % 4);
        const int from = candidate * (width / 2) + i;
        const Pack<Sum, 2> pair{{static_cast<Sum>(sums(from)), static_cast<Sum>(sums(from + 1))}};
        store_wide(at(row, column), pair);
      }
    }
    __syncwarp();
    if (!wide) {
      // A column per lane: stores that are single ones are at least contiguous.
      const std::int64_t column = first_column + piece * width + lane;
#pragma unroll 1
      for (int row = 0; row < StripStage::rows; row += 4) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (lane < width && first_row + row + i < p.m() && column < p.n()) {
            finish(p, batch, first_row + row + i, column, *at(row + i, lane));
          }
        }
      }
      continue;
    }
    constexpr int groups = width / 4;
#pragma unroll 1
    for (int i = lane; i < StripStage::rows * groups; i += 32) {
      const int row = i / groups;
      const int column = i % groups * 4;
      finish_group(p, wide, batch, first_row + row, first_column + piece * width + column,
                   load_wide<4>(at(row, column)));
    }
  }
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
