// SPDX-License-Identifier: Apache-2.0
// CUB block operations on adjacent items (head and tail flags, differences, shifts) and histograms.
#pragma once

#include "rung_cuda/cub_types.h"

namespace cub {

enum BlockHistogramAlgorithm { BLOCK_HISTO_SORT, BLOCK_HISTO_ATOMIC };

template <class T, int size_x, int items, int bins, BlockHistogramAlgorithm = BLOCK_HISTO_SORT,
          int size_y = 1, int size_z = 1, int = 0>
class BlockHistogram {
  static constexpr int threads = size_x * size_y * size_z;

 public:
  struct TempStorage {};
  __device__ explicit BlockHistogram(TempStorage&) {}
  __device__ BlockHistogram() = default;

  template <class Counter>
  __device__ void InitHistogram(Counter (&histogram)[bins]) {
    for (int i = rung::cuda::thread_of_block(); i < bins; i += threads) histogram[i] = 0;
  }
  template <class Counter>
  __device__ void Composite(T (&inputs)[items], Counter (&histogram)[bins]) {
    for (const T& item : inputs) atomicAdd(&histogram[item], Counter{1});
  }
  template <class Counter>
  __device__ void Histogram(T (&inputs)[items], Counter (&histogram)[bins]) {
    InitHistogram(histogram);
    __syncthreads();
    Composite(inputs, histogram);
  }
};

/// Shared array through which each thread passes its first or last item to a neighbor.
template <class T, int size_x, int size_y = 1, int size_z = 1>
struct NeighborItems {
  static constexpr int threads = size_x * size_y * size_z;
  struct TempStorage {
    T last[threads], first[threads];
  };
  template <int items>
  __device__ static void exchange(TempStorage& storage, const T (&inputs)[items]) {
    const int thread = rung::cuda::thread_of_block();
    storage.first[thread] = inputs[0];
    storage.last[thread] = inputs[items - 1];
    __syncthreads();
  }
};

template <class T, int size_x, int size_y = 1, int size_z = 1, int = 0>
class BlockDiscontinuity {
  using Neighbors = NeighborItems<T, size_x, size_y, size_z>;

 public:
  using TempStorage = typename Neighbors::TempStorage;
  __device__ explicit BlockDiscontinuity(TempStorage& storage) : storage_(storage) {}
  __device__ BlockDiscontinuity() : storage_(own_storage<TempStorage, BlockDiscontinuity>()) {}

  /// Flags the heads of runs. The block's first item is a head, unless `before`, the last item of
  /// the preceding tile, is given for comparison.
  template <int items, class Flag, class Differ>
  __device__ void FlagHeads(Flag (&heads)[items], T (&inputs)[items], Differ differ) {
    Neighbors::exchange(storage_, inputs);
    flag_heads(heads, inputs, differ, nullptr);
  }
  template <int items, class Flag, class Differ>
  __device__ void FlagHeads(Flag (&heads)[items], T (&inputs)[items], Differ differ, T before) {
    Neighbors::exchange(storage_, inputs);
    flag_heads(heads, inputs, differ, &before);
  }
  template <int items, class Flag, class Differ>
  __device__ void FlagTails(Flag (&tails)[items], T (&inputs)[items], Differ differ) {
    Neighbors::exchange(storage_, inputs);
    flag_tails(tails, inputs, differ, nullptr);
  }
  template <int items, class Flag, class Differ>
  __device__ void FlagTails(Flag (&tails)[items], T (&inputs)[items], Differ differ, T behind) {
    Neighbors::exchange(storage_, inputs);
    flag_tails(tails, inputs, differ, &behind);
  }
  template <int items, class Flag, class Differ>
  __device__ void FlagHeadsAndTails(Flag (&heads)[items], Flag (&tails)[items], T (&inputs)[items],
                                    Differ differ) {
    Neighbors::exchange(storage_, inputs);
    flag_heads(heads, inputs, differ, nullptr);
    flag_tails(tails, inputs, differ, nullptr);
  }

 private:
  template <int items, class Flag, class Differ>
  __device__ void flag_heads(Flag (&heads)[items], T (&inputs)[items], Differ differ,
                             const T* before) {
    const int thread = rung::cuda::thread_of_block();
    for (int i = items - 1; i > 0; --i) heads[i] = differ(inputs[i - 1], inputs[i]);
    if (thread != 0) before = &storage_.last[thread - 1];
    heads[0] = before == nullptr ? 1 : static_cast<int>(differ(*before, inputs[0]));
  }
  template <int items, class Flag, class Differ>
  __device__ void flag_tails(Flag (&tails)[items], T (&inputs)[items], Differ differ,
                             const T* behind) {
    const int thread = rung::cuda::thread_of_block();
    for (int i = 0; i + 1 < items; ++i) tails[i] = differ(inputs[i], inputs[i + 1]);
    if (thread != Neighbors::threads - 1) behind = &storage_.first[thread + 1];
    tails[items - 1] = behind == nullptr ? 1 : static_cast<int>(differ(inputs[items - 1], *behind));
  }

