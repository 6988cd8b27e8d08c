// SPDX-License-Identifier: Apache-2.0
// stencil / block sums
//
// Idea     A window of m elements at any position is a suffix of one block of m elements and a
//          prefix of the next block. Its sum is a suffix sum plus a prefix sum: three additions per
//          element, whatever m is.
// Changes  Against separable: O(1) per element instead of O(m). Nothing is subtracted: a running
//          sum would need two operations per element and would keep every rounding error, infinity
//          and NaN forever.
// Cost     3 additions per element and axis.
// Limits   f32; one or two axes; a window, zero edges; one thread. Slower than separable: along
//          rows the additions form one dependency chain, and down columns every element is in
//          another cache line. line_sums removes both limits by adding whole rows.
// Source   M. van Herk, A fast algorithm for local minimum and maximum filters, Pattern Recognition
//          Letters 13, 1992; J. Gil and M. Werman, Computing 2-D min, median and max filters, 1993.
#include <algorithm>

#include "rung/ops/stencil/cpu/detail/textbook.hpp"

namespace rung {
namespace {
using namespace stencil_cpu;

/// Computes sums(i) = value(i - origin) + ... + value(i - origin + taps - 1) for i in [0, count).
template <class Value, class Sums>
void block_sums(std::int64_t count, int taps, int origin, const Value& value, const Sums& sums) {
  float ends[Stencil::max_taps];  // ends[i]: suffix sum of a block, from element i on
  for (std::int64_t first = 0; first < count; first += taps) {
    float end = 0;
    for (int i = taps - 1; i >= 0; --i) {
      end += value(first + i - origin);
      ends[i] = end;
    }
    float begin = 0;  // prefix sum of the next block
    const int last = static_cast<int>(std::min<std::int64_t>(taps, count - first));
    for (int i = 0; i < last; ++i) {
      if (i > 0) begin += value(first + taps + i - 1 - origin);
      sums(first + i) = ends[i] + begin;
    }
  }
}

void box(const Image& x, const Stencil::Args& args, float* rows, const ImageOut& y) {
  const auto scale = static_cast<float>(args.scale);
  for (std::int64_t row = 0; row < x.shape[0]; ++row) {
    block_sums(
        x.shape[1], args.columns().taps, args.columns().origin,
        [&](std::int64_t c) { return c >= 0 && c < x.shape[1] ? x(row, c) : 0.0F; },
        [&](std::int64_t c) -> float& { return rows[row * x.shape[1] + c]; });
  }
  for (std::int64_t c = 0; c < x.shape[1]; ++c) {
    block_sums(
        x.shape[0], args.rows().taps, args.rows().origin,
        [&](std::int64_t row) {
          return row >= 0 && row < x.shape[0] ? rows[row * x.shape[1] + c] : 0;
        },
        [&](std::int64_t row) -> float& { return y(row, c); });
    for (std::int64_t row = 0; row < x.shape[0]; ++row) y(row, c) *= scale;
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
                          .step = 26,
                          .after = "separable",
                          .teaching = true,
                          .supports = supports,
                          .run = run}};

}  // namespace
}  // namespace rung
