// SPDX-License-Identifier: Apache-2.0
// CUB collectives of a warp, or of a power-of-two part of a warp.
#pragma once

#include "rung_cuda/cub_types.h"

namespace cub {

template <class T, int width = 32, int = 0>
class WarpReduce {
 public:
  struct TempStorage {};
  __device__ explicit WarpReduce(TempStorage&) {}

  /// Reduces over the warp; the result is valid in lane 0.
  template <class Operation>
  __device__ T Reduce(T input, Operation operation, int valid = width) {
    return rung::cuda::reduce_lanes(input, operation, width, valid);
  }
  template <int items, class Operation>
  __device__ T Reduce(const T (&inputs)[items], Operation operation) {
    T sum = inputs[0];
    for (int i = 1; i < items; ++i) sum = operation(sum, inputs[i]);
    return Reduce(sum, operation);
  }
  __device__ T Sum(T input, int valid = width) { return Reduce(input, cub::Sum{}, valid); }
  __device__ T Max(T input, int valid = width) { return Reduce(input, cub::Max{}, valid); }
  __device__ T Min(T input, int valid = width) { return Reduce(input, cub::Min{}, valid); }
  template <int items>
  __device__ T Sum(const T (&inputs)[items]) {
    return Reduce(inputs, cub::Sum{});
  }
  template <int items>
  __device__ T Max(const T (&inputs)[items]) {
    return Reduce(inputs, cub::Max{});
  }
  template <int items>
  __device__ T Min(const T (&inputs)[items]) {
    return Reduce(inputs, cub::Min{});
  }

  /// Reduces segments that begin at head flags; the result is valid in the first lane of each
  /// segment. Lane 0 is always a head.
  template <class Flag, class Operation>
  __device__ T HeadSegmentedReduce(T input, Flag head, Operation operation) {
    const rung::cuda::LaneGroup group(width);
    const unsigned heads = __ballot_sync(group.mask, head ? 1 : 0) & group.mask;
    return segmented(group, input, operation, heads & ~(~0u >> (31 - lane_of_warp())));
  }
  /// Reduces segments that end at tail flags; the result is valid in the first lane of each
  /// segment.
  template <class Flag, class Operation>
  __device__ T TailSegmentedReduce(T input, Flag tail, Operation operation) {
    const rung::cuda::LaneGroup group(width);
    const unsigned tails = __ballot_sync(group.mask, tail ? 1 : 0) & group.mask;
    // A segment begins in the lane after each tail.
    return segmented(group, input, operation, tails << 1 & ~(~0u >> (31 - lane_of_warp())));
  }
  template <class Flag>
  __device__ T HeadSegmentedSum(T input, Flag head) {
    return HeadSegmentedReduce(input, head, cub::Sum{});
  }
  template <class Flag>
  __device__ T TailSegmentedSum(T input, Flag tail) {
    return TailSegmentedReduce(input, tail, cub::Sum{});
  }

 private:
  __device__ static int lane_of_warp() { return rung::cuda::thread_of_block() % 32; }
  /// Reduces within segments. `next`: mask of the warp's later lanes at which segments begin.
  template <class Operation>
  __device__ static T segmented(const rung::cuda::LaneGroup& group, T value, Operation operation,
                                unsigned next) {
    const int end =
        next != 0 ? group.lane + __ffs(static_cast<int>(next)) - 1 - lane_of_warp() : group.lanes;
    for (int step = 1; step < width; step *= 2) {
      const T other = rung::cuda::shuffle_words(value, [&](unsigned word) {
        return __shfl_down_sync(group.mask, word, static_cast<unsigned>(step), width);
      });
      if (group.lane + step < min(end, group.lanes)) value = operation(value, other);
    }
    return value;
  }
};

template <class T, int width = 32, int = 0>
class WarpScan {
 public:
  struct TempStorage {};
  __device__ explicit WarpScan(TempStorage&) {}

  template <class Operation>
  __device__ void InclusiveScan(T input, T& output, Operation operation) {
    output = rung::cuda::scan_lanes(input, operation, width);
  }
  template <class Operation>
  requires(is_operation<Operation, T>) __device__
      void InclusiveScan(T input, T& output, Operation operation, T& aggregate) {
    output = rung::cuda::scan_lanes(input, operation, width);
    aggregate = last(output);
  }
  template <class Operation>
  requires(is_operation<Operation, T>) __device__
      void InclusiveScan(T input, T& output, T initial, Operation operation) {
    output = operation(initial, rung::cuda::scan_lanes(input, operation, width));
  }
  /// Scans without an initial value: the first lane's output is not written.
  template <class Operation>
  __device__ void ExclusiveScan(T input, T& output, Operation operation) {
    T aggregate;
    ExclusiveScan(input, output, operation, aggregate);
  }
  template <class Operation>
  requires(is_operation<Operation, T>) __device__
      void ExclusiveScan(T input, T& output, Operation operation, T& aggregate) {
    const T sum = rung::cuda::scan_lanes(input, operation, width);
    aggregate = last(sum);
    const T others = before(sum);
    if (rung::cuda::LaneGroup(width).lane != 0) output = others;
  }
  template <class Operation>
  requires(is_operation<Operation, T>) __device__
      void ExclusiveScan(T input, T& output, T initial, Operation operation) {
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
  template <class Operation>
  __device__ void Scan(T input, T& inclusive, T& exclusive, Operation operation) {
    InclusiveScan(input, inclusive, operation);
    const T others = before(inclusive);
    if (rung::cuda::LaneGroup(width).lane != 0) exclusive = others;
  }
  template <class Operation>
  __device__ void Scan(T input, T& inclusive, T& exclusive, T initial, Operation operation) {
    ExclusiveScan(input, exclusive, initial, operation);
    inclusive = operation(exclusive, input);
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
