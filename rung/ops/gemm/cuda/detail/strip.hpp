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
#include "rung/device/ptx_prefetch.hpp"
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

/// The value, of which the compiler does not know that it is the same as before: what is computed
/// from it in a loop is not kept in registers over the loop.
__device__ __forceinline__ int computed_anew(int value) {
#if defined(__CUDACC__)
  asm volatile("" : "+r"(value));
#endif
  return value;
}

/// Whether groups of four that begin at multiples of four lie whole in aligned memory.
template <class T>
__device__ bool has_wide_groups(const View<T, 3>& matrix) {
  return matrix.strides[2] == 1 && matrix.strides[1] % 4 == 0 && matrix.strides[0] % 4 == 0 &&
         is_wide_aligned<std::remove_const_t<T>, 4>(matrix.data);
}

/// `wide`: has_wide_groups(matrix). left: of the row's elements, from `column` on.
template <class T>
__device__ __forceinline__ Pack<std::remove_const_t<T>, 4> load_group(const View<T, 3>& matrix,
                                                                      bool wide, int batch,
                                                                      std::int64_t row,
                                                                      std::int64_t column,
                                                                      std::int64_t left) {
  using Element = std::remove_const_t<T>;
  const Element* const from = &matrix(batch, row, column);
  if (wide && left >= 4) return load_wide<4>(from);
  Pack<Element, 4> group;
#pragma unroll
  for (int i = 0; i < 4; ++i) group[i] = i < left ? from[i * matrix.strides[2]] : zero<Element>();
  return group;
}

/// What a lane finishes of a piece at a time: Groups groups of four neighbours, in rows RowsApart
/// from each other. All of them at each step, so that a warp has more to do than to wait for one
/// group's chain of instructions.
template <class P, int Groups, int RowsApart>
class LaneGroups {
  using Out = typename P::Out;
  using Sum = typename P::Sum;
  static constexpr int count = 4 * Groups;
  const P& p_;
  bool wide_bias_, wide_residual_;

 public:
  using Elements = Pack<Out, 4>[Groups];
  using Sums = Pack<Sum, count>;

  /// C's groups are wide ones.
  explicit __device__ LaneGroups(const P& p)
      : p_(p), wide_bias_(has_wide_groups(p.bias)), wide_residual_(has_wide_groups(p.residual)) {}

  /// Starts loading what takes longest to come: C, else residual.
  __device__ __forceinline__ void load(Elements& early, int batch, std::int64_t row,
                                       std::int64_t column) const {
    if (p_.beta != 0) {
      load(early, p_.c, true, batch, row, column);
    } else if (p_.residual.data != nullptr) {
      load(early, p_.residual, wide_residual_, batch, row, column);
    }
  }

  __device__ __forceinline__ void finish(Sums& values, Elements& early, int batch, std::int64_t row,
                                         std::int64_t column) const {
#pragma unroll
    for (int i = 0; i < count; ++i) values[i] *= p_.alpha;
    if (p_.beta != 0) {
#pragma unroll
      for (int i = 0; i < count; ++i) values[i] += p_.beta * convert<Sum>(early[i / 4][i % 4]);
    }
    if (p_.bias.data != nullptr) {
      Elements bias = {};
      load(bias, p_.bias, wide_bias_, batch, row, column);
      add(values, bias);
    }
    if constexpr (std::is_unsigned_v<Sum>) {
#pragma unroll
      for (int i = 0; i < count; ++i) values[i] = activated<Out>(p_.activation, values[i]);
    } else {
      activate_all<Out>(p_.activation, values);
    }
    if (p_.residual.data != nullptr) {
      if (p_.beta != 0) load(early, p_.residual, wide_residual_, batch, row, column);
      add(values, early);
    }
    store(values, batch, row, column);
  }

