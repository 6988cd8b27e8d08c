// SPDX-License-Identifier: Apache-2.0
// First elements of segments (heads) as a bitmap, built on the device by two small launches.
#pragma once

#include "rung/core/bounds.hpp"
#include "rung/device/dependent.hpp"
#include "rung/ops/scan/cuda/detail/scan.hpp"

namespace rung::inline RUNG_TARGET::scan_cuda {
namespace {

__global__ void scan_clear_words(unsigned* words, std::int64_t count) {
  start_dependent();
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    words[i] = 0;
  }
}

template <class I>
__global__ void scan_mark_heads(View<const I, 1> offsets, std::int64_t n, bool reverse,
                                unsigned* words) {
  start_dependent();
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  const std::int64_t count = offsets.shape[0];
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const std::int64_t offset = offsets(i);
    if (offset <= 0 || offset >= n) continue;
    // Only the last of several empty segments sets the bit: thousands of atomics would serialize on
    // one word.
    if (i + 1 < count && offsets(i + 1) == offset) continue;
    // In a reversed line, a segment begins at the position where the next segment starts in memory.
    const std::int64_t at = reverse ? n - offset : offset;
    atomicOr(words + at / 32, 1u << (at % 32));
  }
}

inline void clear_words(Context& context, unsigned* words, std::int64_t count) {
  constexpr int threads = 256;
  launch(context, {.grid = smaller<std::int64_t>(ceil_div(count, threads), 1024), .block = threads},
         scan_clear_words, words, count);
}

/// Returns the number of words of the bitmap; 0 without segments.
inline std::int64_t head_words(const Scan::Args& args) {
  return args.has_segments() ? ceil_div(args.length(), 32) : 0;
}

/// Fills the bitmap, which must be clear.
inline void mark_heads(Context& context, const Scan::Args& args, unsigned* words) {
  constexpr int threads = 256;
  visit<std::int32_t, std::int64_t>(args.offsets.dtype, [&]<class I>() {
    const auto offsets = args.offsets.view<const I, 1>();
    launch(context,
           {.grid = smaller<std::int64_t>(ceil_div(offsets.shape[0], threads), 1024),
            .block = threads,
            .dependent = can_depend(context)},
           scan_mark_heads<I>, offsets, args.length(), args.reverse, words);
  });
}

}  // namespace
}  // namespace rung::inline RUNG_TARGET::scan_cuda
