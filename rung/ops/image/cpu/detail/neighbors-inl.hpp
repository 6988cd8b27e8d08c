// SPDX-License-Identifier: Apache-2.0
// Filters of neighborhoods, a vector of neighboring elements at a time.
#if defined(RUNG_OPS_IMAGE_CPU_NEIGHBORS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_IMAGE_CPU_NEIGHBORS_INL_HPP_
#undef RUNG_OPS_IMAGE_CPU_NEIGHBORS_INL_HPP_
#else
#define RUNG_OPS_IMAGE_CPU_NEIGHBORS_INL_HPP_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstdlib>

#include "rung/ops/image/cpu/detail/kernels.hpp"
#include "rung/ops/image/cpu/detail/pairs-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::image_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// f<radius>() with the radius, where it is so small that unrolled loops pay; else f<0>().
template <class F>
HWY_INLINE void with_radius(int radius, const F& f) {
  switch (radius) {
    case 1:
      return f.template operator()<1>();
    case 2:
      return f.template operator()<2>();
    case 3:
      return f.template operator()<3>();
    default:
      return f.template operator()<0>();
  }
}

// --- Gaussian ------------------------------------------------------------------------------------

/// The sums are below 2^16: 256 times a byte.
inline void weigh_along_u8(const std::uint8_t* line, int group, const Image::Args& args,
                           std::int16_t* sums, std::int64_t count, const std::uint8_t* next) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(du16));
  const std::uint8_t* const middle = line + std::int64_t{args.radius} * group;
  const std::int64_t step = group;
  with_radius(args.radius, [&]<int static_radius>() HWY_ATTR {
    const int radius = static_radius > 0 ? static_radius : args.radius;
    U16 weights[(static_radius > 0 ? static_radius : Image::max_radius) + 1];
    for (int k = 0; k <= radius; ++k) {
      weights[k] = hn::Set(du16, static_cast<std::uint16_t>(args.blur_256[k]));
    }
    for (std::int64_t j = 0; j < count; j += lanes) {
      const std::uint8_t* const at = middle + j;
      if (next != nullptr) hwy::Prefetch(next + j);
      U16 sum = hn::Mul(weights[0], load_bytes(at));
      for (int k = 1; k <= radius; ++k) {
        const U16 both = hn::Add(load_bytes(at - k * step), load_bytes(at + k * step));
        sum = hn::Add(sum, hn::Mul(weights[k], both));
      }
      const auto less = hn::Xor(sum, hn::Set(du16, 0x8000));
      hn::StoreU(hn::BitCast(di16, less), di16, sums + j);
    }
  });
}

/// Two lines at a time, neighbors in one i32. The weights' sum is 256: of what was taken off the
/// sums, 2^15 each, 2^23 are put back.
inline void weigh_down_u8(const std::int16_t* const* lines, const Image::Args& args,
                          std::uint8_t* out, std::int64_t count) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(du16));
  with_radius(args.radius, [&]<int static_radius>() HWY_ATTR {
    const int radius = static_radius > 0 ? static_radius : args.radius;
    // 2 radius + 1 lines: pairs, and the last one with weight 0 for itself.
    constexpr int max_pairs = (static_radius > 0 ? static_radius : Image::max_radius) + 1;
    PairOfWeights weights[max_pairs];
    const std::int16_t* one[max_pairs];
    const std::int16_t* other[max_pairs];
    for (int k = 0; k <= radius; ++k) {
      const int tap = 2 * k;
      one[k] = lines[tap];
      other[k] = k < radius ? lines[tap + 1] : lines[tap];
      weights[k] = PairOfWeights(args.blur_256[std::abs(tap - radius)],
                                 k < radius ? args.blur_256[std::abs(tap + 1 - radius)] : 0);
    }
    for (std::int64_t j = 0; j < count; j += lanes) {
      WideSums sums((1 << 23) + (1 << 15));
      for (int k = 0; k <= radius; ++k) {
        sums.add(hn::LoadU(di16, one[k] + j), hn::LoadU(di16, other[k] + j), weights[k]);
      }
      store_bytes(sums.shifted<16>(), out + j);
    }
  });
}

// --- box -----------------------------------------------------------------------------------------

inline void slide_u8(std::uint16_t* sums, const std::uint8_t* entering, const std::uint8_t* leaving,
                     std::int64_t count, const std::uint8_t* next) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(du16));
  for (std::int64_t j = 0; j < count; j += lanes) {
    if (next != nullptr) hwy::Prefetch(next + j);
    U16 sum = hn::Add(hn::LoadU(du16, sums + j), load_bytes(entering + j));
    if (leaving != nullptr) sum = hn::Sub(sum, load_bytes(leaving + j));
    hn::StoreU(sum, du16, sums + j);
  }
}

