// SPDX-License-Identifier: Apache-2.0
// image / padded rows
//
// Idea     Each row is copied once into a line with its border in place, and a ring holds the lines
//          under the window. A tap adds its weight times a whole line, shifted, to a line of sums.
// Changes  Against naive: no index is clamped in the inner loop, which is a unit-stride
//          multiply-add. The compiler vectorizes it, hence most of the gain.
// Cost     T^2 multiply-adds per result of a blur, each with a load and a store of the sum from L1.
// Limits   Box and Gaussian; one thread.
// Source   M. Wolf and M. Lam, A Data Locality Optimizing Algorithm, PLDI 1991.
#include <algorithm>

#include "rung/ops/image/cpu/detail/blur.hpp"

namespace rung {
namespace {
using namespace image_cpu;

template <class T>
void padded_rows(const Image::Args& args, std::byte* memory) {
  Lines<T> lines(args);
  const Blur<T> blur(args);
  const int taps = args.taps();
  Scratch scratch(memory);
  T* const ring = scratch.take<T>(taps);
  T* const out = scratch.take<T>(1);
  auto* const sums = scratch.take<typename Blur<T>::Sum>(1);
  const T* held[max_taps];
  for (std::int64_t tile = 0; tile < tiles_of(args).count(); ++tile) {
    lines.go_to(tile);
    for (std::int64_t row = 0; row < lines.rows; ++row) {
      // All lines under the window for the first row of a tile, one new line for each other.
      for (int k = row == 0 ? 0 : taps - 1; k < taps; ++k) {
        const std::int64_t slot = (row + k) % taps;
        const std::int64_t from = lines.first_row + row + k - lines.reach;
        held[slot] = lines.load(from, ring + slot * line_length);
      }
      std::fill_n(sums, lines.count, 0);
      for (int k = 0; k < taps; ++k) {
        const T* const line = held[(row + k) % taps];
        for (int l = 0; l < taps; ++l) {
          const auto weight = blur.weights[k] * blur.weights[l];
          const T* const from = line + l * lines.group;
          for (std::int64_t j = 0; j < lines.count; ++j) sums[j] += weight * from[j];
        }
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
