// SPDX-License-Identifier: Apache-2.0
// CUB block reductions, by shuffles within warps and then through shared memory. As with CUB, a
// barrier is required between two uses of the same TempStorage.
#pragma once

#include "rung_cuda/cub_types.h"

namespace cub {

enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS
};

template <class T, int size_x, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int size_y = 1,
          int size_z = 1, int = 0>
class BlockReduce {
  static constexpr int threads = size_x * size_y * size_z;
  static constexpr int warps = (threads + 31) / 32;

 public:
  struct TempStorage {
    T of_warp[warps];
  };
  __device__ explicit BlockReduce(TempStorage& storage) : storage_(storage) {}
  __device__ BlockReduce() : storage_(own_storage<TempStorage, BlockReduce>()) {}

  /// Reduces over the block; the result is valid in thread 0.
  template <class Operation>
  __device__ T Reduce(T input, Operation operation, int valid = threads) {
    const int thread = rung::cuda::thread_of_block();
    const int warp = thread / 32;
    T sum = rung::cuda::reduce_lanes(input, operation, 32, valid - 32 * warp);
    if (thread % 32 == 0) storage_.of_warp[warp] = sum;
    __syncthreads();
    if (thread == 0) {
      for (int i = 1; 32 * i < valid; ++i) sum = operation(sum, storage_.of_warp[i]);
    }
    return sum;
  }
  template <int items, class Operation>
  __device__ T Reduce(T (&inputs)[items], Operation operation) {
    T sum = inputs[0];
    for (int i = 1; i < items; ++i) sum = operation(sum, inputs[i]);
    return Reduce(sum, operation);
  }
  __device__ T Sum(T input, int valid = threads) { return Reduce(input, cub::Sum{}, valid); }
  template <int items>
  __device__ T Sum(T (&inputs)[items]) {
    return Reduce(inputs, cub::Sum{});
  }

 private:
  TempStorage& storage_;
};

}  // namespace cub
