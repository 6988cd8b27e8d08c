// SPDX-License-Identifier: Apache-2.0
// transpose / pixels
//
// Idea     Matrices of 2 to 4 columns or rows, fully dense: pixels to planes and back. A vector of
//          whole pixels is deinterleaved to a vector per plane by a few shuffles.
// Changes  Against simd: no tile, which these shapes would leave mostly empty.
// Cost     Every byte of x and y once. Beyond the caches, non-temporal stores are used if y starts
//          on a line.
// Limits   Elements of up to 4 bytes; one thread.
#include "rung/cpu/foreach_target.hpp"

#include <hwy/cache_control.h>

#include "rung/cpu/transpose_tile-inl.hpp"
#include "rung/ops/transpose/cpu/detail/blocks.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::transpose_cpu::HWY_NAMESPACE {
namespace {
using namespace cpu::HWY_NAMESPACE;

/// Prefetch distance for x. Also prefetches a line of the page of y two pages ahead, only to load
/// its address translation: a TLB miss stalls non-temporal stores. (2048x2048x3 f32, one thread of
/// a 2-core Zen 5 vCPU: 1.77 ms without prefetches, 1.67 with x only, 1.62 with x and y; a copy
/// takes 1.75.)
constexpr std::int64_t pixels_ahead = 8 << 10;
constexpr std::int64_t page_bytes = 4096;
HWY_INLINE void prefetch_lines(const void* x, std::int64_t bytes) {
  for (std::int64_t at = 0; at < bytes; at += line_bytes) {
    __builtin_prefetch(static_cast<const std::byte*>(x) + pixels_ahead + at);
  }
}
HWY_INLINE void prefetch_page(const void* y) {
  __builtin_prefetch(static_cast<const std::byte*>(y) + 2 * page_bytes, 1);
}

/// Transposes pixels of n values to n planes. `streams`: non-temporal stores; rows of y must start
/// on lines.
template <class T, int n, bool streams>
HWY_NOINLINE void pixels_to_planes(const TransposeBlock& b) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t lanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  const T* x = reinterpret_cast<const T*>(b.x);
  const auto plane = [&](int j) HWY_ATTR { return reinterpret_cast<T*>(b.y + j * b.y_row); };
  std::int64_t i = 0;
  for (; i + lanes <= b.rows; i += lanes) {
    if constexpr (streams) {
      constexpr std::int64_t bytes = sizeof(T);
      prefetch_lines(x + i * n, lanes * n * bytes);
      if ((i * bytes & (page_bytes - 1)) == 0) {
        for (int j = 0; j < n; ++j) prefetch_page(plane(j) + i);
      }
    }
    hn::Vec<decltype(d)> v[4];
    if constexpr (n == 2) hn::LoadInterleaved2(d, x + i * n, v[0], v[1]);
    if constexpr (n == 3) hn::LoadInterleaved3(d, x + i * n, v[0], v[1], v[2]);
    if constexpr (n == 4) hn::LoadInterleaved4(d, x + i * n, v[0], v[1], v[2], v[3]);
    for (int j = 0; j < n; ++j) {
      if constexpr (streams) {
        hn::Stream(v[j], d, plane(j) + i);
      } else {
        hn::StoreU(v[j], d, plane(j) + i);
      }
    }
  }
  for (; i < b.rows; ++i) {
    for (int j = 0; j < n; ++j) plane(j)[i] = x[i * n + j];
  }
}

/// Transposes planes to pixels. `streams`: non-temporal stores; y must start on a line.
template <class T, int n, bool streams>
HWY_NOINLINE void planes_to_pixels(const TransposeBlock& b) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t lanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  T* y = reinterpret_cast<T*>(b.y);
  const auto plane = [&](int i) HWY_ATTR { return reinterpret_cast<const T*>(b.x + i * b.x_row); };
  alignas(line_bytes) T pixels[lanes * n];
  std::int64_t j = 0;
  for (; j + lanes <= b.columns; j += lanes) {
    if constexpr (streams) {
      constexpr std::int64_t bytes = sizeof(T);
      for (int i = 0; i < n; ++i) prefetch_lines(plane(i) + j, lanes * bytes);
      if ((j * bytes & (page_bytes / 4 - 1)) == 0) prefetch_page(y + j * n);
    }
    T* const to = streams ? pixels : y + j * n;
    const auto v = [&](int i) HWY_ATTR { return hn::LoadU(d, plane(i) + j); };
    if constexpr (n == 2) hn::StoreInterleaved2(v(0), v(1), d, to);
    if constexpr (n == 3) hn::StoreInterleaved3(v(0), v(1), v(2), d, to);
    if constexpr (n == 4) hn::StoreInterleaved4(v(0), v(1), v(2), v(3), d, to);
    if constexpr (streams) {
      for (int k = 0; k < n; ++k) {
        hn::Stream(hn::Load(d, pixels + k * lanes), d, y + j * n + k * lanes);
      }
    }
  }
  for (; j < b.columns; ++j) {
    for (int i = 0; i < n; ++i) y[j * n + i] = plane(i)[j];
  }
}

/// Transposes a matrix of n columns or n rows. Returns false, and does nothing, for other matrices.
template <class T, int n>
HWY_INLINE bool transpose_n(const TransposeBlock& b, bool streams) {
  constexpr std::int64_t pixel_bytes = n * sizeof(T);
  if (b.columns == n && b.x_row == pixel_bytes) {
    streams&& b.y_row % line_bytes == 0 ? pixels_to_planes<T, n, true>(b)
                                        : pixels_to_planes<T, n, false>(b);
    return true;
  }
  if (b.rows == n && b.y_row == pixel_bytes) {
    streams ? planes_to_pixels<T, n, true>(b) : planes_to_pixels<T, n, false>(b);
    return true;
  }
  return false;
}

}  // namespace

void pixels_of_batch(const TransposeBlock& first, bool streams, const Batch& batch) {
  with_elements(first.element_bytes, [&]<class T>() HWY_ATTR {
    if constexpr (sizeof(T) <= 4) {
      TransposeBlock b = first;
      for (std::int64_t i = 0; i < batch.count; ++i, b.x += batch.x, b.y += batch.y) {
        const bool whole_lines = streams && cpu::line_offset(b.y) == 0;
        transpose_n<T, 2>(b, whole_lines) || transpose_n<T, 3>(b, whole_lines) ||
            transpose_n<T, 4>(b, whole_lines);
      }
    }
  });
  if (streams) hwy::FlushStream();
}

}  // namespace rung::transpose_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace transpose_cpu {
HWY_EXPORT(pixels_of_batch);
void transpose_pixels(const TransposeBlock& block, bool streams, const Batch& batch) {
  HWY_DYNAMIC_DISPATCH(pixels_of_batch)(block, streams, batch);
}
}  // namespace transpose_cpu

namespace {
using namespace transpose_cpu;

Support supports(const Transpose::Args& args, const Context& context) {
  const Moves& m = args.moves;
  if (m.empty() || (m.dense() && is_pixels(m))) return require_dense(args, context);
  return unsupported("2 to 4 dense columns or rows of elements of up to 4 bytes");
}

void run(const Transpose::Args& args, Context&) {
  const bool streams = exceeds_caches(args.moves);
  const Grid grid = streams ? streaming_grid(args.moves, any_rows) : cached_grid(args.moves);
  grid.for_each({0, grid.size()},
                [&](const BlockRange& block) { transpose_pixels(block_of(args, block), streams); });
}

const Rung<Transpose> self{
    {.name = "pixels", .after = "simd", .teaching = true, .supports = supports, .run = run}};

}  // namespace
}  // namespace rung
#endif
