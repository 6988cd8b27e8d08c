// SPDX-License-Identifier: Apache-2.0
// image / deinterleaved
//
// Idea     Grey needs R, G and B of a pixel in the same lane: loads deinterleave pixels into one
//          vector per channel. Planar pictures need no deinterleaving; pixels that are not
//          contiguous are first gathered into planes in L1.
// Changes  Against naive: a vector of pixels at a time, 64 of u8 with AVX-512. One multiply-add
//          instruction sums products of u8 in pairs: 5x and more in one step.
// Cost     Memory-bound: x loaded and y stored once.
// Limits   Grey; one thread.
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>
#include <type_traits>

#include "rung/ops/image/cpu/detail/kernels.hpp"
#include "rung/ops/image/cpu/detail/pairs-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::image_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// --- one vector per channel ----------------------------------------------------------------------

/// Returns n / 10, rounded down: n 6554 / 2^16 for every n up to 2550.
HWY_INLINE I16 tenth_of(I16 n) {
  return hn::BitCast(di16, hn::MulHigh(hn::BitCast(du16, n), hn::Set(du16, 6554)));
}
HWY_INLINE I16 three_times(I16 n) { return hn::Add(n, hn::Add(n, n)); }

struct GreyOfU8 {
  GreyWeights weights;
  PairOfWeights rg, b1;  // in units of 1/2^15; b1: blue, and the rounding term

  explicit HWY_INLINE GreyOfU8(GreyWeights which)
      : weights(which),
        rg(which == GreyWeights::bt601 ? PairOfWeights(9798, 19235) : PairOfWeights(6966, 23436)),
        b1(which == GreyWeights::bt601 ? 3735 : 2366, 1 << 14) {}

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

  template <class D8, class V8>
  HWY_INLINE V8 vector(D8 d8, V8 r, V8 g, V8 b) const {
#if HWY_TARGET == HWY_SCALAR
    const auto wide = [](V8 v) { return hn::PromoteTo(di16, v); };
    return hn::DemoteTo(d8, (*this)(wide(r), wide(g), wide(b)));
#else
    const auto lower = [](V8 v) HWY_ATTR { return hn::PromoteTo(di16, hn::LowerHalf(du8, v)); };
    const auto upper = [](V8 v) HWY_ATTR { return hn::PromoteTo(di16, hn::UpperHalf(du8, v)); };
    const I16 low = (*this)(lower(r), lower(g), lower(b));
    const I16 high = (*this)(upper(r), upper(g), upper(b));
    return hn::Combine(d8, hn::DemoteTo(du8, high), hn::DemoteTo(du8, low));
#endif
  }
};

struct GreyOfF32 {
  float weight[3];

  explicit GreyOfF32(GreyWeights which) {
    constexpr float all[3][3] = {
        {0.299F, 0.587F, 0.114F}, {0.2126F, 0.7152F, 0.0722F}, {0.3F, 0.6F, 0.1F}};
    const int row = which == GreyWeights::bt601 ? 0 : which == GreyWeights::bt709 ? 1 : 2;
    std::copy_n(all[row], 3, weight);
  }
  template <class D, class V>
  HWY_INLINE V vector(D d, V r, V g, V b) const {
    const V rg = hn::MulAdd(hn::Set(d, weight[1]), g, hn::Mul(hn::Set(d, weight[0]), r));
    return hn::MulAdd(hn::Set(d, weight[2]), b, rg);
  }
};

// --- a line of pixels ----------------------------------------------------------------------------

/// Pixels of a line: interleaved (x[0], y[0]) or planar.
template <class T>
struct Pixels {
  const T* x[4];
  T* y[2];  // [1]: alpha, if it is a plane
};

template <bool interleaved, int channels, bool alpha, class D, class T, class Grey>
HWY_INLINE void grey_vector(D d, const Grey& grey, const Pixels<T>& p, std::int64_t at) {
  hn::Vec<D> r;
  hn::Vec<D> g;
  hn::Vec<D> b;
  hn::Vec<D> a = hn::Zero(d);
  if constexpr (!interleaved) {
    r = hn::LoadU(d, p.x[0] + at);
    g = hn::LoadU(d, p.x[1] + at);
    b = hn::LoadU(d, p.x[2] + at);
    if constexpr (alpha) a = hn::LoadU(d, p.x[3] + at);
  } else if constexpr (channels == 3) {
    hn::LoadInterleaved3(d, p.x[0] + 3 * at, r, g, b);
  } else {
    hn::LoadInterleaved4(d, p.x[0] + 4 * at, r, g, b, a);
  }
  const auto result = grey.vector(d, r, g, b);
  if constexpr (alpha && interleaved) {
    hn::StoreInterleaved2(result, a, d, p.y[0] + 2 * at);
  } else {
    hn::StoreU(result, d, p.y[0] + at);
    if constexpr (alpha) hn::StoreU(a, d, p.y[1] + at);
  }
}

