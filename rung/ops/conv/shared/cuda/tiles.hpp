// SPDX-License-Identifier: Apache-2.0
// Building blocks of the kernels that gather the operands of a product into shared memory: 256
// threads, sums in registers, strips of both operands in two stages of shared memory.
//
// The position of an operand's element k is looked up in a table of 256 entries, which the block
// computes together, one entry per thread: this amortizes the three divisions of decoding k.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/device/load.hpp"
#include "rung/device/shared.hpp"
#include "rung/device/take_axis.hpp"
#include "rung/ops/conv/shared/phases.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

using conv_layer::Gathered;
using conv_layer::is_divided;
using conv_layer::SourceAxis;

constexpr int block_threads = 256;
constexpr int table_entries = block_threads;

/// Position outside of every image, whatever offset is added.
constexpr int outside = -(1 << 30);
/// Upper bound of extents, paddings and spans of filters.
constexpr std::int64_t max_place = 1 << 28;

/// Decoded index of k: a term (a channel and a tap) or a pixel.
struct Entry {
  std::int64_t image;  // offset of the element from its pixel's, or term's, start
  std::int64_t other;  // offset in the other operand; -1: k is out of range
  int d, h, v;         // offsets along the axes
  int unused;
};
constexpr Entry no_entry{0, -1, outside, outside, outside, 0};

/// Split-K of a small layer: the blocks of each slice sum part of the terms and store partial sums
/// instead of y.
struct TermSlices {
  std::int64_t count = 1;
  std::int64_t elements = 0;  // from one slice's sums to the next
};
/// Terms of a block: whole steps of its tile. May be empty for the last slices.
struct TermRange {
  std::int64_t begin, end;
};
__device__ __forceinline__ TermRange terms_of_block(const TermSlices& slices, std::int64_t terms,
                                                    int depth) {
  if (slices.count == 1) return {0, terms};
  const std::int64_t slice = blockIdx.z % static_cast<unsigned>(slices.count);
  const std::int64_t share = ceil_div(ceil_div(terms, depth), slices.count) * depth;
  const std::int64_t begin = smaller(slice * share, terms);
  return {begin, smaller(begin + share, terms)};
}

/// Raw memory for a layer in shared memory, whose variables cannot have constructors.
struct alignas(16) PhasePlace {
  unsigned char bytes[sizeof(Gathered)];
};
/// Returns the phase that blockIdx.z / slices.count selects, computed once per block into
/// Layout::phase in shared memory; the layer itself if it has no phases.
template <class T, class Layout, bool Phases>
__device__ __forceinline__ const Gathered& phase_of_block(const Gathered& g,
                                                          const TermSlices& slices) {
  if constexpr (Phases) {
    auto& phase = *reinterpret_cast<Gathered*>(shared<Layout>().phase.bytes);
    if (threadIdx.x == 0) {
      phase =
          conv_layer::phase_layer(g, blockIdx.z / static_cast<unsigned>(slices.count), sizeof(T),
                                  slices.count > 1 ? sizeof(Accumulator<T>) : sizeof(T));
    }
    __syncthreads();
    return phase;
  } else {
    return g;
  }
}

/// Tile of Rows x Columns in steps of Depth k. Swapped: adjacent lanes have adjacent rows instead
/// of columns, because the result has contiguous rows.
///
/// A step takes at least the latency of its loads: smaller tiles, with fewer multiply-adds per k,
/// have longer steps.
template <int Rows, int Columns, bool Swapped, int Depth = 8>
struct Shape {
  static constexpr int rows = Rows;
  static constexpr int columns = Columns;
  static constexpr int depth = Depth;
  static constexpr bool swapped = Swapped;
  static constexpr int thread_rows = Rows / 16;
  static constexpr int thread_columns = Columns / 16;
  static constexpr int row_slots = (Rows * depth + block_threads - 1) / block_threads;
  static constexpr int column_slots = Columns * depth / block_threads;

