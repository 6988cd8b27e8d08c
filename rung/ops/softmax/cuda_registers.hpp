// SPDX-License-Identifier: Apache-2.0
// Rows of softmax that stay in registers: how wide, how many, by how many threads.
#pragma once

#include "rung/ops/softmax/cuda_softmax.hpp"

namespace rung::softmax_cuda::inline RUNG_TARGET {

/// Elements of a 16-byte load.
template <class T>
inline constexpr int pack_width = 16 / static_cast<int>(sizeof(T));
/// Loads that a thread keeps of a row. A warp of its own for a row: 32 values a thread, at some 100
/// registers; blocks of 128 threads then still have 80 KiB under way a multiprocessor. Several
/// warps a row, up to 1024 threads: 64 registers, which 16 values leave room in. Backward there are
/// two tensors to keep; 16-bit values stay packed.
struct Kept {
  int by_warp, by_block;
};
template <class T>
inline constexpr Kept kept_forward = std::is_class_v<T> ? Kept{4, 2} : Kept{8, 4};
inline constexpr Kept kept_backward = {4, 2};
inline constexpr int most_threads = 1024;
inline constexpr int warp_block_threads = 128;

/// The k-th pack of this thread: neighbouring threads have neighbouring packs.
__device__ __forceinline__ int pack_index(int k) {
  return static_cast<int>(threadIdx.x) + k * static_cast<int>(blockDim.x);
}

template <class Sum, int packs, int width, class F>
__device__ __forceinline__ void for_each_value(Sum (&values)[packs][width], F&& f) {
#pragma unroll
  for (int k = 0; k < packs; ++k) {
#pragma unroll
    for (int i = 0; i < width; ++i) f(values[k][i]);
  }
}

/// Packs that a row spans, one more where rows may begin between multiples of 16 bytes.
template <class T>
std::int64_t packs_of_row(const Softmax::Args& args) {
  constexpr int width = pack_width<T>;
  bool aligned = reinterpret_cast<std::uintptr_t>(args.x.data) % 16 == 0;
  for (int axis = 0; axis < args.rows.others.rank; ++axis) {
    aligned = aligned && args.rows.others.strides[0][axis] % width == 0;
  }
  return (args.length() + width - 1) / width + (aligned ? 0 : 1);
}

/// The threads for such rows, of which each keeps as much as `kept` says.
inline RowBlock register_block(std::int64_t packs, Kept kept) {
  constexpr int warp = 32;
  if (packs > warp * kept.by_warp) return row_block(packs, kept.by_block, 2 * warp, most_threads);
  // Short rows: two packs a thread, several rows a warp.
  constexpr int least_threads = 8;
  return row_block(packs, 2, least_threads, warp);
}
inline bool fits_registers(std::int64_t packs, Kept kept) {
  return packs <= most_threads * kept.by_block;
}

}  // namespace rung::softmax_cuda::inline RUNG_TARGET
