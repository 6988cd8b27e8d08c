// SPDX-License-Identifier: Apache-2.0
// Code of histogram's CUDA rungs: x under a linear index, counts under atomic additions, and common
// launches.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "rung/core/bounds.hpp"
#include "rung/core/collapse.hpp"
#include "rung/core/integer.hpp"
#include "rung/device/block_work.hpp"
#include "rung/device/convert.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/device.hpp"
#include "rung/device/ptx/hopper.hpp"
#include "rung/device/resident.hpp"
#include "rung/ops/histogram/op/bins.hpp"

namespace rung::histogram_cuda::inline RUNG_TARGET {

/// x as a kernel argument: element i in the order of the normalized axes.
template <class T>
struct Elements {
  const T* data;
  Collapsed<1> axes;

  static Elements make(const Histogram::Args& args) {
    return {static_cast<const T*>(args.x.data), collapse<1>(args.x.shape, {args.x.strides})};
  }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t size() const { return axes.size(); }
  RUNG_HD RUNG_ALWAYS_INLINE const T& at(std::int64_t i) const { return data[axes.offset(i)]; }
  RUNG_HD RUNG_ALWAYS_INLINE BinKey<T> operator[](std::int64_t i) const {
    return convert<BinKey<T>>(at(i));
  }
};

/// The caller's counts, i32 or i64 with any stride. Added as unsigned: sums wrap, as the contract
/// requires.
struct Counts {
  void* data;
  std::int64_t stride;
  std::int32_t bins;
  bool wide;

  static Counts make(const Histogram::Args& args) {
    return {args.counts.data, args.counts.strides[0], static_cast<std::int32_t>(args.bins()),
            args.counts.dtype == DType::i64};
  }
  __device__ __forceinline__ void add(std::int32_t bin, unsigned long long amount) const {
    if (wide) {
      atomicAdd(static_cast<unsigned long long*>(data) + bin * stride, amount);
    } else {
      atomicAdd(static_cast<unsigned*>(data) + bin * stride, static_cast<unsigned>(amount));
    }
  }
  __device__ __forceinline__ void clear(std::int32_t bin) const {
    if (wide) {
      static_cast<unsigned long long*>(data)[bin * stride] = 0;
    } else {
      static_cast<unsigned*>(data)[bin * stride] = 0;
    }
  }
};

// On compute capability 9.0 a kernel may start while counts are still being cleared, and waits for
// the clearing only before its first addition. The clearing launch itself waits for all earlier
// work before it lets the next kernel start. On other devices the stream orders the launches.
__device__ __forceinline__ void wait_for_earlier_work() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  ptx::wait_for_earlier_grid();
#endif
}
__device__ __forceinline__ void let_counting_start() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  ptx::let_next_grid_start();
#endif
}
/// Waits for the clearing of counts; a kernel launched with .dependent = counts_cleared_ahead()
/// calls it before it accesses counts.
__device__ __forceinline__ void wait_for_cleared_counts() { wait_for_earlier_work(); }

namespace {
constexpr int clear_threads = 256;
constexpr int clears_per_thread = 16;

// Compiled in each rung's file: kernels have no external linkage in rung.
__global__ void __launch_bounds__(clear_threads) histogram_clear(Counts counts) {
  wait_for_earlier_work();
  let_counting_start();
  const std::int64_t begin = std::int64_t{blockIdx.x} * (clear_threads * clears_per_thread);
  for (int i = 0; i < clears_per_thread; ++i) {
    const std::int64_t bin = begin + i * clear_threads + threadIdx.x;
    if (bin < counts.bins) counts.clear(static_cast<std::int32_t>(bin));
  }
}
}  // namespace

