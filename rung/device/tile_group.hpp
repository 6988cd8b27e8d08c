// SPDX-License-Identifier: Apache-2.0
// TileGroup<N>: N neighboring threads of a block that shuffle and synchronize together, with the
// interface of cooperative groups. Under nvcc it is a thread_block_tile, in the simulator a class
// on the lanes of a warp. Blocks are one-dimensional; N is a power of two up to 32.
#pragma once

#include "rung/device/device.hpp"

#if defined(__CUDACC__)
#include <cooperative_groups.h>
#endif

namespace rung::inline RUNG_TARGET {

#if defined(__CUDACC__)

template <int N>
using TileGroup = cooperative_groups::thread_block_tile<N>;

/// Returns the tile of the calling thread; all threads of the block call it.
template <int N>
__device__ __forceinline__ TileGroup<N> tile_of_block() {
  return cooperative_groups::tiled_partition<N>(cooperative_groups::this_thread_block());
}

#else

template <int N>
class TileGroup {
 public:
  static_assert(N > 0 && N <= 32 && (N & (N - 1)) == 0);

  [[nodiscard]] int thread_rank() const { return static_cast<int>(threadIdx.x) % N; }
  [[nodiscard]] static constexpr int size() { return N; }
  /// Returns the index of this tile in its block. meta_group_size() returns the number of tiles.
  [[nodiscard]] int meta_group_rank() const { return static_cast<int>(threadIdx.x) / N; }
  [[nodiscard]] int meta_group_size() const { return (static_cast<int>(blockDim.x) + N - 1) / N; }
  void sync(simt::Place place = simt::Place::current()) const { __syncwarp(mask(), place); }
  template <class T>
  T shfl(T value, int rank, simt::Place place = simt::Place::current()) const {
    return __shfl_sync(mask(), value, rank, N, place);
  }
  template <class T>
  T shfl_down(T value, unsigned delta, simt::Place place = simt::Place::current()) const {
    return __shfl_down_sync(mask(), value, delta, N, place);
  }
  template <class T>
  T shfl_xor(T value, int lanes, simt::Place place = simt::Place::current()) const {
    return __shfl_xor_sync(mask(), value, lanes, N, place);
  }

 private:
  /// Returns the mask of this tile's lanes; other lanes of the warp need not take part.
  [[nodiscard]] static std::uint32_t mask() {
    constexpr std::uint32_t lanes = N == 32 ? 0xffffffffu : (1u << (N % 32)) - 1;
    return lanes << (static_cast<int>(threadIdx.x) % 32 / N * N);
  }
};

template <int N>
TileGroup<N> tile_of_block() {
  return {};
}

#endif

}  // namespace rung::inline RUNG_TARGET
