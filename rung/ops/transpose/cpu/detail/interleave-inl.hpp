// SPDX-License-Identifier: Apache-2.0
//
// Matrices of 2 to 4 columns or rows, dense throughout: pixels to planes and back. A tile would be
// mostly empty, whereas whole vectors of pixels come apart by a few shuffles.
#if defined(RUNG_OPS_TRANSPOSE_CPU_INTERLEAVE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_TRANSPOSE_CPU_INTERLEAVE_INL_HPP_
#undef RUNG_OPS_TRANSPOSE_CPU_INTERLEAVE_INL_HPP_
#else
#define RUNG_OPS_TRANSPOSE_CPU_INTERLEAVE_INL_HPP_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "rung/ops/transpose/cpu/detail/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::transpose_cpu::HWY_NAMESPACE {

/// Asks for x so far ahead, and for a line of each page of y that is two pages ahead, for its
/// address alone: streaming stores wait long for a translation. (2048x2048x3 f32, one thread of a
/// 2-core Zen 5 vCPU: 1.77 ms without either, 1.67 with x alone, 1.62 with both; a copy 1.75.)
constexpr std::int64_t pixels_ahead = 8 << 10;
constexpr std::int64_t page_bytes = 4096;
HWY_INLINE void ask_for_lines(const void* x, std::int64_t bytes) {
  for (std::int64_t at = 0; at < bytes; at += line_bytes) {
    __builtin_prefetch(static_cast<const std::byte*>(x) + pixels_ahead + at);
  }
}
HWY_INLINE void ask_for_page(const void* y) {
  __builtin_prefetch(static_cast<const std::byte*>(y) + 2 * page_bytes, 1);
}

/// Pixels of n values to n planes. `stream`: with non-temporal stores; rows of y begin with lines.
template <int bytes, int n, bool stream>
HWY_NOINLINE void pixels_to_planes(const Block& b) {
  using T = typename LaneOf<bytes>::Type;
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr std::int64_t lanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  const T* x = reinterpret_cast<const T*>(b.x);
  const auto plane = [&](int j) { return reinterpret_cast<T*>(b.y + j * b.y_row); };
  std::int64_t i = 0;
  for (; i + lanes <= b.rows; i += lanes) {
    if constexpr (stream) {
      ask_for_lines(x + i * n, lanes * n * bytes);
      if ((i * bytes & (page_bytes - 1)) == 0) {
        for (int j = 0; j < n; ++j) ask_for_page(plane(j) + i);
      }
    }
    V v[4];
    if constexpr (n == 2) hn::LoadInterleaved2(d, x + i * n, v[0], v[1]);
    if constexpr (n == 3) hn::LoadInterleaved3(d, x + i * n, v[0], v[1], v[2]);
    if constexpr (n == 4) hn::LoadInterleaved4(d, x + i * n, v[0], v[1], v[2], v[3]);
    for (int j = 0; j < n; ++j) {
      if constexpr (stream) {
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

/// And back. `stream`: with non-temporal stores; y begins with a line.
template <int bytes, int n, bool stream>
HWY_NOINLINE void planes_to_pixels(const Block& b) {
  using T = typename LaneOf<bytes>::Type;
  const hn::ScalableTag<T> d;
  constexpr std::int64_t lanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  T* y = reinterpret_cast<T*>(b.y);
  const auto plane = [&](int i) { return reinterpret_cast<const T*>(b.x + i * b.x_row); };
  std::int64_t j = 0;
  alignas(64) T pixels[lanes * n];
  for (; j + lanes <= b.columns; j += lanes) {
    if constexpr (stream) {
      for (int i = 0; i < n; ++i) ask_for_lines(plane(i) + j, lanes * bytes);
      if ((j * bytes & (page_bytes / 4 - 1)) == 0) ask_for_page(y + j * n);
    }
    T* const to = stream ? pixels : y + j * n;
    const auto v = [&](int i) { return hn::LoadU(d, plane(i) + j); };
    if constexpr (n == 2) hn::StoreInterleaved2(v(0), v(1), d, to);
    if constexpr (n == 3) hn::StoreInterleaved3(v(0), v(1), v(2), d, to);
    if constexpr (n == 4) hn::StoreInterleaved4(v(0), v(1), v(2), v(3), d, to);
    if constexpr (stream) {
      for (int k = 0; k < n; ++k) {
        hn::Stream(hn::Load(d, pixels + k * lanes), d, y + j * n + k * lanes);
      }
    }
  }
  for (; j < b.columns; ++j) {
    for (int i = 0; i < n; ++i) y[j * n + i] = plane(i)[j];
  }
}

/// Whether the matrix was one of these, and is done.
template <int bytes, int n>
HWY_INLINE bool interleave(const Block& b, bool past_caches) {
  const bool stream = past_caches && skew_of(b.y) == 0;
  if (b.columns == n && b.x_row == n * bytes) {
    stream&& b.y_row % line_bytes == 0 ? pixels_to_planes<bytes, n, true>(b)
                                       : pixels_to_planes<bytes, n, false>(b);
    return true;
  }
  if (b.rows == n && b.y_row == n * bytes) {
    stream ? planes_to_pixels<bytes, n, true>(b) : planes_to_pixels<bytes, n, false>(b);
    return true;
  }
  return false;
}
template <int bytes>
HWY_INLINE bool interleaved(const Block& b, bool past_caches) {
  if constexpr (bytes <= max_interleaved_bytes) {
    return interleave<bytes, 2>(b, past_caches) || interleave<bytes, 3>(b, past_caches) ||
           interleave<bytes, 4>(b, past_caches);
  }
  return false;
}

}  // namespace rung::transpose_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
