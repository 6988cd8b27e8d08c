// SPDX-License-Identifier: Apache-2.0
// A contiguous x read in packs of 16 bytes, whatever its alignment: what histogram's fast CUDA
// rungs share, with the way from a block's tables to counts.
#pragma once

#include "rung/device/collectives.hpp"
#include "rung/device/load.hpp"
#include "rung/ops/histogram/cuda_histogram.hpp"

namespace rung::histogram_cuda::inline RUNG_TARGET {

template <class T>
inline constexpr int pack_size = 16 / static_cast<int>(sizeof(T));

template <class T>
struct DenseElements {
  const T* data;
  std::int64_t size;
  int head;  // elements before the first multiple of 16 bytes

  static DenseElements make(const Histogram::Args& args) {
    const auto address = reinterpret_cast<std::uintptr_t>(args.x.data);
    const auto before = static_cast<std::int64_t>((16 - address % 16) % 16 / sizeof(T));
    return {static_cast<const T*>(args.x.data), args.size(),
            static_cast<int>(std::min(before, args.size()))};
  }
};

inline Support require_dense(const Histogram::Args& args) {
  if (!args.dense()) return unsupported("x is not contiguous");
  return reinterpret_cast<std::uintptr_t>(args.x.data) % size_of(args.x.dtype) == 0
             ? supported
             : unsupported("x is not aligned to its elements");
}

/// The grid walks over x. Each thread loads `Unroll` packs, then calls whole(pack, valid) for each;
/// all threads of a block do so together, also those whose pack does not exist (valid = false), so
/// that `whole` may hold collectives. The few elements before the first and behind the last pack go
/// one by one through single(element).
template <int Unroll, class T, class Whole, class Single>
__device__ __forceinline__ void for_each_pack(const DenseElements<T>& x, const Whole& whole,
                                              const Single& single) {
  constexpr int size = pack_size<T>;
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  const T* const body = x.data + x.head;
  const std::int64_t packs = (x.size - x.head) / size;
  const std::int64_t tile = std::int64_t{threads} * Unroll;
  const T* from = body + (blockIdx.x * tile + thread) * size;
  // Packs from this tile's first on: the same for all threads of the block.
  for (std::int64_t left = packs - blockIdx.x * tile; left > 0; left -= gridDim.x * tile) {
    Pack<T, size> values[Unroll];
    bool valid[Unroll];
#pragma unroll
    for (int u = 0; u < Unroll; ++u) {
      valid[u] = thread + u * threads < left;
      if (valid[u]) values[u] = load_wide<size>(from + std::int64_t{u * threads} * size);
    }
#pragma unroll
    for (int u = 0; u < Unroll; ++u) whole(values[u], valid[u]);
    from += gridDim.x * tile * size;
  }
  if (blockIdx.x != gridDim.x - 1) return;
  const auto tail = static_cast<int>(x.size - x.head - packs * size);
  if (thread < x.head) single(x.data[thread]);
  if (thread < tail) single(body[packs * size + thread]);
}

/// table[(row << shift) + copy], added up over copies: a thread a row, so that neighbouring counts
/// are written together; it starts at a copy of its own, as all would read one bank otherwise.
__device__ __forceinline__ unsigned sum_of_copies(const unsigned* table, int row, int shift) {
  const int copies = 1 << shift;
  unsigned sum = 0;
  for (int copy = 0; copy < copies; ++copy) {
    sum += table[(row << shift) + ((copy + row) & (copies - 1))];
  }
  return sum;
}

}  // namespace rung::histogram_cuda::inline RUNG_TARGET