/// Launches the clearing of counts unless args accumulates: every rung adds to counts.
inline void clear_counts(const Histogram::Args& args, Context& context) {
  if (args.accumulate) return;
  launch(context,
         {.grid = ceil_div(args.bins(), clear_threads * clears_per_thread),
          .block = clear_threads,
          .dependent = can_depend(context)},
         histogram_clear, Counts::make(args));
}
/// Returns whether the launch after clear_counts() may be a programmatic dependent launch. It may
/// not if counts are not cleared, because the previous grid may still write x; nor on newer
/// devices, which run the code for 8.0.
inline bool counts_cleared_ahead(const Histogram::Args& args, const Context& context) {
  return !args.accumulate && can_depend(context);
}

/// Calls f with x and bins for the teaching rungs, which are compiled for two types and bins of
/// equal width only: their lesson does not depend on the type.
template <class F>
auto visit_taught(const Histogram::Args& args, F&& f) {
  return visit<float, std::uint8_t>(args.x.dtype, [&]<class T>() {
    if constexpr (std::is_integral_v<T>) {
      return f(Elements<T>::make(args), WholeBins::make(args));
    } else {
      return f(Elements<T>::make(args), EvenBins<float>::make(args));
    }
  });
}
/// Calls f with the counts as unsigned words of a type that CUDA's atomics support.
template <class F>
void visit_count_words(const Histogram::Args& args, F&& f) {
  if (args.counts.dtype == DType::i64) {
    f(static_cast<unsigned long long*>(args.counts.data));
  } else {
    f(static_cast<unsigned*>(args.counts.data));
  }
}
inline Support supports_taught(const Histogram::Args& args, const Context&) {
  if (args.x.dtype != DType::f32 && args.x.dtype != DType::u8) {
    return unsupported("only f32 and u8 values");
  }
  return args.even() ? supported : unsupported("only bins of equal width");
}

/// Returns supported for up to 65,536 elements of a teaching rung's types and bins. More would take
/// about a second if all compete for one bin: waiting threads retry, so attempts grow
/// quadratically.
inline Support supports_competing(const Histogram::Args& args, const Context& context) {
  constexpr std::int64_t most = 65536;
  if (args.size() > most) return unsupported("more than 65,536 elements may compete for minutes");
  return supports_taught(args, context);
}

/// Calls f.template operator()<T, Bins>(bins) for every type except u8, with bins of equal width.
template <class F>
auto visit_even(const Histogram::Args& args, F&& f) {
  return visit<float, std::uint16_t, std::int32_t, std::int64_t, double, f16, bf16>(
      args.x.dtype, [&]<class T>() {
        if constexpr (!std::is_integral_v<T>) {
          return f.template operator()<T>(EvenBins<BinKey<T>>::make(args));
        } else if constexpr (sizeof(T) == 8) {
          return f.template operator()<T>(WholeBins::make(args));
        } else if (const WholeBins whole = WholeBins::make(args); whole.factor == 0) {
          return f.template operator()<T>(ShortBins<true>::make(whole));
        } else {
          return f.template operator()<T>(ShortBins<false>::make(whole));
        }
      });
}
/// Returns supported for the types and bins that visit_even handles.
inline Support require_even(const Histogram::Args& args) {
  if (!args.even()) return unsupported("only bins of equal width");
  if (is_floating(args.x.dtype) || args.x.dtype == DType::i64) return supported;
  const WholeBins whole = WholeBins::make(args);
  return ShortBins<true>::takes(whole) || ShortBins<false>::takes(whole)
             ? supported
             : unsupported("the range goes beyond 32 bits");
}

/// Returns the blocks of a grid-stride loop: as many as the device holds, fewer if each would have
/// less than `elements_per_block` elements, more if a block's 32-bit counters could overflow.
template <class... Parameters>
std::int64_t walking_blocks(const Context& context, std::int64_t elements,
                            std::int64_t elements_per_block, void (*kernel)(Parameters...),
                            int threads, std::size_t shared_bytes) {
  constexpr std::int64_t max_per_block = std::int64_t{1} << 31;
  const std::int64_t useful = ceil_div(elements, elements_per_block);
  return larger(smaller(useful, resident_blocks(context, kernel, threads, shared_bytes)),
                ceil_div(elements, max_per_block));
}

