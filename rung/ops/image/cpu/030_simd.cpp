// SPDX-License-Identifier: Apache-2.0
// image / simd
//
// Idea     Explicit vectors whose sums stay in registers across all taps. Channels stay
//          interleaved: in a row of R G B R G B, the neighbor is three elements to the right. Sums
//          of u8 along a row fit 16 bits; down the columns, two rows are interleaved for an
//          instruction that multiplies pairs and adds.
// Changes  Against separable (Sobel: padded_rows): no sum is loaded or stored between taps, and u8
//          uses 32 lanes of 16 bits; the compiler's baseline x86-64 code has 4 lanes of 32 bits. 5x
//          and more in one step.
// Cost     A Gaussian of u8 takes 2 T multiply-adds per result, 32 per instruction with AVX-512. x
//          loaded once (and the rows around each band of 128 once more), y stored once.
// Limits   Gaussian, unsharp, Sobel, and boxes of f32; one thread.
#include "rung/cpu/foreach_target.hpp"

#include <hwy/cache_control.h>

#include <cstdlib>
#include <type_traits>

#include "rung/ops/image/cpu/detail/kernels.hpp"
#include "rung/ops/image/cpu/detail/lines.hpp"
#include "rung/ops/image/cpu/detail/pairs-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::image_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Byte = std::uint8_t;

// --- blurs of u8 ---------------------------------------------------------------------------------

/// Calls f<radius>() for small radii, whose loops are unrolled, else f<0>().
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

/// Computes weighted sums along a row of u8, minus 2^15 to fit i16: the sums are at most 256 x 255.
void weigh_along(const Lines<Byte>& lines, const Image::Args& args, const Byte* line,
                 std::int16_t* sums, const Byte* next) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(du16));
  const std::int64_t step = lines.group;
  const Byte* const middle = line + args.radius * step;
  with_radius(args.radius, [&]<int static_radius>() HWY_ATTR {
    const int radius = static_radius > 0 ? static_radius : args.radius;
    U16 weights[(static_radius > 0 ? static_radius : Image::max_radius) + 1];
    for (int k = 0; k <= radius; ++k) {
      weights[k] = hn::Set(du16, static_cast<std::uint16_t>(args.blur_256[k]));
    }
    for (std::int64_t j = 0; j < lines.count; j += lanes) {
      const Byte* const at = middle + j;
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

/// Computes weighted sums down the columns, two lines at a time, each pair of products added in one
/// i32. Adds 2^23 to cancel the 2^15 that weigh_along() subtracted: the weights sum to 2^8.
void weigh_down(const Lines<Byte>& lines, const Image::Args& args, const std::int16_t* const* rows,
                Byte* out) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(du16));
  with_radius(args.radius, [&]<int static_radius>() HWY_ATTR {
    const int radius = static_radius > 0 ? static_radius : args.radius;
    // 2 radius + 1 lines, an odd number, form pairs; the last line is paired with itself, with
    // weight 0.
    constexpr int max_pairs = (static_radius > 0 ? static_radius : Image::max_radius) + 1;
    PairOfWeights weights[max_pairs];
    const std::int16_t* one[max_pairs];
    const std::int16_t* other[max_pairs];
    for (int k = 0; k <= radius; ++k) {
      const int tap = 2 * k;
      one[k] = rows[tap];
      other[k] = k < radius ? rows[tap + 1] : rows[tap];
      weights[k] = PairOfWeights(args.blur_256[std::abs(tap - radius)],
                                 k < radius ? args.blur_256[std::abs(tap + 1 - radius)] : 0);
    }
    for (std::int64_t j = 0; j < lines.count; j += lanes) {
      WideSums sums((1 << 23) + (1 << 15));
      for (int k = 0; k <= radius; ++k) {
        sums.add(hn::LoadU(di16, one[k] + j), hn::LoadU(di16, other[k] + j), weights[k]);
      }
      store_bytes(sums.shifted<16>(), out + j);
    }
  });
}

/// Computes out = x + amount (x - blurred).
void sharpen(const Lines<Byte>& lines, const Image::Args& args, const Byte* x, Byte* out) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(du16));
  const PairOfWeights weights(args.amount_256, 1 << 7);
  for (std::int64_t j = 0; j < lines.count; j += lanes) {
    const I16 value = hn::BitCast(di16, load_bytes(x + j));
    const I16 lost = hn::Sub(value, hn::BitCast(di16, load_bytes(out + j)));
    WideSums more(0);
    more.add(lost, hn::Set(di16, 1), weights);
    store_bytes(hn::Add(value, more.shifted<8>()), out + j);
  }
}

