// SPDX-License-Identifier: Apache-2.0
// Thread coarsening: a thread scans several neighboring elements sequentially, and the block scans
// the threads' totals. Elements pass through shared memory: global accesses are coalesced, and each
// thread still gets a contiguous run of elements.
//
// Serves any operation, with or without segments: values are Flagged, the operation a run-time
// value.
#pragma once

#include "rung/ops/scan/cuda/detail/heads.hpp"

namespace rung::inline RUNG_TARGET::scan_cuda {

template <class T>
struct Coarse {
  using Value = ScanState<T>;
  using State = Flagged<Value>;
  static constexpr int threads = 256;
  static constexpr int items = 8;  // per thread
  static constexpr int elements = threads * items;

  struct Shared {
    // Padded by one element, so that lanes 8 elements apart do not share a bank.
    Value value[threads][items + 1];
    WarpValues<State, threads> warps;
  };

  Value value[items];
  unsigned heads;  // bit i: a segment begins at value[i]

  /// Loads the tile's elements element(0) to element(elements - 1).
  template <class F>
  __device__ __forceinline__ void load(Shared& memory, const F& element) {
    const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int i = k * threads + thread;
      memory.value[i / items][i % items] = element(i);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < items; ++k) value[k] = memory.value[thread][k];
  }

  /// Loads head(i) for each element i: whether a segment begins at it.
  template <class F>
  __device__ __forceinline__ void load_heads(const F& head) {
    heads = 0;
#pragma unroll
    for (int k = 0; k < items; ++k) {
      if (head(static_cast<int>(threadIdx.x) * items + k)) heads |= 1u << k;
    }
  }

  [[nodiscard]] __device__ __forceinline__ State total(const Segmented<T>& policy) const {
    State sum{value[0], heads};
#pragma unroll
    for (int k = 1; k < items; ++k) {
      sum.value = (heads >> k & 1) != 0 ? value[k] : policy.functor(sum.value, value[k]);
    }
    return sum;
  }

  /// Calls store(i, result) for the tile's elements; `before` is this thread's prefix.
  template <class F>
  __device__ __forceinline__ void finish(Shared& memory, const Segmented<T>& policy,
                                         const State& before, bool exclusive, const F& store) {
    const int thread = static_cast<int>(threadIdx.x);
    Value running = before.value;
#pragma unroll
    for (int k = 0; k < items; ++k) {
      if ((heads >> k & 1) != 0) running = policy.identity.value;
      const Value after = policy.functor(running, value[k]);
      memory.value[thread][k] = exclusive ? running : after;
      running = after;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int i = k * threads + thread;
      store(i, memory.value[i / items][i % items]);
    }
    __syncthreads();
  }

  /// Loads the tile at element `first` of a line.
  __device__ __forceinline__ void load_line(Shared& memory, const Lines<T>& lines,
                                            const Segmented<T>& policy, std::int64_t line,
                                            std::int64_t first) {
    const T* x = lines.x_of(line) + first * lines.x_stride;
    const std::int64_t valid = lines.n - first;
    load(memory, [&](int i) {
      return i < valid ? convert<Value>(x[i * lines.x_stride]) : policy.identity.value;
    });
    const unsigned* words = lines.heads;
    load_heads([&](int i) {
      const std::int64_t at = first + i;
      return words != nullptr && i < valid && (words[at / 32] >> (at % 32) & 1) != 0;
    });
  }
  __device__ __forceinline__ void finish_line(Shared& memory, const Lines<T>& lines,
                                              const Segmented<T>& policy, std::int64_t line,
                                              std::int64_t first, const State& before,
                                              bool exclusive) {
    T* y = lines.y_of(line) + first * lines.y_stride;
    const std::int64_t valid = lines.n - first;
    finish(memory, policy, before, exclusive, [&](int i, Value result) {
      if (i < valid) y[i * lines.y_stride] = convert<T>(result);
    });
  }
};

/// Returns unsupported for types that the textbook rungs are not compiled for; segmented_look_back
/// takes all types.
inline Support supports_coarse(const Scan::Args& args, const Context&) {
  return DTypes<float, double, std::int32_t>::contains(args.x.dtype)
             ? supported
             : unsupported("f32, f64 and i32 only");
}

/// Builds the bitmap of heads at `words`, if there are segments.
template <class T>
void add_heads(Context& context, const Scan::Args& args, unsigned* words, Lines<T>& lines) {
  if (!args.has_segments()) return;
  clear_words(context, words, head_words(args));
  mark_heads(context, args, words);
  lines.heads = words;
}

}  // namespace rung::inline RUNG_TARGET::scan_cuda