  TempStorage& storage_;
};

template <class T, int size_x, int size_y = 1, int size_z = 1>
class BlockAdjacentDifference {
  using Neighbors = NeighborItems<T, size_x, size_y, size_z>;

 public:
  using TempStorage = typename Neighbors::TempStorage;
  __device__ explicit BlockAdjacentDifference(TempStorage& storage) : storage_(storage) {}
  __device__ BlockAdjacentDifference()
      : storage_(own_storage<TempStorage, BlockAdjacentDifference>()) {}

  /// Computes differences to the left neighbor. The block's first item is copied, or uses the last
  /// item of the preceding tile.
  template <int items, class Output, class Difference>
  __device__ void SubtractLeft(T (&inputs)[items], Output (&outputs)[items],
                               Difference difference) {
    Neighbors::exchange(storage_, inputs);
    subtract_left(inputs, outputs, difference, nullptr);
  }
  template <int items, class Output, class Difference>
  __device__ void SubtractLeft(T (&inputs)[items], Output (&outputs)[items], Difference difference,
                               T before) {
    Neighbors::exchange(storage_, inputs);
    subtract_left(inputs, outputs, difference, &before);
  }
  /// Computes differences to the right neighbor. The block's last item is copied, or uses the first
  /// item of the following tile.
  template <int items, class Output, class Difference>
  __device__ void SubtractRight(T (&inputs)[items], Output (&outputs)[items],
                                Difference difference) {
    Neighbors::exchange(storage_, inputs);
    subtract_right(inputs, outputs, difference, nullptr);
  }
  template <int items, class Output, class Difference>
  __device__ void SubtractRight(T (&inputs)[items], Output (&outputs)[items], Difference difference,
                                T behind) {
    Neighbors::exchange(storage_, inputs);
    subtract_right(inputs, outputs, difference, &behind);
  }

 private:
  template <int items, class Output, class Difference>
  __device__ void subtract_left(T (&inputs)[items], Output (&outputs)[items], Difference difference,
                                const T* before) {
    const int thread = rung::cuda::thread_of_block();
    if (thread != 0) before = &storage_.last[thread - 1];
    for (int i = items - 1; i > 0; --i) outputs[i] = difference(inputs[i], inputs[i - 1]);
    outputs[0] = before == nullptr ? inputs[0] : difference(inputs[0], *before);
  }
  template <int items, class Output, class Difference>
  __device__ void subtract_right(T (&inputs)[items], Output (&outputs)[items],
                                 Difference difference, const T* behind) {
    const int thread = rung::cuda::thread_of_block();
    if (thread != Neighbors::threads - 1) behind = &storage_.first[thread + 1];
    for (int i = 0; i + 1 < items; ++i) outputs[i] = difference(inputs[i], inputs[i + 1]);
    const T last = inputs[items - 1];
    outputs[items - 1] = behind == nullptr ? last : difference(last, *behind);
  }

  TempStorage& storage_;
};

template <class T, int size_x, int size_y = 1, int size_z = 1, int = 0>
class BlockShuffle {
  static constexpr int threads = size_x * size_y * size_z;

 public:
  struct TempStorage {
    T items[threads];
  };
  __device__ explicit BlockShuffle(TempStorage& storage) : storage_(storage) {}
  __device__ BlockShuffle() : storage_(own_storage<TempStorage, BlockShuffle>()) {}

  /// Stores in `output` the item of the thread `distance` positions later; leaves it unchanged if
  /// there is no such thread.
  __device__ void Offset(T input, T& output, int distance = 1) {
    const int from = put(input) + distance;
    if (from >= 0 && from < threads) output = storage_.items[from];
  }
  __device__ void Rotate(T input, T& output, unsigned distance = 1) {
    const unsigned from = static_cast<unsigned>(put(input)) + distance;
    output = storage_.items[from % threads];
  }
  /// Shifts all items by one position. The block's first output (Up) or last output (Down) is
  /// unchanged.
  template <int items>
  __device__ void Up(T (&inputs)[items], T (&outputs)[items]) {
    const int thread = put(inputs[items - 1]);
    for (int i = items - 1; i > 0; --i) outputs[i] = inputs[i - 1];
    if (thread > 0) outputs[0] = storage_.items[thread - 1];
  }
  template <int items>
  __device__ void Down(T (&inputs)[items], T (&outputs)[items]) {
    const int thread = put(inputs[0]);
    for (int i = 0; i + 1 < items; ++i) outputs[i] = inputs[i + 1];
    if (thread + 1 < threads) outputs[items - 1] = storage_.items[thread + 1];
  }

 private:
  __device__ int put(const T& item) {
    const int thread = rung::cuda::thread_of_block();
    storage_.items[thread] = item;
    __syncthreads();
    return thread;
  }

  TempStorage& storage_;
};

}  // namespace cub
