// SPDX-License-Identifier: Apache-2.0
// CUB block sorts: radix sort and merge sort.
#pragma once

#include "rung_cuda/cub_move.h"

namespace cub {

/// Sorts one bit at a time: keys whose bit is clear move before keys whose bit is set, stably.
template <class Key, int size_x, int items, class Value = NullType, int = 4, bool = true,
          BlockScanAlgorithm = BLOCK_SCAN_WARP_SCANS, int = 0, int size_y = 1, int size_z = 1>
class BlockRadixSort {
  static constexpr int threads = size_x * size_y * size_z;
  static constexpr bool pairs = !std::is_same_v<Value, NullType>;
  using Scan = BlockScan<int, size_x, BLOCK_SCAN_RAKING, size_y, size_z>;

 public:
  struct TempStorage {
    typename Scan::TempStorage scan;
    Key keys[threads * items];
    Value values[pairs ? threads * items : 1];
  };
  __device__ explicit BlockRadixSort(TempStorage& storage) : storage_(storage) {}
  __device__ BlockRadixSort() : storage_(own_storage<TempStorage, BlockRadixSort>()) {}

  __device__ void Sort(Key (&keys)[items], int begin = 0, int end = 8 * sizeof(Key)) {
    Value none[items];
    sort(keys, none, begin, end, false, false);
  }
  __device__ void Sort(Key (&keys)[items], Value (&values)[items], int begin = 0,
                       int end = 8 * sizeof(Key)) {
    sort(keys, values, begin, end, false, false);
  }
  __device__ void SortDescending(Key (&keys)[items], int begin = 0, int end = 8 * sizeof(Key)) {
    Value none[items];
    sort(keys, none, begin, end, true, false);
  }
  __device__ void SortDescending(Key (&keys)[items], Value (&values)[items], int begin = 0,
                                 int end = 8 * sizeof(Key)) {
    sort(keys, values, begin, end, true, false);
  }
  __device__ void SortBlockedToStriped(Key (&keys)[items], int begin = 0,
                                       int end = 8 * sizeof(Key)) {
    Value none[items];
    sort(keys, none, begin, end, false, true);
  }
  __device__ void SortBlockedToStriped(Key (&keys)[items], Value (&values)[items], int begin = 0,
                                       int end = 8 * sizeof(Key)) {
    sort(keys, values, begin, end, false, true);
  }

  __device__ void SortDescendingBlockedToStriped(Key (&keys)[items], int begin = 0,
                                                 int end = 8 * sizeof(Key)) {
    Value none[items];
    sort(keys, none, begin, end, true, true);
  }
  __device__ void SortDescendingBlockedToStriped(Key (&keys)[items], Value (&values)[items],
                                                 int begin = 0, int end = 8 * sizeof(Key)) {
    sort(keys, values, begin, end, true, true);
  }

 private:
  __device__ void sort(Key (&keys)[items], Value (&values)[items], int begin, int end,
                       bool descending, bool to_striped) {
    for (int bit = begin; bit < end; ++bit) {
      int before[items];
      for (int i = 0; i < items; ++i) {
        const bool set = (rung::cuda::ordered_bits(keys[i]) >> bit & 1) != 0;
        before[i] = set == descending ? 1 : 0;  // 1: moves to the front
      }
      int front[items], of_block;
      Scan(storage_.scan).ExclusiveSum(before, front, of_block);
      for (int i = 0; i < items; ++i) {
        const int at = rung_item<threads, items>(i, false);
        const int rank = before[i] != 0 ? front[i] : of_block + at - front[i];
        storage_.keys[rank] = keys[i];
        if constexpr (pairs) storage_.values[rank] = values[i];
      }
      __syncthreads();
      const bool striped = to_striped && bit + 1 == end;
      for (int i = 0; i < items; ++i) {
        const int at = rung_item<threads, items>(i, striped);
        keys[i] = storage_.keys[at];
        if constexpr (pairs) values[i] = storage_.values[at];
      }
      __syncthreads();
    }
  }

  TempStorage& storage_;
};

/// Sorts by comparison, stably. An item's rank is the number of its predecessors, counted in shared
/// memory.
template <class Key, int size_x, int items, class Value = NullType, int size_y = 1, int size_z = 1>
class BlockMergeSort {
  static constexpr int threads = size_x * size_y * size_z;
  static constexpr bool pairs = !std::is_same_v<Value, NullType>;

 public:
  struct TempStorage {
    Key keys[threads * items];
    Value values[pairs ? threads * items : 1];
  };
  __device__ explicit BlockMergeSort(TempStorage& storage) : storage_(storage) {}
  __device__ BlockMergeSort() : storage_(own_storage<TempStorage, BlockMergeSort>()) {}

  template <class Compare>
  __device__ void Sort(Key (&keys)[items], Compare before) {
    Value none[items];
    sort(keys, none, before, threads * items);
  }
  template <class Compare>
  __device__ void Sort(Key (&keys)[items], Value (&values)[items], Compare before) {
    sort(keys, values, before, threads * items);
  }
  /// Sorts the first `valid` items of the block; sets the others to `otherwise`.
  template <class Compare>
  __device__ void Sort(Key (&keys)[items], Compare before, int valid, Key otherwise) {
    Value none[items];
    fill_up(keys, valid, otherwise);
    sort(keys, none, before, valid);
  }
  template <class Compare>
  __device__ void Sort(Key (&keys)[items], Value (&values)[items], Compare before, int valid,
                       Key otherwise) {
    fill_up(keys, valid, otherwise);
    sort(keys, values, before, valid);
  }
  template <class Compare>
  __device__ void StableSort(Key (&keys)[items], Compare before) {
    Sort(keys, before);
  }
  template <class Compare>
  __device__ void StableSort(Key (&keys)[items], Value (&values)[items], Compare before) {
    Sort(keys, values, before);
  }

 private:
  __device__ static void fill_up(Key (&keys)[items], int valid, const Key& otherwise) {
    for (int i = 0; i < items; ++i) {
      if (rung_item<threads, items>(i, false) >= valid) keys[i] = otherwise;
    }
  }
  template <class Compare>
  __device__ void sort(Key (&keys)[items], Value (&values)[items], Compare before, int valid) {
    for (int i = 0; i < items; ++i) storage_.keys[rung_item<threads, items>(i, false)] = keys[i];
    __syncthreads();
    int ranks[items];
    for (int i = 0; i < items; ++i) {
      const int mine = rung_item<threads, items>(i, false);
      ranks[i] = mine < valid ? 0 : mine;
      for (int other = 0; mine < valid && other < valid; ++other) {
        const bool first = other < mine ? !before(keys[i], storage_.keys[other])
                                        : before(storage_.keys[other], keys[i]);
        ranks[i] += first ? 1 : 0;
      }
    }
    __syncthreads();
    for (int i = 0; i < items; ++i) {
      storage_.keys[ranks[i]] = keys[i];
      if constexpr (pairs) storage_.values[ranks[i]] = values[i];
    }
    __syncthreads();
    for (int i = 0; i < items; ++i) {
      const int mine = rung_item<threads, items>(i, false);
      keys[i] = storage_.keys[mine];
      if constexpr (pairs) values[i] = storage_.values[mine];
    }
  }

  TempStorage& storage_;
};

}  // namespace cub
