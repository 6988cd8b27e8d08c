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

#include "rung/ops/transpose/cpu_tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::transpose_cpu::HWY_NAMESPACE {

/// Pixels of n values to n planes. `stream`: rows of y begin with lines.
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

/// And back.
template <int bytes, int n>
HWY_NOINLINE void planes_to_pixels(const Block& b) {
  using T = typename LaneOf<bytes>::Type;
  const hn::ScalableTag<T> d;
  constexpr std::int64_t lanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  T* y = reinterpret_cast<T*>(b.y);
  const auto plane = [&](int i) { return reinterpret_cast<const T*>(b.x + i * b.x_row); };
  std::int64_t j = 0;
  for (; j + lanes <= b.columns; j += lanes) {
    const auto v = [&](int i) { return hn::LoadU(d, plane(i) + j); };
    if constexpr (n == 2) hn::StoreInterleaved2(v(0), v(1), d, y + j * n);
    if constexpr (n == 3) hn::StoreInterleaved3(v(0), v(1), v(2), d, y + j * n);
    if constexpr (n == 4) hn::StoreInterleaved4(v(0), v(1), v(2), v(3), d, y + j * n);
  }
  for (; j < b.columns; ++j) {
    for (int i = 0; i < n; ++i) y[j * n + i] = plane(i)[j];
  }
}

/// Whether the matrix was one of these, and is done.
template <int bytes, int n>
HWY_INLINE bool interleave(const Block& b, bool stream) {
  if (b.columns == n && b.x_row == n * bytes) {
    stream ? pixels_to_planes<bytes, n, true>(b) : pixels_to_planes<bytes, n, false>(b);
    return true;
  }
  if (b.rows == n && b.y_row == n * bytes) {
    planes_to_pixels<bytes, n>(b);
    return true;
  }
  return false;
}
template <int bytes>
HWY_INLINE bool interleaved(const Block& b, bool stream) {
  if constexpr (bytes <= 4) {
    return interleave<bytes, 2>(b, stream) || interleave<bytes, 3>(b, stream) ||
           interleave<bytes, 4>(b, stream);
  }
  return false;
}

}  // namespace rung::transpose_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
