// SPDX-License-Identifier: Apache-2.0
// CUB merge sorts, segmented sorts, transformations, and utilities used in CUB's examples.
#pragma once

#include "rung_cuda/cub_device.h"

#define CUB_VERSION 300000
#define CUB_PTX_WARP_THREADS 32
#define CUB_WARP_THREADS(unused) 32
#define CubDebug(call) ::cub::Debug((call), __FILE__, __LINE__)
#define CubDebugExit(call) \
  if (::cub::Debug((call), __FILE__, __LINE__) != cudaSuccess) exit(1)

namespace rung::cuda {

/// Sorts stably, using spare buffers of the same size. `values` may be null.
template <class Keys, class Values, class Key, class Value, class Compare>
__device__ void merge_sort(Keys keys, Values values, Key* spare_keys, Value* spare_values,
                           long long count, Compare before) {
  constexpr bool pairs = !std::is_null_pointer_v<Values>;
  for (long long width = 1; width < count; width *= 2) {
    for (long long begin = 0; begin < count; begin += 2 * width) {
      const long long middle = min(begin + width, count), end = min(begin + 2 * width, count);
      long long left = begin, right = middle;
      for (long long to = begin; to < end; ++to) {
        const bool from_left = left < middle && (right == end || !before(keys[right], keys[left]));
        const long long from = from_left ? left++ : right++;
        spare_keys[to] = keys[from];
        if constexpr (pairs) spare_values[to] = values[from];
      }
    }
    for (long long i = 0; i < count; ++i) {
      keys[i] = spare_keys[i];
      if constexpr (pairs) values[i] = spare_values[i];
    }
  }
}
/// Layout and size of the temporary storage of a sort.
template <class Key, class Value>
struct SpareRoom {
  size_t for_keys, bytes;
  explicit SpareRoom(long long count)
      : for_keys((static_cast<size_t>(count) * sizeof(Key) + 255) / 256 * 256),
        bytes(for_keys + static_cast<size_t>(count) * sizeof(Value) + 1) {}
  Key* keys(void* storage) const { return static_cast<Key*>(storage); }
  Value* values(void* storage) const {
    return reinterpret_cast<Value*>(static_cast<char*>(storage) + for_keys);
  }
};

}  // namespace rung::cuda

namespace cub {

inline cudaError_t Debug(cudaError_t error, const char* file, int line) {
  if (error != cudaSuccess) {
    fprintf(stderr, "CUDA error %d [%s, %d]: %s\n", error, file, line, cudaGetErrorString(error));
  }
  return error;
}
__device__ inline unsigned LaneId() { return rung::cuda::thread_of_block() % 32; }
__device__ inline unsigned WarpId() { return rung::cuda::thread_of_block() / 32; }

struct DeviceMergeSort {
  template <class Keys, class Count, class Compare>
  static cudaError_t SortKeys(void* storage, size_t& bytes, Keys keys, Count count, Compare before,
                              cudaStream_t stream = nullptr) {
    const rung::cuda::SpareRoom<rung::cuda::ValueOf<Keys>, char> room(count);
    if (rung::cuda::queries_storage(storage, bytes, room.bytes)) return cudaSuccess;
    return rung::cuda::run_in_one_thread(stream, [=] {
      rung::cuda::merge_sort(keys, nullptr, room.keys(storage), room.values(storage), count,
                             before);
    });
  }
  template <class Keys, class Values, class Count, class Compare>
  static cudaError_t SortPairs(void* storage, size_t& bytes, Keys keys, Values values, Count count,
                               Compare before, cudaStream_t stream = nullptr) {
    const rung::cuda::SpareRoom<rung::cuda::ValueOf<Keys>, rung::cuda::ValueOf<Values>> room(count);
    if (rung::cuda::queries_storage(storage, bytes, room.bytes)) return cudaSuccess;
    return rung::cuda::run_in_one_thread(stream, [=] {
      rung::cuda::merge_sort(keys, values, room.keys(storage), room.values(storage), count, before);
    });
  }
  template <class Keys, class Count, class Compare>
  static cudaError_t StableSortKeys(void* storage, size_t& bytes, Keys keys, Count count,
                                    Compare before, cudaStream_t stream = nullptr) {
    return SortKeys(storage, bytes, keys, count, before, stream);
  }
  template <class Keys, class Values, class Count, class Compare>
  static cudaError_t StableSortPairs(void* storage, size_t& bytes, Keys keys, Values values,
                                     Count count, Compare before, cudaStream_t stream = nullptr) {
    return SortPairs(storage, bytes, keys, values, count, before, stream);
  }
};

struct DeviceSegmentedSort {
  template <class Key, class Count, class Begin, class End>
  static cudaError_t SortKeys(void* storage, size_t& bytes, const Key* in, Key* out, Count count,
                              int segments, Begin begin, End end, cudaStream_t stream = nullptr) {
    return sort<char>(storage, bytes, in, out, nullptr, nullptr, count, segments, begin, end,
                      stream, less);
  }
  template <class Key, class Count, class Begin, class End>
  static cudaError_t SortKeysDescending(void* storage, size_t& bytes, const Key* in, Key* out,
                                        Count count, int segments, Begin begin, End end,
                                        cudaStream_t stream = nullptr) {
    return sort<char>(storage, bytes, in, out, nullptr, nullptr, count, segments, begin, end,
                      stream, greater);
  }
  template <class Key, class Value, class Count, class Begin, class End>
  static cudaError_t SortPairs(void* storage, size_t& bytes, const Key* in, Key* out,
                               const Value* values_in, Value* values_out, Count count, int segments,
                               Begin begin, End end, cudaStream_t stream = nullptr) {
    return sort<Value>(storage, bytes, in, out, values_in, values_out, count, segments, begin, end,
                       stream, less);
  }
  template <class Key, class Value, class Count, class Begin, class End>
  static cudaError_t SortPairsDescending(void* storage, size_t& bytes, const Key* in, Key* out,
                                         const Value* values_in, Value* values_out, Count count,
                                         int segments, Begin begin, End end,
                                         cudaStream_t stream = nullptr) {
    return sort<Value>(storage, bytes, in, out, values_in, values_out, count, segments, begin, end,
                       stream, greater);
  }
  template <class Key, class Count, class Begin, class End>
  static cudaError_t StableSortKeys(void* storage, size_t& bytes, const Key* in, Key* out,
                                    Count count, int segments, Begin begin, End end,
                                    cudaStream_t stream = nullptr) {
    return SortKeys(storage, bytes, in, out, count, segments, begin, end, stream);
  }
  template <class Key, class Value, class Count, class Begin, class End>
  static cudaError_t StableSortPairs(void* storage, size_t& bytes, const Key* in, Key* out,
                                     const Value* values_in, Value* values_out, Count count,
                                     int segments, Begin begin, End end,
                                     cudaStream_t stream = nullptr) {
    return SortPairs(storage, bytes, in, out, values_in, values_out, count, segments, begin, end,
                     stream);
  }