template <bool interleaved, int channels, bool alpha, class T, class Grey>
void grey_line(const Grey& grey, const Pixels<T>& p, std::int64_t count) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t at = 0;
  for (; at + lanes <= count; at += lanes) {
    grey_vector<interleaved, channels, alpha>(d, grey, p, at);
  }
  const std::int64_t rest = count - at;
  if (rest == 0) return;
  // The remainder goes through buffers of one vector: nothing beyond the line is accessed.
  HWY_ALIGN T in[4 * hn::MaxLanes(d)] = {};
  HWY_ALIGN T out[2 * hn::MaxLanes(d)];
  constexpr std::int64_t per_pixel = interleaved ? channels : 1;
  constexpr std::int64_t out_per_pixel = interleaved && alpha ? 2 : 1;
  for (int plane = 0; plane < (interleaved ? 1 : channels); ++plane) {
    std::copy_n(p.x[plane] + at * per_pixel, rest * per_pixel, in + plane * lanes);
  }
  const Pixels<T> buffers{{in, in + lanes, in + 2 * lanes, in + 3 * lanes}, {out, out + lanes}};
  grey_vector<interleaved, channels, alpha>(d, grey, buffers, 0);
  for (int plane = 0; plane < (interleaved || !alpha ? 1 : 2); ++plane) {
    std::copy_n(buffers.y[plane], rest * out_per_pixel, p.y[plane] + at * out_per_pixel);
  }
}

template <class T, class Grey>
void grey_line_of(const Image::Args& args, bool interleaved, const Grey& grey, const Pixels<T>& p,
                  std::int64_t count) {
  const bool alpha = args.out_channels == 2;
  if (!interleaved) {
    return alpha ? grey_line<false, 4, true>(grey, p, count)
                 : grey_line<false, 3, false>(grey, p, count);
  }
  if (args.channels == 3) return grey_line<true, 3, false>(grey, p, count);
  return alpha ? grey_line<true, 4, true>(grey, p, count)
               : grey_line<true, 4, false>(grey, p, count);
}

// --- all lines -----------------------------------------------------------------------------------

template <class T, class Grey>
void grey_range_of(const Image::Args& args, cpu::Range range, T* scratch) {
  const Grey grey(args.options.weights);
  const cpu::Tiles tiles = grey_tiles(args);
  const auto is_interleaved = [](const Image::Strides& strides, int channels) {
    return (channels == 1 || strides.channel == 1) && strides.column == channels;
  };
  const bool interleaved =
      is_interleaved(args.from, args.channels) && is_interleaved(args.to, args.out_channels);
  const bool contiguous = interleaved || (args.from.column == 1 && args.to.column == 1);
  for (std::int64_t index = range.begin; index < range.end; ++index) {
    const cpu::ArrayTile tile = tiles[index];
    std::int64_t picture[2];
    args.pictures.offsets(tile.array, picture);
    const T* const x = static_cast<const T*>(args.x.data) + picture[0] +
                       tile.first_row * args.from.row + tile.first_column * args.from.column;
    T* const y = static_cast<T*>(args.y.data) + picture[1] + tile.first_row * args.to.row +
                 tile.first_column * args.to.column;
    Pixels<T> pixels{{x}, {y, y + args.to.channel}};
    if (contiguous) {
      for (int c = 1; c < args.channels; ++c) pixels.x[c] = x + c * args.from.channel;
      grey_line_of(args, interleaved, grey, pixels, tile.columns);
      continue;
    }
    for (int c = 0; c < 4; ++c) pixels.x[c] = scratch + c * gathered_pixels;
    for (int c = 0; c < 2; ++c) pixels.y[c] = scratch + (4 + c) * gathered_pixels;
    for (std::int64_t first = 0; first < tile.columns; first += gathered_pixels) {
      const std::int64_t count = std::min(gathered_pixels, tile.columns - first);
      for (int c = 0; c < args.channels; ++c) {
        const T* const from = x + first * args.from.column + c * args.from.channel;
        for (std::int64_t i = 0; i < count; ++i) {
          scratch[c * gathered_pixels + i] = from[i * args.from.column];
        }
      }
      grey_line_of(args, false, grey, pixels, count);
      for (int c = 0; c < args.out_channels; ++c) {
        T* const to = y + first * args.to.column + c * args.to.channel;
        for (std::int64_t i = 0; i < count; ++i) to[i * args.to.column] = pixels.y[c][i];
      }
    }
  }
}

}  // namespace

void grey_range(const Image::Args& args, cpu::Range range, std::byte* scratch) {
  if (args.x.dtype == DType::u8) {
    grey_range_of<std::uint8_t, GreyOfU8>(args, range, reinterpret_cast<std::uint8_t*>(scratch));
  } else {
    grey_range_of<float, GreyOfF32>(args, range, reinterpret_cast<float*>(scratch));
  }
}

}  // namespace rung::image_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace image_cpu {
HWY_EXPORT(grey_range);

/// Returns the tiles of grey: one row each, or a panel of a very long row.
cpu::Tiles grey_tiles(const Image::Args& args) {
  return {args.pictures.size(), args.rows, args.columns, 1, 1 << 16};
}
void deinterleaved(const Image::Args& args, cpu::Range tiles, std::byte* scratch) {
  HWY_DYNAMIC_DISPATCH(grey_range)(args, tiles, scratch);
}
}  // namespace image_cpu

namespace {

Support supports(const Image::Args& args, const Context&) {
  return args.filter() == ImageFilter::grey ? supported : unsupported("takes grey");
}

void run(const Image::Args& args, Context& context) {
  auto* const scratch = static_cast<std::byte*>(context.workspace(image_cpu::grey_scratch_bytes));
  image_cpu::deinterleaved(args, {0, image_cpu::grey_tiles(args).count()}, scratch);
}

const Rung<Image> self{{.name = "deinterleaved",
                        .step = 25,
                        .after = "naive",
                        .teaching = true,
                        .supports = supports,
                        .run = run}};

}  // namespace
}  // namespace rung
#endif
