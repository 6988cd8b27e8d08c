// SPDX-License-Identifier: Apache-2.0
// CUB block scans, by shuffles within warps and then through shared memory. As with CUB, a barrier
// is required between two uses of the same TempStorage.
#pragma once

#include "rung_cuda/cub_types.h"

namespace cub {

enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

template <class T, int size_x, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int size_y = 1,
          int size_z = 1, int = 0>
class BlockScan {
  static constexpr int threads = size_x * size_y * size_z;
  static constexpr int warps = (threads + 31) / 32;
  /// True for a prefix callback. It is called with the block's total; its result in lane 0 is the
  /// prefix of all items.
  template <class Prefix>
  static constexpr bool is_prefix = std::is_invocable_r_v<T, Prefix&, T>;

 public:
  struct TempStorage {
    T of_warp[warps];
    T prefix;
  };
  __device__ explicit BlockScan(TempStorage& storage) : storage_(storage) {}
  __device__ BlockScan() : storage_(own_storage<TempStorage, BlockScan>()) {}

  // Functions for one item per thread.
  __device__ void InclusiveSum(T input, T& output) { InclusiveScan(input, output, Sum{}); }
  __device__ void InclusiveSum(T input, T& output, T& aggregate) {
    InclusiveScan(input, output, Sum{}, aggregate);
  }
  template <class Prefix>
  requires(is_prefix<Prefix>) __device__ void InclusiveSum(T input, T& output, Prefix& prefix) {
    InclusiveScan(input, output, Sum{}, prefix);
  }
  __device__ void ExclusiveSum(T input, T& output) { ExclusiveScan(input, output, T{}, Sum{}); }
  __device__ void ExclusiveSum(T input, T& output, T& aggregate) {
    ExclusiveScan(input, output, T{}, Sum{}, aggregate);
  }
  template <class Prefix>
  requires(is_prefix<Prefix>) __device__ void ExclusiveSum(T input, T& output, Prefix& prefix) {
    ExclusiveScan(input, output, Sum{}, prefix);
  }
  template <class Operation>
  __device__ void InclusiveScan(T input, T& output, Operation operation) {
    InclusiveScan(one(input), one(output), operation);
  }
  template <class Operation>
  __device__ void InclusiveScan(T input, T& output, Operation operation, T& aggregate) {
    InclusiveScan(one(input), one(output), operation, aggregate);
  }
  template <class Operation, class Prefix>
  requires(is_prefix<Prefix>) __device__
      void InclusiveScan(T input, T& output, Operation operation, Prefix& prefix) {
    InclusiveScan(one(input), one(output), operation, prefix);
  }
  template <class Operation>
  __device__ void ExclusiveScan(T input, T& output, Operation operation) {
    ExclusiveScan(one(input), one(output), operation);
  }
  template <class Operation>
  requires(is_operation<Operation, T>) __device__
      void ExclusiveScan(T input, T& output, T initial, Operation operation) {
    ExclusiveScan(one(input), one(output), initial, operation);
  }
  template <class Operation>
  requires(is_operation<Operation, T>) __device__
      void ExclusiveScan(T input, T& output, Operation operation, T& aggregate) {
    ExclusiveScan(one(input), one(output), operation, aggregate);
  }
  template <class Operation, class Prefix>
  requires(is_operation<Operation, T>&& is_prefix<Prefix>) __device__
      void ExclusiveScan(T input, T& output, Operation operation, Prefix& prefix) {
    ExclusiveScan(one(input), one(output), operation, prefix);
  }
  template <class Operation>
  __device__ void ExclusiveScan(T input, T& output, T initial, Operation operation, T& aggregate) {
    ExclusiveScan(one(input), one(output), initial, operation, aggregate);
  }

