// SPDX-License-Identifier: Apache-2.0
// A contiguous x read in packs of 16 bytes, whatever its alignment: what histogram's fast CUDA
// rungs share, with the way from a block's tables to counts.
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
  int head;  // elements before the first multiple of 16 bytes

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

/// The grid walks over x: thread t of all takes packs t, t + threads, t + 2 threads ... It keeps
/// `InFlight` loads always in flight: as soon as a pack is in use, the next load is issued. The
/// constructor issues the first ones; what a block has to prepare comes next.
///
/// A pack is held as four words: as its elements, bytes would fill a register each, and go to words
/// and back at an instruction a byte.
template <int InFlight, class T>
class PackWalk {
 public:
  using Words = Pack<unsigned, 4>;

  __device__ __forceinline__ explicit PackWalk(const DenseElements<T>& x)
      : x_(x), packs_((x.size - x.head) / vector_width<T>) {
    const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
    const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x;
    // A block counts 2^31 elements at most, so that rounds fit 32 bits.
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

  /// whole(words, valid) is called by all threads of a block together, also by those whose pack
  /// does not exist (valid = false), so that it may hold collectives. The few elements before the
  /// first and behind the last pack go one by one through single(element).
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
  /// Visits each element by itself.
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
  std::int64_t step_;  // elements from one of a thread's packs to the next
  const T* from_;      // the pack of words_[0]
  int mine_;           // packs of this thread
  int most_;           // of the block's first thread, which has the most
  Words words_[InFlight];
};

/// A value's bin, and whether it is in one: for floats without a branch. The conversion
/// saturates, and the least of it and the last bin is a bin, whatever is outside.
struct Place {
  unsigned bin;
  bool inside;
};
template <class Bins>
__device__ __forceinline__ Place place_of(const Bins& bins, typename Bins::Key value) {
  const std::int32_t bin = bins(value);
  return {static_cast<unsigned>(bin), bin >= 0};
}
__device__ __forceinline__ Place place_of(const EvenBins<float>& bins, float value) {
  const unsigned bin = __float2uint_rz((value - bins.low) * bins.scale);
  const auto last = static_cast<unsigned>(bins.last);
  return {bin < last ? bin : last, static_cast<bool>((value >= bins.low) & (value <= bins.high))};
}

/// table[(row << shift) + copy], added up over copies: a thread per row, so that neighboring
/// counts are written together; it starts at a copy of its own, as all would read one bank
/// otherwise.
__device__ __forceinline__ unsigned sum_of_copies(const unsigned* table, int row, int shift) {
  const int copies = 1 << shift;
  unsigned sum = 0;
  for (int copy = 0; copy < copies; ++copy) {
    sum += table[(row << shift) + ((copy + row) & (copies - 1))];
  }
  return sum;
}

}  // namespace rung::histogram_cuda::inline RUNG_TARGET
