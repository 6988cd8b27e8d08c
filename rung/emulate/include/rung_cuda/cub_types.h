// SPDX-License-Identifier: Apache-2.0
// Common parts of CUB: operators, pairs, iterators, and shuffles of any type.
#pragma once

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "rung_cuda/function_objects.h"
#include "rung_cuda/one_thread.h"

namespace cub {

struct Sum {
  template <class A, class B>
  __host__ __device__ auto operator()(const A& a, const B& b) const {
    return a + b;
  }
};
struct Max {
  template <class T>
  __host__ __device__ T operator()(const T& a, const T& b) const {
    return a < b ? b : a;
  }
};
struct Min {
  template <class T>
  __host__ __device__ T operator()(const T& a, const T& b) const {
    return b < a ? b : a;
  }
};
struct Equality {
  template <class A, class B>
  __host__ __device__ bool operator()(const A& a, const B& b) const {
    return a == b;
  }
};

template <class Key, class Value>
struct KeyValuePair {
  typedef Key key_type;
  typedef Value value_type;
  Key key;
  Value value;
};
/// Operator that selects the larger value; for equal values, the smaller index.
struct ArgMax {
  template <class T, class Index>
  __host__ __device__ KeyValuePair<Index, T> operator()(const KeyValuePair<Index, T>& a,
                                                        const KeyValuePair<Index, T>& b) const {
    return a.value < b.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <class T, class Index>
  __host__ __device__ KeyValuePair<Index, T> operator()(const KeyValuePair<Index, T>& a,
                                                        const KeyValuePair<Index, T>& b) const {
    return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};

template <class Value, class Conversion, class Input, class Offset = ptrdiff_t>
struct TransformInputIterator {
  typedef Value value_type;
  typedef Offset difference_type;
  Input input;
  Conversion conversion;
  __host__ __device__ TransformInputIterator(Input from, Conversion by)
      : input(from), conversion(by) {}
  __host__ __device__ Value operator*() const { return conversion(*input); }
  template <class Index>
  __host__ __device__ Value operator[](Index i) const {
    return conversion(input[i]);
  }
  template <class Index>
  __host__ __device__ TransformInputIterator operator+(Index i) const {
    return {input + i, conversion};
  }
};
template <class Value, class Offset = ptrdiff_t>
struct CountingInputIterator {
  typedef Value value_type;
  typedef Offset difference_type;
  Value value;
  __host__ __device__ explicit CountingInputIterator(Value first) : value(first) {}
  __host__ __device__ Value operator*() const { return value; }
  template <class Index>
  __host__ __device__ Value operator[](Index i) const {
    return value + static_cast<Value>(i);
  }
  template <class Index>
  __host__ __device__ CountingInputIterator operator+(Index i) const {
    return CountingInputIterator(value + static_cast<Value>(i));
  }
};
template <class Value, class Offset = ptrdiff_t>
struct ConstantInputIterator {
  typedef Value value_type;
  typedef Offset difference_type;
  Value value;
  __host__ __device__ explicit ConstantInputIterator(Value of, Offset = 0) : value(of) {}
  __host__ __device__ Value operator*() const { return value; }
  template <class Index>
  __host__ __device__ Value operator[](Index) const {
    return value;
  }
  template <class Index>
  __host__ __device__ ConstantInputIterator operator+(Index) const {
    return *this;
  }
};

/// A pair of buffers, one of which is current.
template <class T>
struct DoubleBuffer {
  T* d_buffers[2];
  int selector = 0;
  __host__ __device__ DoubleBuffer() : d_buffers{nullptr, nullptr} {}
  __host__ __device__ DoubleBuffer(T* current, T* other) : d_buffers{current, other} {}
  __host__ __device__ T* Current() { return d_buffers[selector]; }
  __host__ __device__ T* Alternate() { return d_buffers[selector ^ 1]; }
};

struct NullType {};

/// True if `Operation` combines two values of type T.
template <class Operation, class T>
inline constexpr bool is_operation = std::is_invocable_r_v<T, Operation&, T, T>;

/// Returns storage in the block's shared memory, for a collective constructed without storage.
template <class Storage, class Collective>
__device__ inline Storage& own_storage() {
  return rung::cuda::shared_variable<Storage, Collective, alignof(Storage)>();
}

}  // namespace cub

namespace rung::cuda {

/// Shuffles a value of any size, word by word.
template <class T, class Shuffle>
__device__ inline T shuffle_words(const T& value, Shuffle shuffle) {
  constexpr int count = (sizeof(T) + 3) / 4;
  unsigned words[count] = {};
  __builtin_memcpy(words, &value, sizeof(T));
  for (unsigned& word : words) word = shuffle(word);
  T moved;
  __builtin_memcpy(static_cast<void*>(&moved), words, sizeof(T));
  return moved;
}

__device__ inline int thread_of_block() {
  return static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}

/// The lanes that exist in this thread's group of `width` lanes.
struct LaneGroup {
  int lane, lanes;
  unsigned mask;
  __device__ explicit LaneGroup(int width) {
    const int thread = thread_of_block();
    const int threads = static_cast<int>(blockDim.x * blockDim.y * blockDim.z);
    lane = thread % width;
    lanes = min(width, threads - (thread - lane));
    const int first = (thread % 32) - lane;
    mask = (lanes == 32 ? ~0u : (1u << lanes) - 1) << first;
  }
};

/// Reduces the values of the first `valid` lanes in order; the result is in lane 0.
template <class T, class Operation>
__device__ inline T reduce_lanes(T value, Operation operation, int width, int valid) {
  const LaneGroup group(width);
  for (int step = 1; step < width; step *= 2) {
    const T other = shuffle_words(value, [&](unsigned word) {
      return __shfl_down_sync(group.mask, word, static_cast<unsigned>(step), width);
    });
    if (group.lane + step < min(valid, group.lanes)) value = operation(value, other);
  }
  return value;
}
template <class T, class Operation>
__device__ inline T scan_lanes(T value, Operation operation, int width) {
  const LaneGroup group(width);
  for (int step = 1; step < width; step *= 2) {
    const T other = shuffle_words(value, [&](unsigned word) {
      return __shfl_up_sync(group.mask, word, static_cast<unsigned>(step), width);
    });
    if (group.lane >= step) value = operation(other, value);
  }
  return value;
}

}  // namespace rung::cuda