// --- blurs of f32 --------------------------------------------------------------------------------

/// Computes out = scale * sum of weights times lines. Four independent vectors of sums hide the
/// latency of a multiply-add and stay in registers across all lines.
void weigh(const Image::Args& args, const float* const* lines, float scale, float* out,
           std::int64_t length) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(df));
  const auto s = hn::Set(df, scale);
  float weights[max_taps];
  for (int k = 0; k < args.taps(); ++k) weights[k] = args.blur[std::abs(k - args.radius)];
  for (std::int64_t j = 0; j < length; j += 4 * lanes) {
    auto a = hn::Zero(df);
    auto b = a;
    auto c = a;
    auto d = a;
    for (int k = 0; k < args.taps(); ++k) {
      const float* const from = lines[k] + j;
      const auto w = hn::Set(df, weights[k]);
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

void weigh_along(const Lines<float>& lines, const Image::Args& args, const float* line, float* sums,
                 const float*) {
  const float* shifted[max_taps];
  for (int k = 0; k < args.taps(); ++k) shifted[k] = line + k * lines.group;
  weigh(args, shifted, 1, sums, lines.count);
}
void weigh_down(const Lines<float>& lines, const Image::Args& args, const float* const* rows,
                float* out) {
  const auto area = static_cast<float>(args.taps() * args.taps());
  weigh(args, rows, args.filter() == ImageFilter::box ? 1 / area : 1, out, lines.count);
}

void sharpen(const Lines<float>& lines, const Image::Args& args, const float* x, float* out) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(df));
  const auto amount = hn::Set(df, static_cast<float>(args.options.amount));
  for (std::int64_t j = 0; j < lines.count; j += lanes) {
    const auto value = hn::LoadU(df, x + j);
    const auto lost = hn::Sub(value, hn::LoadU(df, out + j));
    hn::StoreU(hn::MulAdd(amount, lost, value), df, out + j);
  }
}

/// Blurs a range of tiles: sums along each row once, into a ring buffer, then down its last 2
/// radius + 1 lines.
template <class T, class Sum>
void blur_range(const Image::Args& args, cpu::Range range, Scratch scratch) {
  Lines<T> lines(args);
  const int taps = args.taps();
  T* const buffer = scratch.take<T>(1);
  T* const out = scratch.take<T>(1);
  Sum* const ring = scratch.take<Sum>(taps);
  const Sum* rows[max_taps];
  for (std::int64_t tile = range.begin; tile < range.end; ++tile) {
    lines.go_to(tile);
    for (std::int64_t row = 0; row < lines.rows; ++row) {
      for (int k = row == 0 ? 0 : taps - 1; k < taps; ++k) {
        const std::int64_t from = lines.first_row + row + k - args.radius;
        const T* const line = lines.load(from, buffer);
        weigh_along(lines, args, line, ring + (row + k) % taps * line_length,
                    lines.next(line, buffer, from));
      }
      for (int k = 0; k < taps; ++k) rows[k] = ring + (row + k) % taps * line_length;
      weigh_down(lines, args, rows, out);
      if (args.filter() == ImageFilter::unsharp) {
        const T* const x = lines.load(lines.first_row + row, buffer) + args.radius * lines.group;
        sharpen(lines, args, x, out);
        lines.copy_alpha(x, out);
      }
      lines.store(lines.first_row + row, out);
    }
  }
  lines.finish();
}

// --- Sobel ---------------------------------------------------------------------------------------

/// Computes the two gradients of a vector of elements; load(line, pixels) loads the elements of a
/// line shifted by a number of pixels.
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