/// Sums of sums: `wide` of them that are `step` apart, and behind them `narrow` single ones.
struct Window {
  int pack;    // neighbors in one of the wide sums
  int wide;    // of these
  int narrow;  // what is left
};
/// Of so many taps, with the fewest loads: `pack` to make a line of wide sums, then the window.
inline Window window_of(int taps) {
  Window best{1, 0, taps};
  int least = taps;
  for (int pack = 2; pack <= 8; ++pack) {  // 8 x 31 x 255 is below 2^16
    const int loads = pack + 1 + taps / pack + taps % pack;
    if (loads >= least) continue;
    least = loads;
    best = {pack, taps / pack, taps % pack};
  }
  return best;
}

/// Of windows up to 15 x 15 everything fits 16 bits, the division as well: n / area, n being the
/// sum and, to round to nearest, half of the area, is (n factor) / 2^(16 + shift) rounded down.
template <int radius>
struct Division {
  static constexpr std::uint32_t area = (2 * radius + 1) * (2 * radius + 1);
  static constexpr int shift = area < 16 ? 3 : area < 32 ? 4 : area < 64 ? 5 : area < 128 ? 6 : 7;
  static constexpr std::uint32_t one = 1U << (16 + shift);
  static constexpr std::uint32_t factor = (one + area - 1) / area;
  static constexpr std::uint32_t max_n = 255 * area + area / 2;
  static_assert(factor < 0x10000 && max_n < 0x10000);
  // What rounding up the factor adds is less than what n / area is below the next whole number.
  static_assert(max_n * (factor * area - one) < one);
};
template <int radius, class Sum>
HWY_INLINE void mean_of_16(const Sum& sum, bool truncate, std::uint8_t* out, std::int64_t count) {
  using By = Division<radius>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(du16));
  const auto half = hn::Set(du16, truncate ? 0 : By::area / 2);
  const auto factor = hn::Set(du16, By::factor);
  for (std::int64_t j = 0; j < count; j += lanes) {
    const U16 quotient = hn::ShiftRight<By::shift>(hn::MulHigh(hn::Add(sum(j), half), factor));
    store_bytes(hn::BitCast(di16, quotient), out + j);
  }
}

/// Sums of `count` neighbors that are `step` apart.
template <int static_count>
HWY_INLINE U16 sum_of(const std::uint16_t* from, std::int64_t step, int count) {
  U16 sum = hn::LoadU(du16, from);
  for (int k = 1; k < (static_count > 0 ? static_count : count); ++k) {
    sum = hn::Add(sum, hn::LoadU(du16, from + k * step));
  }
  return sum;
}

inline void mean_along_u8(const std::uint16_t* sums, int group, int radius, bool truncate,
                          std::uint16_t* scratch, std::uint8_t* out, std::int64_t count) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(du16));
  const int taps = 2 * radius + 1;
  const int area = taps * taps;
  const std::int64_t near = group;
  switch (radius) {
    case 0:
      for (std::int64_t j = 0; j < count; j += lanes) {
        store_bytes(hn::BitCast(di16, hn::LoadU(du16, sums + j)), out + j);
      }
      return;
    case 1:
      return mean_of_16<1>([&](std::int64_t j) HWY_ATTR { return sum_of<3>(sums + j, near, 3); },
                           truncate, out, count);
    case 2:
      return mean_of_16<2>([&](std::int64_t j) HWY_ATTR { return sum_of<5>(sums + j, near, 5); },
                           truncate, out, count);
    case 3:
      return mean_of_16<3>([&](std::int64_t j) HWY_ATTR { return sum_of<7>(sums + j, near, 7); },
                           truncate, out, count);
    default:
      break;
  }
  const Window window = window_of(taps);
  const std::int64_t step = window.pack * near;
  const std::uint16_t* const rest = sums + window.wide * step;
  const std::int64_t length = count + (window.wide - 1) * step;
  for (std::int64_t j = 0; j < length; j += lanes) {
    hn::StoreU(sum_of<0>(sums + j, near, window.pack), du16, scratch + j);
  }
  const auto sum_of_16 = [&](std::int64_t j) HWY_ATTR {
    const U16 wide = sum_of<0>(scratch + j, step, window.wide);
    return window.narrow == 0 ? wide : hn::Add(wide, sum_of<0>(rest + j, near, window.narrow));
  };
  switch (radius) {
    case 4:
      return mean_of_16<4>(sum_of_16, truncate, out, count);
    case 5:
      return mean_of_16<5>(sum_of_16, truncate, out, count);
    case 6:
      return mean_of_16<6>(sum_of_16, truncate, out, count);
    case 7:
      return mean_of_16<7>(sum_of_16, truncate, out, count);
    default:
      break;
  }
  // In 32 bits, rounded down. (n + 1/2) / area is at least 1 / 1922 from any whole number, which is
  // more than f32 rounds off.
  const auto half = hn::Set(df, static_cast<float>(truncate ? 0 : area / 2) + 0.5F);
  const auto scale = hn::Set(df, 1.0F / static_cast<float>(area));
  for (std::int64_t j = 0; j < count; j += lanes) {
    WideSums sum(0);
    for (int k = 0; k < window.wide; ++k) sum.add(hn::LoadU(du16, scratch + j + k * step));
    for (int k = 0; k < window.narrow; ++k) sum.add(hn::LoadU(du16, rest + j + k * near));
    const auto mean = [&](I32 wide) HWY_ATTR {
      return hn::ConvertTo(di32, hn::Mul(hn::Add(hn::ConvertTo(df, wide), half), scale));
    };
    store_bytes(sum.narrow(mean), out + j);
  }
}

