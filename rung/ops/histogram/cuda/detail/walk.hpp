// SPDX-License-Identifier: Apache-2.0
// Code of histogram's fast CUDA rungs: loads of a contiguous x in 16-byte packs at any alignment,
// and the addition of a block's tables to counts.
#pragma once

#include "rung/core/bounds.hpp"
#include "rung/device/collectives.hpp"
#include "rung/device/load.hpp"
#include "rung/device/ptx/shared.hpp"
#include "rung/ops/histogram/cuda/detail/histogram.hpp"

namespace rung::histogram_cuda::inline RUNG_TARGET {

template <class T>
struct DenseElements {
  const T* data;
  std::int64_t size;
  int head;  // elements before the first 16-byte boundary

  static DenseElements make(const Histogram::Args& args) {
    const auto address = reinterpret_cast<std::uintptr_t>(args.x.data);
    const auto before = static_cast<std::int64_t>((16 - address % 16) % 16 / sizeof(T));
    return {static_cast<const T*>(args.x.data), args.size(),
            static_cast<int>(smaller(before, args.size()))};
  }
};

inline Support require_dense(const Histogram::Args& args) {
  if (!args.dense()) return unsupported("x is not contiguous");
  return reinterpret_cast<std::uintptr_t>(args.x.data) % size_of(args.x.dtype) == 0
             ? supported
             : unsupported("x is not aligned to its elements");
}

/// Grid-stride loop over x in packs: thread t takes packs t, t + threads, t + 2 threads ... with
/// `InFlight` loads always in flight: a pack's next load is issued as soon as the pack is used. The
/// constructor issues the first loads, so that a block's setup overlaps them.
///
/// A pack is held as four words: as separate elements, bytes would take a register each, and an
/// instruction each to convert.
template <int InFlight, class T>
class PackWalk {
 public:
  using Words = Pack<unsigned, 4>;

  __device__ __forceinline__ explicit PackWalk(const DenseElements<T>& x)
      : x_(x), packs_((x.size - x.head) / vector_width<T>) {
    const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
    const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x;
    // A block counts at most 2^31 elements, so rounds fit 32 bits.
    const std::int64_t rest = packs_ % threads;
    const auto rounds = static_cast<int>(packs_ / threads);
    mine_ = rounds + (first + threadIdx.x < rest ? 1 : 0);
    most_ = rounds + (first < rest ? 1 : 0);
    step_ = threads * vector_width<T>;
    from_ = x.data + x.head + (first + threadIdx.x) * vector_width<T>;
#pragma unroll
    for (int u = 0; u < InFlight; ++u) {
      if (u < mine_) words_[u] = ptx::load_once(from_ + u * step_);
    }
  }

  /// Calls whole(words, valid) in all threads of a block together, with valid = false in threads
  /// without a pack, so that it may contain collectives. The few elements before the first and
  /// after the last pack are passed to single(element) one by one.
  template <class Whole, class Single>
  __device__ __forceinline__ void for_each(const Whole& whole, const Single& single) {
    for (int done = 0; done < most_; done += InFlight) {
      from_ += InFlight * step_;
#pragma unroll
      for (int u = 0; u < InFlight; ++u) {
        const Words current = words_[u];
        if (done + u + InFlight < mine_) words_[u] = ptx::load_once(from_ + u * step_);
        whole(current, done + u < mine_);
      }
    }
    if (blockIdx.x != gridDim.x - 1) return;
    const int thread = static_cast<int>(threadIdx.x);
    const T* const behind = x_.data + x_.head + packs_ * vector_width<T>;
    if (thread < x_.head) single(x_.data[thread]);
    if (thread < x_.data + x_.size - behind) single(behind[thread]);
  }
  /// Calls f for each element of the walk.
  template <class F>
  __device__ __forceinline__ void for_each_element(const F& f) {
    for_each(
        [&](const Words& words, bool valid) {
          if (!valid) return;
          const auto values = __builtin_bit_cast(Pack<T, vector_width<T>>, words);
#pragma unroll
          for (int i = 0; i < vector_width<T>; ++i) f(values[i]);
        },
        f);
  }

 private:
  DenseElements<T> x_;
  std::int64_t packs_;
  std::int64_t step_;  // elements between a thread's packs
  const T* from_;      // address of the pack in words_[0]
  int mine_;           // number of packs of this thread
  int most_;           // packs of the block's first thread, the block's maximum
  Words words_[InFlight];
};

/// Bin of a value, and whether the value is inside the range. For f32 the bin takes no branch: the
/// conversion saturates, and the minimum with the last bin is a valid bin for any value.
struct CheckedBin {
  unsigned bin;
  bool inside;
};
template <class Bins>
__device__ __forceinline__ CheckedBin checked_bin(const Bins& bins, typename Bins::Key value) {
  const std::int32_t bin = bins(value);
  return {static_cast<unsigned>(bin), bin >= 0};
}
__device__ __forceinline__ CheckedBin checked_bin(const EvenBins<float>& bins, float value) {
  const unsigned bin = __float2uint_rz((value - bins.low) * bins.scale);
  const auto last = static_cast<unsigned>(bins.last);
  return {bin < last ? bin : last, static_cast<bool>((value >= bins.low) & (value <= bins.high))};
}

/// Returns the sum of table[(row << shift) + copy] over copies. One thread per row, so that stores
/// of neighboring counts coalesce; each starts at a different copy, which avoids bank conflicts.
__device__ __forceinline__ unsigned sum_of_copies(const unsigned* table, int row, int shift) {
  const int copies = 1 << shift;
  unsigned sum = 0;
  for (int copy = 0; copy < copies; ++copy) {
    sum += table[(row << shift) + ((copy + row) & (copies - 1))];
  }
  return sum;
}

}  // namespace rung::histogram_cuda::inline RUNG_TARGET
