// SPDX-License-Identifier: Apache-2.0
// Grey, a vector of pixels at a time.
#if defined(RUNG_OPS_IMAGE_CPU_GREY_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_IMAGE_CPU_GREY_INL_HPP_
#undef RUNG_OPS_IMAGE_CPU_GREY_INL_HPP_
#else
#define RUNG_OPS_IMAGE_CPU_GREY_INL_HPP_
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "rung/ops/image/cpu/detail/kernels.hpp"
#include "rung/ops/image/cpu/detail/pairs-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::image_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// n / 10, rounded down: n 6554 / 2^16 for every n up to 2550.
HWY_INLINE I16 tenth_of(I16 n) {
  return hn::BitCast(di16, hn::MulHigh(hn::BitCast(du16, n), hn::Set(du16, 6554)));
}
HWY_INLINE I16 three_times(I16 n) { return hn::Add(n, hn::Add(n, n)); }

/// Grey of one vector of i16 pixels.
struct GreyOf16 {
  GreyWeights weights;
  PairOfWeights rg, b1;  // of 2^15; the last one is what rounds to nearest

  HWY_INLINE I16 operator()(I16 red, I16 green, I16 blue) const {
    if (weights == GreyWeights::tenths) {
      const I16 sum = hn::Add(red, hn::Add(green, green));
      return tenth_of(hn::Add(three_times(sum), blue));
    }
    if (weights == GreyWeights::tenths_by_term) {
      const I16 rg_terms =
          hn::Add(tenth_of(three_times(red)), tenth_of(three_times(hn::Add(green, green))));
      return hn::Add(rg_terms, tenth_of(blue));
    }
    WideSums sums(0);
    sums.add(red, green, rg);
    sums.add(blue, hn::Set(di16, 1), b1);
    return sums.shifted<15>();
  }
};

HWY_INLINE GreyOf16 grey_of_16(GreyWeights weights) {
  constexpr std::int32_t half = 1 << 14;
  if (weights == GreyWeights::bt601) return {weights, {9798, 19235}, {3735, half}};
  if (weights == GreyWeights::bt709) return {weights, {6966, 23436}, {2366, half}};
  return {weights, {0, 0}, {0, 0}};
}

template <class D8, class V8>
HWY_INLINE V8 grey_vector(D8 d8, const GreyOf16& grey, V8 r, V8 g, V8 b) {
#if HWY_TARGET == HWY_SCALAR
  const auto wide = [](V8 v) { return hn::PromoteTo(di16, v); };
  return hn::DemoteTo(d8, grey(wide(r), wide(g), wide(b)));
#else
  const auto lower = [](V8 v) HWY_ATTR { return hn::PromoteTo(di16, hn::LowerHalf(du8, v)); };
  const auto upper = [](V8 v) HWY_ATTR { return hn::PromoteTo(di16, hn::UpperHalf(du8, v)); };
  const I16 low = grey(lower(r), lower(g), lower(b));
  const I16 high = grey(upper(r), upper(g), upper(b));
  return hn::Combine(d8, hn::DemoteTo(du8, high), hn::DemoteTo(du8, low));
#endif
}

struct GreyOfF32 {
  float r, g, b;
};
inline GreyOfF32 grey_of_f32(GreyWeights weights) {
  if (weights == GreyWeights::bt601) return {0.299F, 0.587F, 0.114F};
  if (weights == GreyWeights::bt709) return {0.2126F, 0.7152F, 0.0722F};
  return {0.3F, 0.6F, 0.1F};
}
template <class D, class V>
HWY_INLINE V grey_vector(D d, const GreyOfF32& grey, V r, V g, V b) {
  const V rg = hn::MulAdd(hn::Set(d, grey.g), g, hn::Mul(hn::Set(d, grey.r), r));
  return hn::MulAdd(hn::Set(d, grey.b), b, rg);
}

/// One vector of pixels from and to where there is room for all of it.
template <bool interleaved, int channels, bool alpha, class D, class T, class Grey>
HWY_INLINE void grey_pixels_of(D d, const Grey& grey, const T* const (&x)[4], T* const (&y)[2],
                               std::int64_t at) {
  hn::Vec<D> r;
  hn::Vec<D> g;
  hn::Vec<D> b;
  hn::Vec<D> a = hn::Zero(d);
  if constexpr (!interleaved) {
    r = hn::LoadU(d, x[0] + at);
    g = hn::LoadU(d, x[1] + at);
    b = hn::LoadU(d, x[2] + at);
    if constexpr (alpha) a = hn::LoadU(d, x[3] + at);
  } else if constexpr (channels == 3) {
    hn::LoadInterleaved3(d, x[0] + 3 * at, r, g, b);
  } else {
    hn::LoadInterleaved4(d, x[0] + 4 * at, r, g, b, a);
  }
  const auto result = grey_vector(d, grey, r, g, b);
  if constexpr (!alpha) {
    hn::StoreU(result, d, y[0] + at);
  } else if constexpr (interleaved) {
    hn::StoreInterleaved2(result, a, d, y[0] + 2 * at);
  } else {
    hn::StoreU(result, d, y[0] + at);
    hn::StoreU(a, d, y[1] + at);
  }
}

template <bool interleaved, int channels, bool alpha, class T, class Grey>
inline void grey_all(const GreyPixels<T>& p, const Grey& grey, std::int64_t count) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t at = 0;
  for (; at + lanes <= count; at += lanes) {
    grey_pixels_of<interleaved, channels, alpha>(d, grey, p.x, p.y, at);
  }
  const std::int64_t rest = count - at;
  if (rest == 0) return;
  // The last ones where there is room.
  HWY_ALIGN T in[4 * hn::MaxLanes(d)] = {};
  HWY_ALIGN T out[2 * hn::MaxLanes(d)];
  constexpr int planes = interleaved ? 1 : channels;
  constexpr int out_planes = interleaved || !alpha ? 1 : 2;
  constexpr std::int64_t per_pixel = interleaved ? channels : 1;
  constexpr std::int64_t out_per_pixel = interleaved && alpha ? 2 : 1;
  const T* x[4] = {in, in + lanes, in + 2 * lanes, in + 3 * lanes};
  T* y[2] = {out, out + lanes};
  for (int plane = 0; plane < planes; ++plane) {
    std::copy_n(p.x[plane] + at * per_pixel, rest * per_pixel, in + plane * lanes);
  }
  grey_pixels_of<interleaved, channels, alpha>(d, grey, x, y, 0);
  for (int plane = 0; plane < out_planes; ++plane) {
    std::copy_n(y[plane], rest * out_per_pixel, p.y[plane] + at * out_per_pixel);
  }
}

template <class T, class Grey>
inline void grey_by_layout(const GreyPixels<T>& p, const Grey& grey, std::int64_t count) {
  const bool alpha = p.out_channels == 2;
  if (p.interleaved) {
    if (p.channels == 3) return grey_all<true, 3, false>(p, grey, count);
    return alpha ? grey_all<true, 4, true>(p, grey, count)
                 : grey_all<true, 4, false>(p, grey, count);
  }
  return alpha ? grey_all<false, 4, true>(p, grey, count)
               : grey_all<false, 3, false>(p, grey, count);
}

inline void grey_u8(const GreyPixels<std::uint8_t>& p, std::int64_t count) {
  grey_by_layout(p, grey_of_16(p.weights), count);
}
inline void grey_f32(const GreyPixels<float>& p, std::int64_t count) {
  grey_by_layout(p, grey_of_f32(p.weights), count);
}

}  // namespace rung::image_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
