// SPDX-License-Identifier: Apache-2.0
// CUB's reductions and scans of a block: warps by shuffle, then their results through shared
// memory. As with CUB itself, a barrier belongs between two uses of one TempStorage.
#pragma once

#include "rung_cuda/cub_types.h"

namespace cub {

enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

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

  /// Valid in thread 0.
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

template <class T, int size_x, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int size_y = 1,
          int size_z = 1, int = 0>
class BlockScan {
  static constexpr int threads = size_x * size_y * size_z;
  static constexpr int warps = (threads + 31) / 32;

 public:
  struct TempStorage {
    T of_warp[warps];
  };
  __device__ explicit BlockScan(TempStorage& storage) : storage_(storage) {}

  template <class Operation>
  __device__ void InclusiveScan(T input, T& output, Operation operation, T& aggregate) {
    T before;
    const bool any = scan(input, operation, before, aggregate);
    output = any ? operation(before, input) : input;
  }
  template <class Operation>
  __device__ void InclusiveScan(T input, T& output, Operation operation) {
    T aggregate;
    InclusiveScan(input, output, operation, aggregate);
  }
  template <int items, class Operation>
  __device__ void InclusiveScan(T (&inputs)[items], T (&outputs)[items], Operation operation,
                                T& aggregate) {
    T before;
    const bool any = scan(total(inputs, operation), operation, before, aggregate);
    for (int i = 0; i < items; ++i) {
      outputs[i] = before = any || i > 0 ? operation(before, inputs[i]) : inputs[i];
    }
  }
  template <int items, class Operation>
  __device__ void InclusiveScan(T (&inputs)[items], T (&outputs)[items], Operation operation) {
    T aggregate;
    InclusiveScan(inputs, outputs, operation, aggregate);
  }

  template <class Operation>
  __device__ void ExclusiveScan(T input, T& output, T initial, Operation operation, T& aggregate) {
    T before;
    const bool any = scan(input, operation, before, aggregate);
    output = any ? operation(initial, before) : initial;
  }
  template <class Operation>
  __device__ void ExclusiveScan(T input, T& output, T initial, Operation operation) {
    T aggregate;
    ExclusiveScan(input, output, initial, operation, aggregate);
  }
  template <int items, class Operation>
  __device__ void ExclusiveScan(T (&inputs)[items], T (&outputs)[items], T initial,
                                Operation operation, T& aggregate) {
    T before;
    const bool any = scan(total(inputs, operation), operation, before, aggregate);
    T running = any ? operation(initial, before) : initial;
    for (int i = 0; i < items; ++i) {
      const T input = inputs[i];  // outputs may be the inputs
      outputs[i] = running;
      running = operation(running, input);
    }
  }
  template <int items, class Operation>
  __device__ void ExclusiveScan(T (&inputs)[items], T (&outputs)[items], T initial,
                                Operation operation) {
    T aggregate;
    ExclusiveScan(inputs, outputs, initial, operation, aggregate);
  }

  template <class Values>  // a value, or an array of them
  __device__ void InclusiveSum(Values& inputs, Values& outputs) {
    InclusiveScan(inputs, outputs, Sum{});
  }
  template <class Values>
  __device__ void InclusiveSum(Values& inputs, Values& outputs, T& aggregate) {
    InclusiveScan(inputs, outputs, Sum{}, aggregate);
  }
  __device__ void InclusiveSum(T&& input, T& output) { InclusiveScan(input, output, Sum{}); }
  template <class Values>
  __device__ void ExclusiveSum(Values& inputs, Values& outputs) {
    ExclusiveScan(inputs, outputs, T{}, Sum{});
  }
  template <class Values>
  __device__ void ExclusiveSum(Values& inputs, Values& outputs, T& aggregate) {
    ExclusiveScan(inputs, outputs, T{}, Sum{}, aggregate);
  }
  __device__ void ExclusiveSum(T&& input, T& output) { ExclusiveScan(input, output, T{}, Sum{}); }

 private:
  template <int items, class Operation>
  __device__ static T total(T (&inputs)[items], Operation operation) {
    T sum = inputs[0];
    for (int i = 1; i < items; ++i) sum = operation(sum, inputs[i]);
    return sum;
  }
  /// What the threads before this one hold, and whether there are any; what all of them hold.
  template <class Operation>
  __device__ bool scan(const T& input, Operation operation, T& before, T& aggregate) {
    const int thread = rung::cuda::thread_of_block();
    const int warp = thread / 32;
    const rung::cuda::LaneGroup group(32);
    const T sum = rung::cuda::scan_lanes(input, operation, 32);
    const T others = rung::cuda::shuffle_words(
        sum, [&](unsigned word) { return __shfl_up_sync(group.mask, word, 1); });
    if (group.lane == group.lanes - 1) storage_.of_warp[warp] = sum;
    __syncthreads();
    T of_warps = storage_.of_warp[0];
    T of_warps_before = of_warps;
    for (int i = 1; i < warps; ++i) {
      if (i == warp) of_warps_before = of_warps;
      of_warps = operation(of_warps, storage_.of_warp[i]);
    }
    aggregate = of_warps;
    if (warp == 0) {
      before = others;
      return group.lane > 0;
    }
    before = group.lane > 0 ? operation(of_warps_before, others) : of_warps_before;
    return true;
  }

  TempStorage& storage_;
};

}  // namespace cub