  // Functions for several consecutive items per thread. Outputs may alias inputs.
  template <int items>
  __device__ void InclusiveSum(T (&inputs)[items], T (&outputs)[items]) {
    InclusiveScan(inputs, outputs, Sum{});
  }
  template <int items>
  __device__ void InclusiveSum(T (&inputs)[items], T (&outputs)[items], T& aggregate) {
    InclusiveScan(inputs, outputs, Sum{}, aggregate);
  }
  template <int items, class Prefix>
  requires(is_prefix<Prefix>) __device__
      void InclusiveSum(T (&inputs)[items], T (&outputs)[items], Prefix& prefix) {
    InclusiveScan(inputs, outputs, Sum{}, prefix);
  }
  template <int items>
  __device__ void ExclusiveSum(T (&inputs)[items], T (&outputs)[items]) {
    ExclusiveScan(inputs, outputs, T{}, Sum{});
  }
  template <int items>
  __device__ void ExclusiveSum(T (&inputs)[items], T (&outputs)[items], T& aggregate) {
    ExclusiveScan(inputs, outputs, T{}, Sum{}, aggregate);
  }
  template <int items, class Prefix>
  requires(is_prefix<Prefix>) __device__
      void ExclusiveSum(T (&inputs)[items], T (&outputs)[items], Prefix& prefix) {
    ExclusiveScan(inputs, outputs, Sum{}, prefix);
  }
  template <int items, class Operation>
  __device__ void InclusiveScan(T (&inputs)[items], T (&outputs)[items], Operation operation) {
    T aggregate;
    inclusive(inputs, outputs, operation, aggregate, NoPrefix{});
  }
  template <int items, class Operation>
  requires(is_operation<Operation, T>) __device__
      void InclusiveScan(T (&inputs)[items], T (&outputs)[items], Operation operation,
                         T& aggregate) {
    inclusive(inputs, outputs, operation, aggregate, NoPrefix{});
  }
  template <int items, class Operation>
  requires(is_operation<Operation, T>) __device__
      void InclusiveScan(T (&inputs)[items], T (&outputs)[items], T initial, Operation operation) {
    T aggregate;
    inclusive(inputs, outputs, operation, aggregate, Initial{initial});
  }
  template <int items, class Operation>
  __device__ void InclusiveScan(T (&inputs)[items], T (&outputs)[items], T initial,
                                Operation operation, T& aggregate) {
    inclusive(inputs, outputs, operation, aggregate, Initial{initial});
  }
  template <int items, class Operation, class Prefix>
  requires(is_operation<Operation, T>&& is_prefix<Prefix>) __device__
      void InclusiveScan(T (&inputs)[items], T (&outputs)[items], Operation operation,
                         Prefix& prefix) {
    T aggregate;
    inclusive(inputs, outputs, operation, aggregate, Asked<Prefix>{*this, prefix});
  }
  /// Scans without an initial value: the first output of the block is not written.
  template <int items, class Operation>
  __device__ void ExclusiveScan(T (&inputs)[items], T (&outputs)[items], Operation operation) {
    T aggregate;
    exclusive(inputs, outputs, operation, aggregate, NoPrefix{});
  }
  template <int items, class Operation>
  requires(is_operation<Operation, T>) __device__
      void ExclusiveScan(T (&inputs)[items], T (&outputs)[items], Operation operation,
                         T& aggregate) {
    exclusive(inputs, outputs, operation, aggregate, NoPrefix{});
  }
  template <int items, class Operation>
  requires(is_operation<Operation, T>) __device__
      void ExclusiveScan(T (&inputs)[items], T (&outputs)[items], T initial, Operation operation) {
    T aggregate;
    exclusive(inputs, outputs, operation, aggregate, Initial{initial});
  }
  template <int items, class Operation>
  __device__ void ExclusiveScan(T (&inputs)[items], T (&outputs)[items], T initial,
                                Operation operation, T& aggregate) {
    exclusive(inputs, outputs, operation, aggregate, Initial{initial});
  }
  template <int items, class Operation, class Prefix>
  requires(is_operation<Operation, T>&& is_prefix<Prefix>) __device__
      void ExclusiveScan(T (&inputs)[items], T (&outputs)[items], Operation operation,
                         Prefix& prefix) {
    T aggregate;
    exclusive(inputs, outputs, operation, aggregate, Asked<Prefix>{*this, prefix});
  }

 private:
  typedef T One[1];
  __device__ static One& one(T& item) { return reinterpret_cast<One&>(item); }

  // No prefix. Like a prefix callback, it is called by all threads.
  struct NoPrefix {
    static constexpr bool there = false;
    __device__ T operator()(const T& aggregate) const { return aggregate; }
  };
  struct Initial {
    static constexpr bool there = true;
    T value;
    __device__ T operator()(const T&) const { return value; }
  };
  template <class Prefix>
  struct Asked {
    static constexpr bool there = true;
    BlockScan& scan;
    Prefix& prefix;
    __device__ T operator()(const T& aggregate) const {
      const int thread = rung::cuda::thread_of_block();
      if (thread < 32) {
        const T answer = prefix(aggregate);
        if (thread == 0) scan.storage_.prefix = answer;
      }
      __syncthreads();
      return scan.storage_.prefix;
    }
  };

  template <int items, class Operation, class Front>
  __device__ void inclusive(T (&inputs)[items], T (&outputs)[items], Operation operation,
                            T& aggregate, const Front& front) {
    T sum;
    bool any = scan(total(inputs, operation), operation, sum, aggregate);
    const T prefix = front(aggregate);
    if (Front::there) sum = any ? operation(prefix, sum) : prefix;
    any = any || Front::there;
    for (int i = 0; i < items; ++i, any = true) {
      sum = any ? operation(sum, inputs[i]) : inputs[i];
      outputs[i] = sum;
    }
  }
  template <int items, class Operation, class Front>
  __device__ void exclusive(T (&inputs)[items], T (&outputs)[items], Operation operation,
                            T& aggregate, const Front& front) {
    T sum;
    bool any = scan(total(inputs, operation), operation, sum, aggregate);
    const T prefix = front(aggregate);
    if (Front::there) sum = any ? operation(prefix, sum) : prefix;
    any = any || Front::there;
    for (int i = 0; i < items; ++i, any = true) {
      const T input = inputs[i];
      if (any) outputs[i] = sum;
      sum = any ? operation(sum, input) : input;
    }
  }
  template <int items, class Operation>
  __device__ static T total(T (&inputs)[items], Operation operation) {
    T sum = inputs[0];
    for (int i = 1; i < items; ++i) sum = operation(sum, inputs[i]);
    return sum;
  }
  /// Scans the block. Returns true if there are preceding threads; `before` is then the combination
  /// of their values. `aggregate`: combination of all values.
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
