// SPDX-License-Identifier: Apache-2.0
// The epilogue of tensor-core kernels. The sums of a warp are 16 rows of C, distributed over its
// lanes as D of mma m16n8 and of wgmma: with group = lane / 4 and t = lane % 4, sums[i] is in row
// group + 8 (i / 2 % 2), column 8 (i / 4) + 2 t + i % 2. The warp transposes pieces of 16 x 32
// through 2 KiB of shared memory, so that a lane finishes four adjacent columns and the lanes of a
// row access contiguous memory.
//
//   finish_strip<Columns>(p, stage, matrix, first_row, first_column,
//                         [&](int i) { return sums[i]; });
//
// p is a product as in epilogue.hpp.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/device/activate_all.hpp"
#include "rung/device/ptx/prefetch.hpp"
#include "rung/device/swizzled_tile.hpp"
#include "rung/device/tile/epilogue.hpp"

namespace rung::inline RUNG_TARGET {

/// Shared memory of a warp for one piece of its strip; aligned to the swizzle's pattern.
struct alignas(1024) StripStage {
  static constexpr int rows = 16;
  static constexpr int columns = 32;
  unsigned char bytes[rows * columns * 4];
};

/// Returns a 0 that is opaque to the compiler: values computed from it in a loop are not hoisted
/// out of the loop, which would occupy registers.
__device__ __forceinline__ int zero_anew() {
  int zero = 0;
#if defined(__CUDACC__)
  asm volatile("" : "+r"(zero));
#endif
  return zero;
}

/// Returns the calling thread's lane, opaque to the compiler: addresses derived from it are not
/// kept in registers during the main loop.
__device__ __forceinline__ int lane_anew() {
  return static_cast<int>(threadIdx.x) % 32 + zero_anew();
}

/// Returns whether every group of four columns that begins at a multiple of four is contiguous and
/// aligned for vector access.
template <class T>
__device__ bool has_wide_groups(const View<T, 3>& matrix) {
  return matrix.strides[2] == 1 && matrix.strides[1] % 4 == 0 && matrix.strides[0] % 4 == 0 &&
         is_wide_aligned<std::remove_const_t<T>, 4>(matrix.data);
}

/// A lane's elements of a piece of 16 x Width elements: Width / 8 groups of four if C has wide
/// groups, else elements of one column. Each step processes all of them, for instruction-level
/// parallelism.
template <class P, int Width>
class LaneShare {
  using Out = typename P::Out;
  using Sum = typename P::Sum;
  static constexpr int count = StripStage::rows * Width / 32;
  static constexpr int groups_along = Width / 4;
  static constexpr int rows_apart = 32 / groups_along;  // rows between a lane's groups
  static constexpr int lines = count / 4;

  const P& p_;
  bool wide_, wide_bias_, wide_residual_;

 public:
  /// Elements as loaded, not unpacked (two 16-bit elements per register): unpacking would wait for
  /// each load, so that loads would not overlap.
  struct Elements {
    RawPack<Out, 4> line[lines];
  };
  struct LanePosition {
    int batch;
    std::int64_t row, column;  // of the piece
    int lane;

    [[nodiscard]] __device__ int wide_row(int line) const {
      return lane / groups_along + line * rows_apart;
    }
    [[nodiscard]] __device__ int wide_column() const { return lane % groups_along * 4; }
    [[nodiscard]] __device__ int row_of(int i) const { return lane / Width + i * (32 / Width); }
    [[nodiscard]] __device__ int column_of() const { return lane % Width; }
  };

  explicit __device__ LaneShare(const P& p)
      : p_(p),
        wide_(has_wide_groups(p.c)),
        wide_bias_(wide_ && has_wide_groups(p.bias)),
        wide_residual_(wide_ && has_wide_groups(p.residual)) {}

  /// Starts loading C if beta is not 0, else the residual.
  __device__ __forceinline__ void load(Elements& early, const LanePosition& place) const {
    if (p_.beta != 0) {
      load(early, p_.c, wide_, place);
    } else if (p_.residual.data != nullptr) {
      load(early, p_.residual, wide_residual_, place);
    }
  }