// --- blurs of f32 --------------------------------------------------------------------------------

/// Four vectors of sums that do not wait for each other stay in registers while all lines pass.
inline void weigh_f32(const float* const* lines, const float* weights, int count, float scale,
                      float* out, std::int64_t length) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(df));
  const auto s = hn::Set(df, scale);
  for (std::int64_t j = 0; j < length; j += 4 * lanes) {
    auto a = hn::Zero(df);
    auto b = a;
    auto c = a;
    auto d = a;
    for (int line = 0; line < count; ++line) {
      const float* const from = lines[line] + j;
      const auto w = hn::Set(df, weights[line]);
      a = hn::MulAdd(w, hn::LoadU(df, from), a);
      b = hn::MulAdd(w, hn::LoadU(df, from + lanes), b);
      c = hn::MulAdd(w, hn::LoadU(df, from + 2 * lanes), c);
      d = hn::MulAdd(w, hn::LoadU(df, from + 3 * lanes), d);
    }
    hn::StoreU(hn::Mul(a, s), df, out + j);
    hn::StoreU(hn::Mul(b, s), df, out + j + lanes);
    hn::StoreU(hn::Mul(c, s), df, out + j + 2 * lanes);
    hn::StoreU(hn::Mul(d, s), df, out + j + 3 * lanes);
  }
}

// --- others --------------------------------------------------------------------------------------

inline void sharpen_u8(const std::uint8_t* x, const std::uint8_t* blurred, std::int32_t amount,
                       std::uint8_t* out, std::int64_t count) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(du16));
  const PairOfWeights weights(amount, 1 << 7);
  const auto one = hn::Set(di16, 1);
  for (std::int64_t j = 0; j < count; j += lanes) {
    const I16 value = hn::BitCast(di16, load_bytes(x + j));
    const I16 lost = hn::Sub(value, hn::BitCast(di16, load_bytes(blurred + j)));
    WideSums more(0);
    more.add(lost, one, weights);
    store_bytes(hn::Add(value, more.shifted<8>()), out + j);
  }
}
inline void sharpen_f32(const float* x, const float* blurred, float amount, float* out,
                        std::int64_t count) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(df));
  const auto weight = hn::Set(df, amount);
  for (std::int64_t j = 0; j < count; j += lanes) {
    const auto value = hn::LoadU(df, x + j);
    const auto lost = hn::Sub(value, hn::LoadU(df, blurred + j));
    hn::StoreU(hn::MulAdd(weight, lost, value), df, out + j);
  }
}

/// The two gradients of a vector of elements, by load(line, pixels across).
template <class V, class Load>
HWY_INLINE void gradients(const Load& load, V& across, V& down) {
  const V nw = load(0, 0);
  const V ne = load(0, 2);
  const V sw = load(2, 0);
  const V se = load(2, 2);
  const V w_to_e = hn::Sub(load(1, 2), load(1, 0));
  const V n_to_s = hn::Sub(load(2, 1), load(0, 1));
  across = hn::Add(hn::Add(hn::Sub(ne, nw), hn::Sub(se, sw)), hn::Add(w_to_e, w_to_e));
  down = hn::Add(hn::Add(hn::Sub(sw, nw), hn::Sub(se, ne)), hn::Add(n_to_s, n_to_s));
}

inline void sobel_u8(const std::uint8_t* const (&lines)[3], int group, std::uint8_t* out,
                     std::int64_t count, const std::uint8_t* next) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(du16));
  for (std::int64_t j = 0; j < count; j += lanes) {
    if (next != nullptr) hwy::Prefetch(next + j);
    I16 across;
    I16 down;
    gradients(
        [&](int line, int pixels)
            HWY_ATTR { return hn::BitCast(di16, load_bytes(lines[line] + j + pixels * group)); },
        across, down);
    WideSums squares(0);  // below 2^24: exact in f32
    squares.add_squares(across, down);
    const auto root = [](I32 sums)
                          HWY_ATTR { return hn::NearestInt(hn::Sqrt(hn::ConvertTo(df, sums))); };
    store_bytes(squares.narrow(root), out + j);
  }
}
inline void sobel_f32(const float* const (&lines)[3], int group, float* out, std::int64_t count,
                      const float* next) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(df));
  for (std::int64_t j = 0; j < count; j += lanes) {
    if (next != nullptr) hwy::Prefetch(next + j);
    hn::Vec<decltype(df)> across;
    hn::Vec<decltype(df)> down;
    gradients([&](int line, int pixels)
                  HWY_ATTR { return hn::LoadU(df, lines[line] + j + pixels * group); },
              across, down);
    hn::StoreU(hn::Sqrt(hn::MulAdd(across, across, hn::Mul(down, down))), df, out + j);
  }
}

}  // namespace rung::image_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