 private:
  static constexpr auto less = [](const auto& a, const auto& b) { return a < b; };
  static constexpr auto greater = [](const auto& a, const auto& b) { return b < a; };
  template <class Value, class Key, class From, class To, class Begin, class End, class Compare>
  static cudaError_t sort(void* storage, size_t& bytes, const Key* in, Key* out, From values_in,
                          To values_out, long long count, int segments, Begin begin, End end,
                          cudaStream_t stream, Compare before) {
    const rung::cuda::SpareRoom<Key, Value> room(count);
    if (rung::cuda::queries_storage(storage, bytes, room.bytes)) return cudaSuccess;
    return rung::cuda::run_in_one_thread(stream, [=] {
      for (int segment = 0; segment < segments; ++segment) {
        const long long first = begin[segment], last = end[segment];
        To values = nullptr;
        for (long long i = first; i < last; ++i) {
          out[i] = in[i];
          if constexpr (!std::is_null_pointer_v<To>) values_out[i] = values_in[i];
        }
        if constexpr (!std::is_null_pointer_v<To>) values = values_out + first;
        rung::cuda::merge_sort(out + first, values, room.keys(storage), room.values(storage),
                               last - first, before);
      }
    });
  }
};
using DeviceSegmentedRadixSort = DeviceSegmentedSort;

/// Runs body(i) or body(*(begin + i)) for each i, as a loop in one simulated thread.
struct DeviceFor {
  template <class Count, class Body>
  static cudaError_t Bulk(Count count, Body body, cudaStream_t stream = nullptr) {
    return rung::cuda::run_in_one_thread(stream, [=] {
      for (Count i = 0; i < count; ++i) body(i);
    });
  }
  template <class Iterator, class Body>
  static cudaError_t ForEach(Iterator begin, Iterator end, Body body,
                             cudaStream_t stream = nullptr) {
    return ForEachN(begin, end - begin, body, stream);
  }
  template <class Iterator, class Count, class Body>
  static cudaError_t ForEachN(Iterator begin, Count count, Body body,
                              cudaStream_t stream = nullptr) {
    return rung::cuda::run_in_one_thread(stream, [=] {
      for (Count i = 0; i < count; ++i) body(begin[i]);
    });
  }
};

struct DeviceAdjacentDifference {
  template <class In, class Out, class Count, class Difference>
  static cudaError_t SubtractLeftCopy(void* storage, size_t& bytes, In in, Out out, Count count,
                                      Difference difference, cudaStream_t stream = nullptr) {
    return rung::cuda::device_wide(storage, bytes, stream, [=] {
      for (Count i = 0; i < count; ++i) out[i] = i == 0 ? in[i] : difference(in[i], in[i - 1]);
    });
  }
  template <class In, class Out, class Count, class Difference>
  static cudaError_t SubtractRightCopy(void* storage, size_t& bytes, In in, Out out, Count count,
                                       Difference difference, cudaStream_t stream = nullptr) {
    return rung::cuda::device_wide(storage, bytes, stream, [=] {
      for (Count i = 0; i < count; ++i) {
        out[i] = i + 1 == count ? in[i] : difference(in[i], in[i + 1]);
      }
    });
  }
};

/// Allocator that does not cache: each call allocates or frees memory.
struct CachingDeviceAllocator {
  explicit CachingDeviceAllocator(bool = false) {}
  CachingDeviceAllocator(unsigned, unsigned = 1, unsigned = ~0u, size_t = ~size_t{0},
                         bool = false) {}
  cudaError_t DeviceAllocate(void** memory, size_t bytes, cudaStream_t = nullptr) {
    return cudaMalloc(memory, bytes);
  }
  cudaError_t DeviceFree(void* memory) { return cudaFree(memory); }
  cudaError_t FreeAllCached() { return cudaSuccess; }
};

}  // namespace cub