  /// Finishes and stores the lane's elements. sums(row, column) returns a pointer to a sum of the
  /// piece; `early` holds the elements that load() has started to load.
  template <class Sums>
  __device__ __forceinline__ void finish(const Sums& sums, Elements& early,
                                         const LanePosition& place) const {
    Pack<Sum, count> values;
    if (wide_) {
#pragma unroll
      for (int line = 0; line < lines; ++line) {
        const Pack<Sum, 4> four = load_wide<4>(sums(place.wide_row(line), place.wide_column()));
#pragma unroll
        for (int i = 0; i < 4; ++i) values[4 * line + i] = four[i];
      }
    } else {
#pragma unroll
      for (int i = 0; i < count; ++i) values[i] = *sums(place.row_of(i), place.column_of());
    }
#pragma unroll
    for (int i = 0; i < count; ++i) values[i] *= p_.alpha;
    if (p_.beta != 0) {
      for_each(early, [&](int i, Out c) { values[i] += p_.beta * convert<Sum>(c); });
    }
    if (p_.bias.data != nullptr) {
      Elements bias = {};
      load(bias, p_.bias, wide_bias_, place);
      for_each(bias, [&](int i, Out value) { values[i] += convert<Sum>(value); });
    }
    if constexpr (std::is_unsigned_v<Sum>) {
#pragma unroll
      for (int i = 0; i < count; ++i) values[i] = activated<Out>(p_.activation, values[i]);
    } else {
      activate_all<Out>(p_.activation, values);
    }
    if (p_.residual.data != nullptr) {
      if (p_.beta != 0) load(early, p_.residual, wide_residual_, place);
      for_each(early, [&](int i, Out value) { values[i] += convert<Sum>(value); });
    }
    store(convert<Out>(values), place);
  }

 private:
  /// Calls body(i, element i) for all elements.
  template <class Body>
  static __device__ __forceinline__ void for_each(const Elements& elements, const Body& body) {
#pragma unroll
    for (int line = 0; line < lines; ++line) {
      const Pack<Out, 4> four = unpack(elements.line[line]);
#pragma unroll
      for (int i = 0; i < 4; ++i) body(4 * line + i, four[i]);
    }
  }

  __device__ __forceinline__ void load(Elements& elements, const View<const Out, 3>& matrix,
                                       bool wide, const LanePosition& place) const {
    if (wide_) {
      const std::int64_t at_column = place.column + place.wide_column();
      const std::int64_t left = p_.n() - at_column;
      const std::int64_t first = place.row + place.wide_row(0);
      std::int64_t at = matrix.offset(place.batch, first, at_column);
#pragma unroll
      for (int line = 0; line < lines; ++line, at += rows_apart * matrix.strides[1]) {
        if (line * rows_apart >= p_.m() - first || left <= 0) continue;
        const Out* const from = matrix.data + at;
        if (wide && left >= 4) {
          elements.line[line] = load_raw<4>(from);
          continue;
        }
        Pack<Out, 4> four;
#pragma unroll
        for (int i = 0; i < 4; ++i) four[i] = i < left ? from[i * matrix.strides[2]] : zero<Out>();
        elements.line[line] = raw(four);
      }
      return;
    }
    const std::int64_t first = place.row + place.row_of(0);
    const std::int64_t rows = place.column + place.column_of() < p_.n() ? p_.m() - first : 0;
    std::int64_t at = matrix.offset(place.batch, first, place.column + place.column_of());
#pragma unroll
    for (int line = 0; line < lines; ++line) {
      Pack<Out, 4> four;
#pragma unroll
      for (int i = 0; i < 4; ++i, at += (32 / Width) * matrix.strides[1]) {
        four[i] = (4 * line + i) * (32 / Width) < rows ? matrix.data[at] : zero<Out>();
      }
      elements.line[line] = raw(four);
    }
  }