  static __device__ __forceinline__ int row_lane() {
    return static_cast<int>(Swapped ? threadIdx.x % 16 : threadIdx.x / 16);
  }
  static __device__ __forceinline__ int column_lane() {
    return static_cast<int>(Swapped ? threadIdx.x / 16 : threadIdx.x % 16);
  }
  /// Returns the i-th index of a lane; indices are in groups of four, for vector loads from shared
  /// memory.
  template <int Count>
  static __device__ __forceinline__ int index_of(int lane, int i) {
    if constexpr (Count % 4 == 0) return i / 4 * 64 + lane * 4 + i % 4;
    return lane * Count + i;
  }
  static __device__ __forceinline__ int row(int i) { return index_of<thread_rows>(row_lane(), i); }
  static __device__ __forceinline__ int column(int j) {
    return index_of<thread_columns>(column_lane(), j);
  }
};

/// Element of a strip that a thread loads. Adjacent lanes load adjacent k, or adjacent rows or
/// columns, whichever are contiguous.
struct Loaded {
  int at;
  int k;
};
template <bool ByK, int Extent, int Depth>
__device__ __forceinline__ Loaded loaded(int slot) {
  const int i = static_cast<int>(threadIdx.x) + slot * block_threads;
  if constexpr (ByK) return {i / Depth, i % Depth};
  return {i % Extent, i / Extent};
}

/// Two stages of the strips of both operands.
template <class Sum, class S>
struct Strips {
  alignas(16) Sum row[2][S::depth][S::rows + 4];
  alignas(16) Sum column[2][S::depth][S::columns + 4];
};
template <class Sum, class S>
struct TabledStrips : Strips<Sum, S> {
  Entry table[table_entries];
};

/// Stores the elements that a thread has loaded for its slots of both strips to shared memory.
template <bool RowsByK, bool ColumnsByK, class S, class Sum>
__device__ __forceinline__ void keep_strips(Strips<Sum, S>& strips, int stage,
                                            const Sum (&rows)[S::row_slots],
                                            const Sum (&columns)[S::column_slots]) {
#pragma unroll
  for (int slot = 0; slot < S::row_slots; ++slot) {
    const Loaded one = loaded<RowsByK, S::rows, S::depth>(slot);
    if (one.at < S::rows && one.k < S::depth) strips.row[stage][one.k][one.at] = rows[slot];
  }
#pragma unroll
  for (int slot = 0; slot < S::column_slots; ++slot) {
    const Loaded one = loaded<ColumnsByK, S::columns, S::depth>(slot);
    strips.column[stage][one.k][one.at] = columns[slot];
  }
}

template <int Count, class Sum>
__device__ __forceinline__ void read_strip(const Sum* strip, int lane, Sum (&to)[Count]) {
  if constexpr (Count % 4 == 0) {
#pragma unroll
    for (int i = 0; i < Count; i += 4) {
      const Pack<Sum, 4> four = load_wide<4>(strip + i * 16 + lane * 4);
#pragma unroll
      for (int j = 0; j < 4; ++j) to[i + j] = four[j];
    }
  } else {
#pragma unroll
    for (int i = 0; i < Count; ++i) to[i] = strip[lane * Count + i];
  }
}

/// Adds the product of a stage's strips to sums, as one outer product per k.
template <class S, class Sum>
__device__ __forceinline__ void multiply_strips(const Strips<Sum, S>& strips, int stage,
                                                Sum (&sums)[S::thread_rows][S::thread_columns]) {
#pragma unroll 8
  for (int i = 0; i < S::depth; ++i) {
    Sum left[S::thread_rows];
    Sum right[S::thread_columns];
    read_strip(strips.row[stage][i], S::row_lane(), left);
    read_strip(strips.column[stage][i], S::column_lane(), right);
#pragma unroll
    for (int a = 0; a < S::thread_rows; ++a) {
#pragma unroll
      for (int b = 0; b < S::thread_columns; ++b) sums[a][b] += left[a] * right[b];
    }
  }
}

/// Returns whether positions and channels fit in 32 bits.
inline bool has_small_places(const Gathered& g) {
  constexpr std::int64_t max_channels = 0x7fffffff;
  if (g.q > max_channels || g.m > max_channels || g.taps() > max_place) return false;
  for (const SourceAxis& axis : g.axis) {
    const std::int64_t start = axis.start < 0 ? -axis.start : axis.start;
    const std::int64_t between = axis.between < 0 ? -axis.between : axis.between;
    const std::int64_t step = axis.places * axis.step;
    if (axis.extent > max_place || start > max_place || step > max_place ||
        (axis.kernel - 1) * between > max_place || axis.divisor > max_place) {
      return false;
    }
  }
  return true;
}

}  // namespace rung::conv_cuda::inline RUNG_TARGET
