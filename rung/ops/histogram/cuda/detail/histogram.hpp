// SPDX-License-Identifier: Apache-2.0
// What histogram's CUDA rungs share: x under a linear index, counts under atomic additions, and the
// launches that every one of them needs.
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

/// x as a kernel sees it: element i in the order of the normalized axes.
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

/// The caller's counts, i32 or i64 with any stride. As unsigned: sums wrap, as the contract says.
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
// that only when it has something to add. The clearing itself is launched while what came before
// ends, waits for all of that, and only then lets the kernel behind it start. Elsewhere the stream
// keeps them in order.
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
/// Before a kernel launched with .dependent = counts_cleared_ahead() touches counts.
__device__ __forceinline__ void wait_for_cleared_counts() { wait_for_earlier_work(); }

namespace {
constexpr int clear_threads = 256;
constexpr int clears_per_thread = 16;

// In each rung's file once: kernels have no external linkage in rung.
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

/// Every rung adds to counts; what was there goes first, unless it is to stay.
inline void clear_counts(const Histogram::Args& args, Context& context) {
  if (args.accumulate) return;
  launch(context,
         {.grid = ceil_div(args.bins(), clear_threads * clears_per_thread),
          .block = clear_threads,
          .dependent = can_depend(context)},
         histogram_clear, Counts::make(args));
}
/// Returns whether the launch after clear_counts() may be a dependent one. It may not if there is
/// none, because the grid in front may then still write x; nor on newer devices, which run the code
/// for 8.0.
inline bool counts_cleared_ahead(const Histogram::Args& args, const Context& context) {
  return !args.accumulate && can_depend(context);
}

/// Teaching rungs are compiled for two types and bins of equal width alone: what they show does not
/// depend on the type.
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
/// Calls f with the counts as unsigned words of the types that CUDA's atomics take.
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

/// Accepts, moreover, only as many elements as take a second where all compete for one bin: waiting
/// threads retry, so that the attempts grow with the square of the elements.
inline Support supports_competing(const Histogram::Args& args, const Context& context) {
  constexpr std::int64_t most = 65536;
  if (args.size() > most) return unsupported("more than 65,536 elements may compete for minutes");
  return supports_taught(args, context);
}

/// Every type but u8, with bins of equal width: f.template operator()<T, Bins>(bins).
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
/// Accepts the calls that visit_even serves.
inline Support require_even(const Histogram::Args& args) {
  if (!args.even()) return unsupported("only bins of equal width");
  if (is_floating(args.x.dtype) || args.x.dtype == DType::i64) return supported;
  const WholeBins whole = WholeBins::make(args);
  return ShortBins<true>::takes(whole) || ShortBins<false>::takes(whole)
             ? supported
             : unsupported("the range goes beyond 32 bits");
}

/// Blocks for a grid whose threads walk on until nothing is left: as many as the device holds,
/// fewer where each would have less than `elements_per_block` to do, more where a block's counters
/// of 32 bits could overflow.
template <class... Parameters>
std::int64_t walking_blocks(const Context& context, std::int64_t elements,
                            std::int64_t elements_per_block, void (*kernel)(Parameters...),
                            int threads, std::size_t shared_bytes) {
  constexpr std::int64_t max_per_block = std::int64_t{1} << 31;
  const std::int64_t useful = ceil_div(elements, elements_per_block);
  return larger(smaller(useful, resident_blocks(context, kernel, threads, shared_bytes)),
                ceil_div(elements, max_per_block));
}

/// The grid walks over x together: thread t takes elements t, t + threads, t + 2 threads ...,
/// `InFlight` of them loaded before the first is used.
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

/// A block's own counters in shared memory: `size` words, cleared and ready when this returns.
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

// Facts.

/// Returns the way in which a value finds its bin: it decides the speed.
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
/// Comparisons that find a value's bin.
inline std::int64_t searches(const Histogram::Args& args) {
  return args.even() ? 1 : std::bit_width(static_cast<std::uint64_t>(args.bins()));
}

/// Facts of blocks of so many threads that walk over x, each with a table of `words`; all of them
/// are resident. `walkers`: those that share x, where not all do.
inline Work walk_work(const Histogram::Args& args, std::int64_t blocks, int threads,
                      std::int64_t words, std::int64_t walkers = 0) {
  const std::int64_t sharing = larger<std::int64_t>(walkers > 0 ? walkers : blocks, 1);
  const std::int64_t trips = ceil_div(args.size(), sharing * threads) * searches(args);
  const std::int64_t table = 2 * ceil_div(words, threads);  // is cleared, and added to counts
  return in_launches(args.accumulate ? 1 : 2,
                     block_work(blocks, threads, trips + table, bins_path(args)));
}

/// Returns the work of blocks that add to counts themselves. L2 serializes additions to one count,
/// and all elements may be of one bin: an addition counts as so many operations.
inline Work global_work(const Histogram::Args& args, std::int64_t blocks, int threads) {
  constexpr std::int64_t few = 1 << 13, in_turn = 16;
  constexpr std::int64_t short_queue = 1 << 17;  // if all of x is of one bin
  Work work = walk_work(args, blocks, threads, 0);
  work.operations = args.size() * in_turn;
  const bool may_queue = args.bins() <= few || args.size() > short_queue;
  work.path = !args.even() ? "edges" : may_queue ? "few" : "many";
  return work;
}

}  // namespace rung::histogram_cuda::inline RUNG_TARGET