HWY_INLINE void magnitude(const Byte* const (&line)[3], int group, std::int64_t j, Byte* out) {
  I16 across;
  I16 down;
  gradients([&](int k, int pixels)
                HWY_ATTR { return hn::BitCast(di16, load_bytes(line[k] + j + pixels * group)); },
            across, down);
  WideSums squares(0);  // below 2^24: exact in f32
  squares.add_squares(across, down);
  const auto root = [](I32 sums)
                        HWY_ATTR { return hn::NearestInt(hn::Sqrt(hn::ConvertTo(df, sums))); };
  store_bytes(squares.narrow(root), out + j);
}
HWY_INLINE void magnitude(const float* const (&line)[3], int group, std::int64_t j, float* out) {
  hn::Vec<decltype(df)> across;
  hn::Vec<decltype(df)> down;
  gradients([&](int k, int pixels) HWY_ATTR { return hn::LoadU(df, line[k] + j + pixels * group); },
            across, down);
  hn::StoreU(hn::Sqrt(hn::MulAdd(across, across, hn::Mul(down, down))), df, out + j);
}

template <class T>
void sobel_range(const Image::Args& args, cpu::Range range, Scratch scratch) {
  Lines<T> lines(args);
  const auto lanes =
      static_cast<std::int64_t>(std::is_same_v<T, Byte> ? hn::Lanes(du16) : hn::Lanes(df));
  T* const out = scratch.take<T>(1);
  T* const ring = scratch.take<T>(3);
  const T* held[3];
  for (std::int64_t tile = range.begin; tile < range.end; ++tile) {
    lines.go_to(tile);
    for (std::int64_t row = 0; row < lines.rows; ++row) {
      for (int k = row == 0 ? 0 : 2; k < 3; ++k) {
        const std::int64_t slot = (row + k) % 3;
        held[slot] = lines.load(lines.first_row + row + k - 1, ring + slot * line_length);
      }
      const T* const line[3] = {held[row % 3], held[(row + 1) % 3], held[(row + 2) % 3]};
      const T* const next =
          lines.next(line[2], ring + (row + 2) % 3 * line_length, lines.first_row + row + 1);
      for (std::int64_t j = 0; j < lines.count; j += lanes) {
        if (next != nullptr) hwy::Prefetch(next + j);
        magnitude(line, lines.group, j, out);
      }
      lines.copy_alpha(line[1] + lines.group, out);
      lines.store(lines.first_row + row, out);
    }
  }
  lines.finish();
}

}  // namespace

void filter_range(const Image::Args& args, cpu::Range range, std::byte* memory) {
  const Scratch scratch(memory);
  const bool is_u8 = args.x.dtype == DType::u8;
  if (args.filter() == ImageFilter::sobel) {
    return is_u8 ? sobel_range<Byte>(args, range, scratch)
                 : sobel_range<float>(args, range, scratch);
  }
  is_u8 ? blur_range<Byte, std::int16_t>(args, range, scratch)
        : blur_range<float, float>(args, range, scratch);
}

}  // namespace rung::image_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace image_cpu {
HWY_EXPORT(filter_range);
void simd(const Image::Args& args, cpu::Range tiles, std::byte* scratch) {
  HWY_DYNAMIC_DISPATCH(filter_range)(args, tiles, scratch);
}
}  // namespace image_cpu

namespace {

Support supports(const Image::Args& args, const Context&) {
  if (args.filter() == ImageFilter::grey) return unsupported("takes filters with a neighborhood");
  const bool box = args.filter() == ImageFilter::box && args.x.dtype == DType::u8;
  return box ? unsupported("takes boxes of f32 alone") : supported;
}

void run(const Image::Args& args, Context& context) {
  auto* const scratch = image_cpu::Scratch::memory(args, context);
  image_cpu::simd(args, {0, image_cpu::tiles_of(args).count()}, scratch);
}

const Rung<Image> self{{.name = "simd",
                        .step = 30,
                        .after = "separable",
                        .teaching = true,
                        .supports = supports,
                        .run = run}};

}  // namespace
}  // namespace rung
#endif
