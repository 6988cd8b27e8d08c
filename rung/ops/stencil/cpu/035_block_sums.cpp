// SPDX-License-Identifier: Apache-2.0
// stencil / block sums
//
// Idea     a window of m elements, wherever it lies, is the end of one block of m and the beginning
//          of the next: sums from the right within the one, from the left within the other. Three
//          additions per element give them all, whatever m is.
// Changes  against separable: O(1) an element instead of O(m). A running sum, from which the
//          element that leaves is subtracted, would need two operations - and keep every rounding
//          error that was ever made, an infinity or a NaN for ever. Here nothing is subtracted.
// Cost     3 additions per element and axis.
// Limits   f32; one or two axes; a window, zero edges; one thread. Along rows one addition waits
//          for the one before; down columns every element is on another cache line, so that it
//          takes longer than separable for all its few additions. simd sums whole rows in this way.
// Source   M. van Herk, A fast algorithm for local minimum and maximum filters, Pattern Recognition
//          Letters 13, 1992; J. Gil and M. Werman, Computing 2-D min, median and max filters, 1993.
#include <algorithm>

#include "rung/ops/stencil/cpu/detail/textbook.hpp"

namespace rung {
namespace {
using namespace stencil_cpu;

/// sums(i) = value(i - origin) + ... + value(i - origin + taps - 1) for i in [0, count).
template <class Value, class Sums>
void block_sums(std::int64_t count, int taps, int origin, const Value& value, const Sums& sums) {
  float ends[Stencil::max_taps];  // ends[i]: the sum of elements i and behind it of a block
  for (std::int64_t first = 0; first < count; first += taps) {
    float end = 0;
    for (int i = taps - 1; i >= 0; --i) {
      end += value(first + i - origin);
      ends[i] = end;
    }
    float begin = 0;  // the sum of the first elements of the next block
    const int last = static_cast<int>(std::min<std::int64_t>(taps, count - first));
    for (int i = 0; i < last; ++i) {
      if (i > 0) begin += value(first + taps + i - 1 - origin);
      sums(first + i) = ends[i] + begin;
    }
  }
}

void box(const Image& x, const Stencil::Args& args, float* rows, const ImageOut& y) {
  const auto scale = static_cast<float>(args.scale);
  for (std::int64_t row = 0; row < x.rows; ++row) {
    block_sums(
        x.columns, args.columns().taps, args.columns().origin,
        [&](std::int64_t c) { return c >= 0 && c < x.columns ? x(row, c) : 0.0F; },
        [&](std::int64_t c) -> float& { return rows[row * x.columns + c]; });
  }
  for (std::int64_t c = 0; c < x.columns; ++c) {
    block_sums(
        x.rows, args.rows().taps, args.rows().origin,
        [&](std::int64_t row) { return row >= 0 && row < x.rows ? rows[row * x.columns + c] : 0; },
        [&](std::int64_t row) -> float& { return y(row, c); });
    for (std::int64_t row = 0; row < x.rows; ++row) y(row, c) *= scale;
  }
}

Support supports(const Stencil::Args& args, const Context&) {
  if (args.weights != Stencil::Weights::ones) return unsupported("takes a window");
  return supports_images(args);
}

void run(const Stencil::Args& args, Context& context) {
  const auto bytes = static_cast<std::size_t>(args.rows().extent * args.columns().extent) * 4;
  stencil_detail::for_each_step(args, context, bytes, [&](const Stencil::Args& step, void* rows) {
    for (std::int64_t array = 0; array < step.arrays(); ++array) {
      box(image_of(step, array), step, static_cast<float*>(rows), result_of(step, array));
    }
  });
}

const Rung<Stencil> self{{.name = "block_sums",
                          .step = 35,
                          .after = "separable",
                          .teaching = true,
                          .supports = supports,
                          .run = run}};

}  // namespace
}  // namespace rung
