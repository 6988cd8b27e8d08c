// SPDX-License-Identifier: Apache-2.0
// CUB block loads, stores and exchanges.
#pragma once

#include "rung_cuda/cub_block_scan.h"

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

/// Returns the index in the block's array of this thread's item `i`. CUB's algorithms that
/// transpose through shared memory give each thread the same items as a direct load.
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

// Functions with an explicit thread index.
template <class T, int items, class Input>
__device__ void LoadDirectBlocked(int thread, Input from, T (&to)[items]) {
  for (int i = 0; i < items; ++i) to[i] = from[thread * items + i];
}
template <class T, int items, class Input>
__device__ void LoadDirectBlocked(int thread, Input from, T (&to)[items], int valid) {
  for (int i = 0; i < items && thread * items + i < valid; ++i) to[i] = from[thread * items + i];
}
template <int threads, class T, int items, class Input>
__device__ void LoadDirectStriped(int thread, Input from, T (&to)[items]) {
  for (int i = 0; i < items; ++i) to[i] = from[thread + i * threads];
}
template <int threads, class T, int items, class Input>
__device__ void LoadDirectStriped(int thread, Input from, T (&to)[items], int valid) {
  for (int i = 0; i < items && thread + i * threads < valid; ++i)
    to[i] = from[thread + i * threads];
}
template <class T, int items, class Output>
__device__ void StoreDirectBlocked(int thread, Output to, T (&from)[items]) {
  for (int i = 0; i < items; ++i) to[thread * items + i] = from[i];
}
template <class T, int items, class Output>
__device__ void StoreDirectBlocked(int thread, Output to, T (&from)[items], int valid) {
  for (int i = 0; i < items && thread * items + i < valid; ++i) to[thread * items + i] = from[i];
}
template <int threads, class T, int items, class Output>
__device__ void StoreDirectStriped(int thread, Output to, T (&from)[items]) {
  for (int i = 0; i < items; ++i) to[thread + i * threads] = from[i];
}
template <int threads, class T, int items, class Output>
__device__ void StoreDirectStriped(int thread, Output to, T (&from)[items], int valid) {
  for (int i = 0; i < items && thread + i * threads < valid; ++i)
    to[thread + i * threads] = from[i];
}

template <class T, int size_x, int items, bool = false, int size_y = 1, int size_z = 1, int = 0>
class BlockExchange {
  static constexpr int threads = size_x * size_y * size_z;

 public:
  struct TempStorage {
    T values[threads * items];
  };
  __device__ explicit BlockExchange(TempStorage& storage) : storage_(storage) {}
  __device__ BlockExchange() : storage_(own_storage<TempStorage, BlockExchange>()) {}

  template <class Output>
  __device__ void StripedToBlocked(const T (&inputs)[items], Output (&outputs)[items]) {
    move(inputs, outputs, true, false);
  }
  template <class Output>
  __device__ void BlockedToStriped(const T (&inputs)[items], Output (&outputs)[items]) {
    move(inputs, outputs, false, true);
  }
  __device__ void StripedToBlocked(T (&both)[items]) { move(both, both, true, false); }
  __device__ void BlockedToStriped(T (&both)[items]) { move(both, both, false, true); }
  template <class Rank>
  __device__ void ScatterToBlocked(T (&both)[items], Rank (&ranks)[items]) {
    ScatterToBlocked(both, both, ranks);
  }
  template <class Rank>
  __device__ void ScatterToStriped(T (&both)[items], Rank (&ranks)[items]) {
    ScatterToStriped(both, both, ranks);
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

}  // namespace cub