  __device__ __forceinline__ void store(const Pack<Out, count>& elements,
                                        const LanePosition& place) const {
    if (wide_) {
      const std::int64_t at_column = place.column + place.wide_column();
      const std::int64_t left = p_.n() - at_column;
      const std::int64_t first = place.row + place.wide_row(0);
      std::int64_t at = p_.c.offset(place.batch, first, at_column);
#pragma unroll
      for (int line = 0; line < lines; ++line, at += rows_apart * p_.c.strides[1]) {
        if (line * rows_apart >= p_.m() - first || left <= 0) continue;
        Out* const c = p_.c.data + at;
        Pack<Out, 4> group;
#pragma unroll
        for (int i = 0; i < 4; ++i) group[i] = elements[4 * line + i];
        if (left >= 4) {
          store_wide(c, group);
          continue;
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (i < left) c[i] = group[i];
        }
      }
      return;
    }
    const std::int64_t first = place.row + place.row_of(0);
    const std::int64_t rows = place.column + place.column_of() < p_.n() ? p_.m() - first : 0;
    std::int64_t at = p_.c.offset(place.batch, first, place.column + place.column_of());
#pragma unroll
    for (int i = 0; i < count; ++i, at += (32 / Width) * p_.c.strides[1]) {
      if (i * (32 / Width) < rows) p_.c.data[at] = elements[i];
    }
  }
};

/// Finishes a warp's 16 x Columns elements of C from (first_row, first_column) on; sums(i) returns
/// the i-th of the calling lane's Columns / 2 sums. All lanes call it. The loop over pieces is
/// rolled: unrolled, each piece would have its own copy of every activation. Width: columns of a
/// piece; 16 for kernels whose sums leave few registers.
template <int Columns, int Width = StripStage::columns, class P, class Sums>
__device__ __forceinline__ void finish_strip(const P& p, StripStage& stage, int batch,
                                             int first_row, int first_column, const Sums& sums) {
  using Sum = typename P::Sum;
  static_assert(sizeof(Sum) == 4);
  constexpr int width = Width < Columns ? Width : Columns;
  static_assert(Columns % width == 0 && width % 8 == 0 && width <= StripStage::columns);
  const auto at = [&](int row, int column) {
    return reinterpret_cast<Sum*>(stage.bytes +
                                  swizzled<Swizzle::bytes_128>(row * 128 + column * 4));
  };
  using Share = LaneShare<P, width>;
  const Share share(p);
  typename Share::Elements early = {};
#pragma unroll 1
  for (int piece = 0; piece < Columns / width; ++piece) {
    // The loads of `early` overlap with the exchange of sums through shared memory.
    const int zero = zero_anew();
    const int lane = lane_anew();
    const typename Share::LanePosition place{batch + zero, first_row + zero,
                                             first_column + piece * width, lane};
    share.load(early, place);
    __syncwarp();  // all lanes have read the previous piece
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
    share.finish(at, early, place);
  }
}

/// Prefetches a tile of C and of the residual, if the epilogue reads them, into L2 during the main
/// loop. One warp calls it; an element has `bytes` bytes. Loops are rolled, as the warp has few
/// registers.
template <class P>
__device__ __forceinline__ void prefetch_addends(const P& p, int bytes, int batch, int first_row,
                                                 int first_column, int rows, int columns) {
  const auto prefetch = [&](const auto& matrix) {
    if (matrix.strides[2] != 1) return;
    const auto down = static_cast<int>(smaller<std::int64_t>(rows, p.m() - first_row));
    const int width =
        static_cast<int>(smaller<std::int64_t>(columns, p.n() - first_column)) * bytes;
#pragma unroll 1
    for (int row = static_cast<int>(threadIdx.x) % 32; row < down; row += 32) {
      const auto* const from = reinterpret_cast<const char*>(matrix.data) +
                               matrix.offset(batch, first_row + row, first_column) * bytes;
#pragma unroll 1
      for (int at = 0; at < width; at += 128) ptx::prefetch_l2(from + at);
    }
  };
  if (p.beta != 0) prefetch(p.c);
  if (p.residual.data != nullptr) prefetch(p.residual);
}

}  // namespace rung::inline RUNG_TARGET
