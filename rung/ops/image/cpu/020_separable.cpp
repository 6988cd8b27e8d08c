// SPDX-License-Identifier: Apache-2.0
// image / separable
//
// Idea     The weights of a blur are the product of a row and a column: it is computed as sums
//          along each row, then sums of these down the columns. A ring buffer holds the row sums
//          under the window.
// Changes  Against padded_rows: 2 T multiply-adds per result of a T x T blur instead of T^2.
// Cost     2 T multiply-adds per result, each with a load and a store of the sum from L1. Row sums
//          of u8 take four bytes per element.
// Limits   Box and Gaussian; one thread.
// Source   any textbook on image processing.
#include <algorithm>

#include "rung/ops/image/cpu/detail/blur.hpp"

namespace rung {
namespace {
using namespace image_cpu;

template <class T>
void separable(const Image::Args& args, std::byte* memory) {
  using Sum = typename Blur<T>::Sum;
  Lines<T> lines(args);
  const Blur<T> blur(args);
  const int taps = args.taps();
  Scratch scratch(memory);
  Sum* const ring = scratch.take<Sum>(taps);
  Sum* const sums = scratch.take<Sum>(1);
  T* const buffer = scratch.take<T>(1);
  T* const out = scratch.take<T>(1);
  for (std::int64_t tile = 0; tile < tiles_of(args).count(); ++tile) {
    lines.go_to(tile);
    for (std::int64_t row = 0; row < lines.rows; ++row) {
      // Sums along the rows that are new under the window.
      for (int k = row == 0 ? 0 : taps - 1; k < taps; ++k) {
        const T* const line = lines.load(lines.first_row + row + k - lines.reach, buffer);
        Sum* const along = ring + (row + k) % taps * line_length;
        std::fill_n(along, lines.count, Sum{0});
        for (int l = 0; l < taps; ++l) {
          const T* const from = line + l * lines.group;
          for (std::int64_t j = 0; j < lines.count; ++j) along[j] += blur.weights[l] * from[j];
        }
      }
      // Sums down the columns.
      std::fill_n(sums, lines.count, Sum{0});
      for (int k = 0; k < taps; ++k) {
        const Sum* const along = ring + (row + k) % taps * line_length;
        for (std::int64_t j = 0; j < lines.count; ++j) sums[j] += blur.weights[k] * along[j];
      }
      blur.finish(sums, out, lines.count);
      lines.store(lines.first_row + row, out);
    }
  }
  lines.finish();
}

Support supports(const Image::Args& args, const Context&) {
  const bool takes = args.filter() == ImageFilter::box || args.filter() == ImageFilter::gaussian;
  return takes ? supported : unsupported("takes box and gaussian");
}

void run(const Image::Args& args, Context& context) {
  auto* const scratch = Scratch::memory(args, context);
  visit<std::uint8_t, float>(args.x.dtype, [&]<class T>() { separable<T>(args, scratch); });
}

const Rung<Image> self{{.name = "separable",
                        .step = 20,
                        .after = "padded_rows",
                        .teaching = true,
                        .supports = supports,
                        .run = run}};

}  // namespace
}  // namespace rung
