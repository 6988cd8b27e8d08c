// SPDX-License-Identifier: Apache-2.0
// image / padded rows
//
// Idea     Each row is copied once into a line with its border filled in; a ring buffer holds the
//          lines under the window. A tap adds its weight times a whole shifted line to a line of
//          sums.
// Changes  Against naive: the inner loop clamps no index and is a unit-stride multiply-add. The
//          compiler vectorizes it, which is most of the gain.
// Cost     T^2 multiply-adds per result of a T x T blur, each with a load and a store of the sum
//          from L1.
// Limits   Box, Gaussian and Sobel; one thread.
// Source   M. Wolf and M. Lam, A Data Locality Optimizing Algorithm, PLDI 1991.
#include <algorithm>
#include <cmath>

#include "rung/ops/image/cpu/detail/blur.hpp"

namespace rung {
namespace {
using namespace image_cpu;

/// Computes one row of a blur; line(k) returns the k-th line under the window.
template <class T, class Line>
void blur_row(const Lines<T>& lines, const Blur<T>& blur, const Line& line,
              typename Blur<T>::Sum* sums, T* out) {
  const int taps = 2 * lines.reach + 1;
  std::fill_n(sums, lines.count, 0);
  for (int k = 0; k < taps; ++k) {
    for (int l = 0; l < taps; ++l) {
      const auto weight = blur.weights[k] * blur.weights[l];
      const T* const from = line(k) + l * lines.group;
      for (std::int64_t j = 0; j < lines.count; ++j) sums[j] += weight * from[j];
    }
  }
  blur.finish(sums, out, lines.count);
}

template <class T, class Line>
void sobel_row(const Lines<T>& lines, const Line& line, T* out) {
  using Sum = typename Blur<T>::Sum;
  const T* const x[3] = {line(0), line(1), line(2)};
  const std::int64_t step = lines.group;
  for (std::int64_t j = 0; j < lines.count; ++j) {
    const auto at = [&](int k, int l) { return static_cast<Sum>(x[k][j + l * step]); };
    const Sum across = at(0, 2) - at(0, 0) + 2 * (at(1, 2) - at(1, 0)) + at(2, 2) - at(2, 0);
    const Sum down = at(2, 0) - at(0, 0) + 2 * (at(2, 1) - at(0, 1)) + at(2, 2) - at(0, 2);
    const float root = std::sqrt(static_cast<float>(across * across + down * down));
    if constexpr (Blur<T>::is_u8) {
      // f32 suffices: the root of an integer of this size is never as close to a half as the
      // rounding error of f32.
      const int rounded = static_cast<int>(root + 0.5F);  // NOLINT(bugprone-incorrect-roundings)
      out[j] = static_cast<T>(std::min(rounded, 255));
    } else {
      out[j] = root;
    }
  }
}

template <class T>
void padded_rows(const Image::Args& args, std::byte* memory) {
  Lines<T> lines(args);
  const Blur<T> blur(args);
  const int taps = 2 * lines.reach + 1;
  Scratch scratch(memory);
  T* const ring = scratch.take<T>(taps);
  T* const out = scratch.take<T>(1);
  auto* const sums = scratch.take<typename Blur<T>::Sum>(1);
  const T* held[max_taps];
  for (std::int64_t tile = 0; tile < tiles_of(args).count(); ++tile) {
    lines.go_to(tile);
    for (std::int64_t row = 0; row < lines.rows; ++row) {
      // The first row of a tile needs all lines under the window, each later row one new line.
      for (int k = row == 0 ? 0 : taps - 1; k < taps; ++k) {
        const std::int64_t slot = (row + k) % taps;
        const std::int64_t from = lines.first_row + row + k - lines.reach;
        held[slot] = lines.load(from, ring + slot * line_length);
      }
      const auto line = [&](int k) { return held[(row + k) % taps]; };
      if (args.filter() == ImageFilter::sobel) {
        sobel_row(lines, line, out);
        lines.copy_alpha(line(1) + lines.group, out);
      } else {
        blur_row(lines, blur, line, sums, out);
      }
      lines.store(lines.first_row + row, out);
    }
  }
  lines.finish();
}

Support supports(const Image::Args& args, const Context&) {
  const bool takes = args.filter() != ImageFilter::grey && args.filter() != ImageFilter::unsharp;
  return takes ? supported : unsupported("takes box, gaussian and sobel");
}

void run(const Image::Args& args, Context& context) {
  auto* const scratch = Scratch::memory(args, context);
  visit<std::uint8_t, float>(args.x.dtype, [&]<class T>() { padded_rows<T>(args, scratch); });
}

const Rung<Image> self{{.name = "padded_rows",
                        .step = 15,
                        .after = "naive",
                        .teaching = true,
                        .supports = supports,
                        .run = run}};

}  // namespace
}  // namespace rung