/// Calls f for every element in a grid-stride loop: thread t takes elements t, t + threads, t + 2
/// threads ..., and loads `InFlight` of them before it uses the first.
template <int InFlight, class T, class F>
__device__ __forceinline__ void for_each_element(const Elements<T>& x, const F& f) {
  const std::int64_t size = x.size();
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i + (InFlight - 1) * step < size; i += InFlight * step) {
    T values[InFlight];
#pragma unroll
    for (int u = 0; u < InFlight; ++u) values[u] = x.at(i + u * step);
#pragma unroll
    for (int u = 0; u < InFlight; ++u) f(convert<BinKey<T>>(values[u]));
  }
  for (; i < size; i += step) f(x[i]);
}

/// Returns the block's table in shared memory: `size` words, cleared, after a barrier.
__device__ __forceinline__ unsigned* cleared_table(std::int32_t size) {
  unsigned* const table = &shared<unsigned>();
  for (int i = static_cast<int>(threadIdx.x); i < size; i += static_cast<int>(blockDim.x)) {
    table[i] = 0;
  }
  __syncthreads();
  return table;
}
inline Support require_table(const Histogram::Args& args, const Context& context, int copies) {
  const auto room = static_cast<std::int64_t>(context.info().shared_per_block);
  return args.bins() <= room / copies / static_cast<std::int64_t>(sizeof(unsigned))
             ? supported
             : unsupported("a table of that many bins does not fit shared memory");
}

// Work.

/// Returns the rates key, by how a value's bin is found: this determines the speed.
inline std::string_view bins_path(const Histogram::Args& args) {
  switch (args.x.dtype) {
    case DType::u8:
      return args.even() ? "u8" : "u8 edges";
    case DType::f64:
      return args.even() ? "f64" : "f64 edges";
    case DType::i64:
      return args.even() ? "i64" : "i64 edges";
    default:
      return !args.even() ? "edges" : size_of(args.x.dtype) == 2 ? "16-bit" : "";
  }
}
/// Returns the number of comparisons that find a value's bin.
inline std::int64_t searches(const Histogram::Args& args) {
  return args.even() ? 1 : std::bit_width(static_cast<std::uint64_t>(args.bins()));
}

/// Returns the work of `blocks` resident blocks of `threads` threads that walk over x, each with a
/// table of `words`. `walkers`: blocks that divide x; 0 means all.
inline Work walk_work(const Histogram::Args& args, std::int64_t blocks, int threads,
                      std::int64_t words, std::int64_t walkers = 0) {
  const std::int64_t sharing = larger<std::int64_t>(walkers > 0 ? walkers : blocks, 1);
  const std::int64_t trips = ceil_div(args.size(), sharing * threads) * searches(args);
  const std::int64_t table = 2 * ceil_div(words, threads);  // cleared, then added to counts
  return in_launches(args.accumulate ? 1 : 2,
                     block_work(blocks, threads, trips + table, bins_path(args)));
}

/// Returns the work of blocks that add directly to counts. L2 serializes additions to one count,
/// and all elements may fall into one bin: an addition counts as `in_turn` operations.
inline Work global_work(const Histogram::Args& args, std::int64_t blocks, int threads) {
  constexpr std::int64_t few = 1 << 13, in_turn = 16;
  constexpr std::int64_t short_queue = 1 << 17;  // elements, if all fall into one bin
  Work work = walk_work(args, blocks, threads, 0);
  work.operations = args.size() * in_turn;
  const bool may_queue = args.bins() <= few || args.size() > short_queue;
  work.path = !args.even() ? "edges" : may_queue ? "few" : "many";
  return work;
}

}  // namespace rung::histogram_cuda::inline RUNG_TARGET
