// SPDX-License-Identifier: Apache-2.0
// CUB device-wide radix sort: stable, over a range of bits, one byte at a time.
#pragma once

#include "rung_cuda/cub_device.h"

namespace rung::cuda {

template <class T>
__device__ void swap_pointers(T*& a, T*& b) {
  T* const former = a;
  a = b;
  b = former;
}

/// Sorts `count` pairs in `keys` and `values`, using the buffers `keys_2` and `values_2`. Returns
/// true if the result is in these buffers. For a sort of keys only, the two value pointers are
/// null.
template <class Key, class Value, class Count>
__device__ bool radix_sort(Key* keys, Key* keys_2, Value* values, Value* values_2, Count count,
                           int begin, int end, bool descending) {
  bool in_second = false;
  for (int bit = begin; bit < end; bit += 8) {
    const int bits = end - bit < 8 ? end - bit : 8;
    const auto digit = [&](const Key& key) {
      const auto ordered = ordered_bits(key);
      const auto one = static_cast<unsigned>(ordered >> bit) & ((1u << bits) - 1);
      return descending ? (1u << bits) - 1 - one : one;
    };
    Count start[257] = {};
    for (Count i = 0; i < count; ++i) ++start[digit(keys[i]) + 1];
    for (int i = 0; i < 256; ++i) start[i + 1] += start[i];
    for (Count i = 0; i < count; ++i) {
      const Count to = start[digit(keys[i])]++;
      keys_2[to] = keys[i];
      if (values != nullptr) values_2[to] = values[i];
    }
    swap_pointers(keys, keys_2);
    swap_pointers(values, values_2);
    in_second = !in_second;
  }
  return in_second;
}

}  // namespace rung::cuda

namespace cub {

struct DeviceRadixSort {
  template <class Key, class Count>
  static cudaError_t SortKeys(void* storage, size_t& bytes, const Key* in, Key* out, Count count,
                              int begin = 0, int end = 8 * sizeof(Key),
                              cudaStream_t stream = nullptr) {
    const char* const none = nullptr;
    return sort(storage, bytes, in, out, none, static_cast<char*>(nullptr), count, begin, end,
                false, stream);
  }
  template <class Key, class Count>
  static cudaError_t SortKeysDescending(void* storage, size_t& bytes, const Key* in, Key* out,
                                        Count count, int begin = 0, int end = 8 * sizeof(Key),
                                        cudaStream_t stream = nullptr) {
    const char* const none = nullptr;
    return sort(storage, bytes, in, out, none, static_cast<char*>(nullptr), count, begin, end, true,
                stream);
  }
  template <class Key, class Value, class Count>
  static cudaError_t SortPairs(void* storage, size_t& bytes, const Key* in, Key* out,
                               const Value* values_in, Value* values_out, Count count,
                               int begin = 0, int end = 8 * sizeof(Key),
                               cudaStream_t stream = nullptr) {
    return sort(storage, bytes, in, out, values_in, values_out, count, begin, end, false, stream);
  }
  template <class Key, class Value, class Count>
  static cudaError_t SortPairsDescending(void* storage, size_t& bytes, const Key* in, Key* out,
                                         const Value* values_in, Value* values_out, Count count,
                                         int begin = 0, int end = 8 * sizeof(Key),
                                         cudaStream_t stream = nullptr) {
    return sort(storage, bytes, in, out, values_in, values_out, count, begin, end, true, stream);
  }
  template <class Key, class Count>
  static cudaError_t SortKeys(void* storage, size_t& bytes, DoubleBuffer<Key>& keys, Count count,
                              int begin = 0, int end = 8 * sizeof(Key),
                              cudaStream_t stream = nullptr) {
    DoubleBuffer<char> none;
    return sort_buffers(storage, bytes, keys, none, count, begin, end, false, stream);
  }
  template <class Key, class Count>
  static cudaError_t SortKeysDescending(void* storage, size_t& bytes, DoubleBuffer<Key>& keys,
                                        Count count, int begin = 0, int end = 8 * sizeof(Key),
                                        cudaStream_t stream = nullptr) {
    DoubleBuffer<char> none;
    return sort_buffers(storage, bytes, keys, none, count, begin, end, true, stream);
  }
  template <class Key, class Value, class Count>
  static cudaError_t SortPairsDescending(void* storage, size_t& bytes, DoubleBuffer<Key>& keys,
                                         DoubleBuffer<Value>& values, Count count, int begin = 0,
                                         int end = 8 * sizeof(Key), cudaStream_t stream = nullptr) {
    return sort_buffers(storage, bytes, keys, values, count, begin, end, true, stream);
  }
  template <class Key, class Value, class Count>
  static cudaError_t SortPairs(void* storage, size_t& bytes, DoubleBuffer<Key>& keys,
                               DoubleBuffer<Value>& values, Count count, int begin = 0,
                               int end = 8 * sizeof(Key), cudaStream_t stream = nullptr) {
    return sort_buffers(storage, bytes, keys, values, count, begin, end, false, stream);
  }

 private:
  /// Sorts with the second buffers in temporary storage, which leaves the input unchanged.
  template <class Key, class Value, class Count>
  static cudaError_t sort(void* storage, size_t& bytes, const Key* in, Key* out,
                          const Value* values_in, Value* values_out, Count count, int begin,
                          int end, bool descending, cudaStream_t stream) {
    const auto n = static_cast<size_t>(count);
    const size_t for_keys = (n * sizeof(Key) + 255) / 256 * 256;
    const size_t needed = for_keys + n * sizeof(Value) + 1;
    if (rung::cuda::queries_storage(storage, bytes, needed)) return cudaSuccess;
    Key* const other = static_cast<Key*>(storage);
    Value* other_values = nullptr;
    if (values_in != nullptr) {
      other_values = reinterpret_cast<Value*>(static_cast<char*>(storage) + for_keys);
    }
    return rung::cuda::run_in_one_thread(stream, [=] {
      const bool pairs = values_in != nullptr;
      for (Count i = 0; i < count; ++i) {
        out[i] = in[i];
        if (pairs) values_out[i] = values_in[i];
      }
      if (!rung::cuda::radix_sort(out, other, pairs ? values_out : nullptr, other_values, count,
                                  begin, end, descending)) {
        return;
      }
      for (Count i = 0; i < count; ++i) {
        out[i] = other[i];
        if (pairs) values_out[i] = other_values[i];
      }
    });
  }
  template <class Key, class Value, class Count>
  static cudaError_t sort_buffers(void* storage, size_t& bytes, DoubleBuffer<Key>& keys,
                                  DoubleBuffer<Value>& values, Count count, int begin, int end,
                                  bool descending, cudaStream_t stream) {
    if (rung::cuda::queries_storage(storage, bytes)) return cudaSuccess;
    Key *const from = keys.Current(), *const to = keys.Alternate();
    Value *const values_from = values.Current(), *const values_to = values.Alternate();
    if ((end - begin + 7) / 8 % 2 != 0) {
      keys.selector ^= 1;
      values.selector ^= 1;
    }
    return rung::cuda::run_in_one_thread(stream, [=] {
      rung::cuda::radix_sort(from, to, values_from, values_to, count, begin, end, descending);
    });
  }
};

}  // namespace cub
