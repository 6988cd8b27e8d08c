// SPDX-License-Identifier: Apache-2.0
// CUB's collectives of a warp, or of a part of it whose width is a power of two.
#pragma once

#include "rung_cuda/cub_types.h"

namespace cub {

template <class T, int width = 32>
class WarpReduce {
 public:
  struct TempStorage {};
  __device__ explicit WarpReduce(TempStorage&) {}

  /// Valid in lane 0.
  template <class Operation>
  __device__ T Reduce(T input, Operation operation, int valid = width) {
    return rung::cuda::reduce_lanes(input, operation, width, valid);
  }
  __device__ T Sum(T input, int valid = width) { return Reduce(input, cub::Sum{}, valid); }
  __device__ T Max(T input, int valid = width) { return Reduce(input, cub::Max{}, valid); }
  __device__ T Min(T input, int valid = width) { return Reduce(input, cub::Min{}, valid); }
};

template <class T, int width = 32>
class WarpScan {
 public:
  struct TempStorage {};
  __device__ explicit WarpScan(TempStorage&) {}

  template <class Operation>
  __device__ void InclusiveScan(T input, T& output, Operation operation) {
    output = rung::cuda::scan_lanes(input, operation, width);
  }
  template <class Operation>
  __device__ void InclusiveScan(T input, T& output, Operation operation, T& aggregate) {
    output = rung::cuda::scan_lanes(input, operation, width);
    aggregate = last(output);
  }
  template <class Operation>
  __device__ void ExclusiveScan(T input, T& output, T initial, Operation operation) {
    T aggregate;
    ExclusiveScan(input, output, initial, operation, aggregate);
  }
  template <class Operation>
  __device__ void ExclusiveScan(T input, T& output, T initial, Operation operation, T& aggregate) {
    const T sum = rung::cuda::scan_lanes(input, operation, width);
    aggregate = last(sum);
    output = before(sum);
    output = rung::cuda::LaneGroup(width).lane == 0 ? initial : operation(initial, output);
  }
  __device__ void InclusiveSum(T input, T& output) { InclusiveScan(input, output, Sum{}); }
  __device__ void InclusiveSum(T input, T& output, T& aggregate) {
    InclusiveScan(input, output, Sum{}, aggregate);
  }
  __device__ void ExclusiveSum(T input, T& output) { ExclusiveScan(input, output, T{}, Sum{}); }
  __device__ void ExclusiveSum(T input, T& output, T& aggregate) {
    ExclusiveScan(input, output, T{}, Sum{}, aggregate);
  }
  __device__ T Broadcast(T input, unsigned source) {
    const rung::cuda::LaneGroup group(width);
    return rung::cuda::shuffle_words(input, [&](unsigned word) {
      return __shfl_sync(group.mask, word, static_cast<int>(source), width);
    });
  }

 private:
  __device__ T last(const T& sum) {
    return Broadcast(sum, static_cast<unsigned>(rung::cuda::LaneGroup(width).lanes - 1));
  }
  __device__ T before(const T& sum) {
    const rung::cuda::LaneGroup group(width);
    return rung::cuda::shuffle_words(
        sum, [&](unsigned word) { return __shfl_up_sync(group.mask, word, 1, width); });
  }
};

}  // namespace cub
