// SPDX-License-Identifier: Apache-2.0
// image / running box
//
// Idea     Running sums: the column sums under the window are updated from row to row by adding the
//          entering row and subtracting the leaving row. Along the row, a window is a few sums of
//          sums: 31 neighbors are six sums of five, and one.
// Changes  Against separable: two operations per element down the columns, whatever T; 12 along the
//          row for T = 31, 6 for T = 7. Division by T^2 becomes a multiplication by its reciprocal.
//          32 lanes of 16 bits, where the compiler uses 4 lanes of 32 bits: 5x and more in one
//          step.
// Cost     Ring buffer of T + 1 lines of x, one line of column sums. x loaded once, y stored once.
// Limits   Boxes of u8; one thread. f32 has no running sums: a rounding error, an infinity or a NaN
//          would persist in them.
// Source   M. McDonnell, Box-filtering techniques, Computer Graphics and Image Processing 17, 1981.
#include "rung/cpu/foreach_target.hpp"

#include <hwy/cache_control.h>

#include <algorithm>

#include "rung/ops/image/cpu/detail/kernels.hpp"
#include "rung/ops/image/cpu/detail/lines.hpp"
#include "rung/ops/image/cpu/detail/pairs-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::image_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Byte = std::uint8_t;

// --- down the columns ----------------------------------------------------------------------------

/// Computes sums += entering - leaving; `leaving` may be null. Prefetches `next` unless it is null.
void slide(std::uint16_t* sums, const Byte* entering, const Byte* leaving, std::int64_t count,
           const Byte* next) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(du16));
  for (std::int64_t j = 0; j < count; j += lanes) {
    if (next != nullptr) hwy::Prefetch(next + j);
    U16 sum = hn::Add(hn::LoadU(du16, sums + j), load_bytes(entering + j));
    if (leaving != nullptr) sum = hn::Sub(sum, load_bytes(leaving + j));
    hn::StoreU(sum, du16, sums + j);
  }
}

// --- along a row ---------------------------------------------------------------------------------

/// Partition of a window of `taps` neighbors into `wide` sums of `pack` neighbors each and `narrow`
/// single neighbors, with the fewest loads.
struct Window {
  int pack = 1, wide = 0, narrow;

  explicit Window(int taps) : narrow(taps) {
    int least = taps;
    for (int size = 2; size <= 8; ++size) {  // 8 x 31 x 255 is below 2^16
      const int loads = size + 1 + taps / size + taps % size;
      if (loads >= least) continue;
      least = loads;
      pack = size, wide = taps / size, narrow = taps % size;
    }
  }
};

/// Returns the sum of `count` elements at a distance of `step`.
template <int static_count>
HWY_INLINE U16 sum_of(const std::uint16_t* from, std::int64_t step, int count) {
  U16 sum = hn::LoadU(du16, from);
  for (int k = 1; k < (static_count > 0 ? static_count : count); ++k) {
    sum = hn::Add(sum, hn::LoadU(du16, from + k * step));
  }
  return sum;
}

/// Computes out = sum(j) / area for windows up to 15 x 15, whose sums fit 16 bits. To round to
/// nearest, n is the sum plus half of the area; n / area is computed as n factor / 2^(16 + shift),
/// rounded down.
template <int radius, class Sum>
HWY_INLINE void mean_of_16(const Sum& sum, bool truncate, Byte* out, std::int64_t count) {
  constexpr std::uint32_t area = (2 * radius + 1) * (2 * radius + 1);
  constexpr int shift = area < 16 ? 3 : area < 32 ? 4 : area < 64 ? 5 : area < 128 ? 6 : 7;
  constexpr std::uint32_t one = 1U << (16 + shift);
  constexpr std::uint32_t factor = (one + area - 1) / area;
  constexpr std::uint32_t max_n = 255 * area + area / 2;
  static_assert(factor < 0x10000 && max_n < 0x10000);
  // The error from rounding up the factor is less than the distance of n / area from the next
  // integer.
  static_assert(max_n * (factor * area - one) < one);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(du16));
  const auto half = hn::Set(du16, truncate ? 0 : area / 2);
  for (std::int64_t j = 0; j < count; j += lanes) {
    const U16 n = hn::Add(sum(j), half);
    const U16 quotient = hn::ShiftRight<shift>(hn::MulHigh(n, hn::Set(du16, factor)));
    store_bytes(hn::BitCast(di16, quotient), out + j);
  }
}

/// Computes the means of windows along a line: adds 2 lines.reach + 1 adjacent column sums per
/// pixel and divides by the window's area. `scratch` holds a second line of sums.
void mean_along(const Lines<Byte>& lines, bool truncate, const std::uint16_t* sums,
                std::uint16_t* scratch, Byte* out) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(du16));
  const std::int64_t count = lines.count;
  const std::int64_t near = lines.group;
  switch (lines.reach) {
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
  const int taps = 2 * lines.reach + 1;
  const Window window(taps);
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
  switch (lines.reach) {
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
  // 32-bit sums in f32, rounded down. (n + 1/2) / area is at least 1 / 1922 from any integer, more
  // than the rounding error of f32.
  const int area = taps * taps;
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

}  // namespace

void box_range(const Image::Args& args, cpu::Range range, std::byte* memory) {
  Lines<Byte> lines(args);
  const int taps = args.taps();
  Scratch scratch(memory);
  auto* const sums = scratch.take<std::uint16_t>(1);
  auto* const wide_sums = scratch.take<std::uint16_t>(1);
  Byte* const out = scratch.take<Byte>(1);
  Byte* const ring = scratch.take<Byte>(taps + 1);
  const Byte* held[max_taps + 1];
  for (std::int64_t tile = range.begin; tile < range.end; ++tile) {
    lines.go_to(tile);
    const std::int64_t length = lines.count + 2 * std::int64_t{lines.reach} * lines.group;
    std::fill_n(sums, line_length, std::uint16_t{0});
    for (std::int64_t row = 0; row < lines.rows; ++row) {
      // For the first row of a tile all rows under the window enter; for each later row, one enters
      // and one leaves.
      for (int k = row == 0 ? 0 : taps - 1; k < taps; ++k) {
        const std::int64_t from = lines.first_row + row + k - lines.reach;
        const std::int64_t slot = (row + k) % (taps + 1);
        Byte* const buffer = ring + slot * line_length;
        held[slot] = lines.load(from, buffer);
        slide(sums, held[slot], row == 0 ? nullptr : held[(row - 1) % (taps + 1)], length,
              lines.next(held[slot], buffer, from));
      }
      mean_along(lines, args.options.truncate, sums, wide_sums, out);
      lines.store(lines.first_row + row, out);
    }
  }
  lines.finish();
}

}  // namespace rung::image_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace image_cpu {
HWY_EXPORT(box_range);
void running_box(const Image::Args& args, cpu::Range tiles, std::byte* scratch) {
  HWY_DYNAMIC_DISPATCH(box_range)(args, tiles, scratch);
}
}  // namespace image_cpu

namespace {

Support supports(const Image::Args& args, const Context&) {
  const bool takes = args.filter() == ImageFilter::box && args.x.dtype == DType::u8;
  return takes ? supported : unsupported("takes boxes of u8");
}

void run(const Image::Args& args, Context& context) {
  auto* const scratch = image_cpu::Scratch::memory(args, context);
  image_cpu::running_box(args, {0, image_cpu::tiles_of(args).count()}, scratch);
}

const Rung<Image> self{{.name = "running_box",
                        .step = 35,
                        .after = "separable",
                        .teaching = true,
                        .supports = supports,
                        .run = run}};

}  // namespace
}  // namespace rung
#endif
