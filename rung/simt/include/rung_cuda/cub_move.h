// SPDX-License-Identifier: Apache-2.0
// CUB's loads, stores, exchanges and radix sort of a block.
#pragma once

#include "rung_cuda/cub_block.h"

namespace cub {

enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};
enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};

/// Where item `i` of this thread lies in the block's array. Transposing through shared memory, as
/// some of CUB's algorithms do, gives a thread the same items as loading them directly.
template <int threads, int items>
__device__ inline int rung_item(int i, bool striped) {
  const int thread = rung::cuda::thread_of_block();
  return striped ? i * threads + thread : thread * items + i;
}

template <class T, int size_x, int items, BlockLoadAlgorithm algorithm = BLOCK_LOAD_DIRECT,
          int size_y = 1, int size_z = 1, int = 0>
class BlockLoad {
  static constexpr int threads = size_x * size_y * size_z;
  static constexpr bool striped = algorithm == BLOCK_LOAD_STRIPED;

 public:
  struct TempStorage {};
  __device__ explicit BlockLoad(TempStorage&) {}
  __device__ BlockLoad() = default;

  template <class Input>
  __device__ void Load(Input from, T (&to)[items]) {
    Load(from, to, threads * items);
  }
  template <class Input>
  __device__ void Load(Input from, T (&to)[items], int valid) {
    for (int i = 0; i < items; ++i) {
      const int at = rung_item<threads, items>(i, striped);
      if (at < valid) to[i] = from[at];
    }
  }
  template <class Input, class Default>
  __device__ void Load(Input from, T (&to)[items], int valid, Default otherwise) {
    for (T& item : to) item = otherwise;
    Load(from, to, valid);
  }
};

template <class T, int size_x, int items, BlockStoreAlgorithm algorithm = BLOCK_STORE_DIRECT,
          int size_y = 1, int size_z = 1, int = 0>
class BlockStore {
  static constexpr int threads = size_x * size_y * size_z;
  static constexpr bool striped = algorithm == BLOCK_STORE_STRIPED;

 public:
  struct TempStorage {};
  __device__ explicit BlockStore(TempStorage&) {}
  __device__ BlockStore() = default;

  template <class Output>
  __device__ void Store(Output to, T (&from)[items]) {
    Store(to, from, threads * items);
  }
  template <class Output>
  __device__ void Store(Output to, T (&from)[items], int valid) {
    for (int i = 0; i < items; ++i) {
      const int at = rung_item<threads, items>(i, striped);
      if (at < valid) to[at] = from[i];
    }
  }
};

template <class T, int size_x, int items, bool = false, int size_y = 1, int size_z = 1, int = 0>
class BlockExchange {
  static constexpr int threads = size_x * size_y * size_z;

 public:
  struct TempStorage {
    T values[threads * items];
  };
  __device__ explicit BlockExchange(TempStorage& storage) : storage_(storage) {}

  template <class Output>
  __device__ void StripedToBlocked(const T (&inputs)[items], Output (&outputs)[items]) {
    move(inputs, outputs, true, false);
  }
  template <class Output>
  __device__ void BlockedToStriped(const T (&inputs)[items], Output (&outputs)[items]) {
    move(inputs, outputs, false, true);
  }
  template <class Output, class Rank>
  __device__ void ScatterToBlocked(const T (&inputs)[items], Output (&outputs)[items],
                                   Rank (&ranks)[items]) {
    for (int i = 0; i < items; ++i) storage_.values[ranks[i]] = inputs[i];
    gather(outputs, false);
  }
  template <class Output, class Rank>
  __device__ void ScatterToStriped(const T (&inputs)[items], Output (&outputs)[items],
                                   Rank (&ranks)[items]) {
    for (int i = 0; i < items; ++i) storage_.values[ranks[i]] = inputs[i];
    gather(outputs, true);
  }

 private:
  template <class Output>
  __device__ void move(const T (&inputs)[items], Output (&outputs)[items], bool from_striped,
                       bool to_striped) {
    for (int i = 0; i < items; ++i) {
      storage_.values[rung_item<threads, items>(i, from_striped)] = inputs[i];
    }
    gather(outputs, to_striped);
  }
  template <class Output>
  __device__ void gather(Output (&outputs)[items], bool striped) {
    __syncthreads();
    for (int i = 0; i < items; ++i) {
      outputs[i] = storage_.values[rung_item<threads, items>(i, striped)];
    }
  }

  TempStorage& storage_;
};

/// One bit after another: keys with a clear bit go before those with a set one, in their order.
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

 private:
  __device__ void sort(Key (&keys)[items], Value (&values)[items], int begin, int end,
                       bool descending, bool to_striped) {
    for (int bit = begin; bit < end; ++bit) {
      int before[items];
      for (int i = 0; i < items; ++i) {
        const bool set = (rung::cuda::ordered_bits(keys[i]) >> bit & 1) != 0;
        before[i] = set == descending ? 1 : 0;  // goes to the front
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

}  // namespace cub