 private:
  __device__ __forceinline__ void load(Elements& groups, const View<const Out, 3>& matrix,
                                       bool wide, int batch, std::int64_t row,
                                       std::int64_t column) const {
    const std::int64_t left = p_.n() - column;
#pragma unroll
    for (int i = 0; i < Groups; ++i) {
      const std::int64_t at = row + i * RowsApart;
      if (at < p_.m() && left > 0) groups[i] = load_group(matrix, wide, batch, at, column, left);
    }
  }
  static __device__ __forceinline__ void add(Sums& values, const Elements& groups) {
#pragma unroll
    for (int i = 0; i < count; ++i) values[i] += convert<Sum>(groups[i / 4][i % 4]);
  }
  __device__ __forceinline__ void store(const Sums& values, int batch, std::int64_t row,
                                        std::int64_t column) const {
    const std::int64_t left = p_.n() - column;
#pragma unroll
    for (int i = 0; i < Groups; ++i) {
      const std::int64_t at = row + i * RowsApart;
      if (at >= p_.m() || left <= 0) continue;
      Out* const c = &p_.c(batch, at, column);
      Pack<Out, 4> group;
#pragma unroll
      for (int j = 0; j < 4; ++j) group[j] = convert<Out>(values[4 * i + j]);
      if (left >= 4) {
        store_wide(c, group);
        continue;
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (j < left) c[j] = group[j];
      }
    }
  }
};

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
  // A lane's groups of a piece, of which each row has `groups`.
  constexpr int groups = width / 4;
  constexpr int rows_apart = smaller(32 / groups, StripStage::rows);
  constexpr int lane_groups = StripStage::rows / rows_apart;
  const LaneGroups<P, lane_groups, rows_apart> finisher(p);
  const int lane_row = lane / groups;
  const int lane_column = lane % groups * 4;
  typename LaneGroups<P, lane_groups, rows_apart>::Elements early = {};
#pragma unroll 1
  for (int piece = 0; piece < Columns / width; ++piece) {
    // They arrive while the sums change hands.
    const std::int64_t row = first_row + computed_anew(lane_row);
    const std::int64_t group_column = first_column + piece * width + lane_column;
    if (wide) finisher.load(early, batch, row, group_column);
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
      for (int first = 0; first < StripStage::rows; first += 4) {
#pragma unroll
        for (int i = first; i < first + 4; ++i) {
          if (lane < width && first_row + i < p.m() && column < p.n()) {
            finish(p, batch, first_row + i, column, *at(i, lane));
          }
        }
      }
      continue;
    }
    Pack<Sum, 4 * lane_groups> values;
#pragma unroll
    for (int i = 0; i < lane_groups; ++i) {
      const Pack<Sum, 4> group = load_wide<4>(at(lane_row + i * rows_apart, lane_column));
#pragma unroll
      for (int j = 0; j < 4; ++j) values[4 * i + j] = group[j];
    }
    finisher.finish(values, early, batch, row, group_column);
  }
}

/// Has what the epilogue will read of a tile of C and residual brought to L2, while the tile's products
/// are made. By a warp; `bytes` of an element.
template <class P>
__device__ void prefetch_addends(const P& p, std::int64_t bytes, int batch, int first_row,
                                 int first_column, int rows, int columns) {
  const auto prefetch = [&](const auto& matrix) {
    if (matrix.strides[2] != 1) return;
    const std::int64_t end = smaller<std::int64_t>(first_row + rows, p.m());
    const std::int64_t width = smaller<std::int64_t>(columns, p.n() - first_column) * bytes;
    for (std::int64_t row = first_row + threadIdx.x % 32; row < end; row += 32) {
      const auto* const from = reinterpret_cast<const char*>(matrix.data) +
                               matrix.offset(batch, row, first_column) * bytes;
      for (std::int64_t at = 0; at < width; at += 128) ptx::prefetch_l2(from + at);
    }
  };
  if (p.beta != 0) prefetch(p.c);
  if (p.residual.data != nullptr) prefetch(p.residual);
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
