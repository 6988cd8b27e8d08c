// SPDX-License-Identifier: Apache-2.0
// stencil / separable
//
// Idea     A mask that is the product of a row and a column is applied as a row, then as a column:
//          vertically adjacent windows share row sums.
// Changes  Against tiled: m + n multiply-adds per element instead of m n for a mask of m x n, at
//          the price of a second pass over an intermediate array.
// Cost     2 (m + n) operations per element; x loaded once, y stored once, row sums stored once and
//          loaded m times (from a cache, where m rows fit).
// Limits   f32; one or two axes; vectors or a window, zero edges; one thread.
// Source   any textbook on image processing.
#include <algorithm>

#include "rung/ops/stencil/cpu/detail/textbook.hpp"

namespace rung {
namespace {
using namespace stencil_cpu;

/// One of the two vectors of a separable mask; null `data`: every weight is 1.
struct Vector {
  const float* data;
  std::int64_t stride;
  int taps, origin;
  float operator()(int tap) const { return data == nullptr ? 1.0F : data[tap * stride]; }
};

void separable(const Image& x, const Vector& across, const Vector& down, float scale, float* rows,
               const ImageOut& y) {
  for (std::int64_t row = 0; row < x.shape[0]; ++row) {
    float* sums = rows + row * x.shape[1];
    std::fill(sums, sums + x.shape[1], 0.0F);
    for (int j = 0; j < across.taps; ++j) {
      const std::int64_t shift = j - across.origin;
      const std::int64_t begin = std::max<std::int64_t>(0, -shift);
      const std::int64_t end = std::min(x.shape[1], x.shape[1] - shift);
      for (std::int64_t c = begin; c < end; ++c) sums[c] += across(j) * x(row, c + shift);
    }
  }
  for (std::int64_t row = 0; row < x.shape[0]; ++row) {
    for (std::int64_t c = 0; c < x.shape[1]; ++c) y(row, c) = 0;
    for (int i = 0; i < down.taps; ++i) {
      const std::int64_t from_row = row + i - down.origin;
      if (from_row < 0 || from_row >= x.shape[0]) continue;
      const float* sums = rows + from_row * x.shape[1];
      for (std::int64_t c = 0; c < x.shape[1]; ++c) y(row, c) += down(i) * sums[c];
    }
    for (std::int64_t c = 0; c < x.shape[1]; ++c) y(row, c) *= scale;
  }
}

Support supports(const Stencil::Args& args, const Context&) {
  if (!args.is_separable()) return unsupported("takes vectors or a window");
  return supports_images(args);
}

void run(const Stencil::Args& args, Context& context) {
  const auto vector = [](const ConstTensorRef& weights, const Stencil::Axis& axis) {
    return Vector{static_cast<const float*>(weights.data), weights.strides[0], axis.taps,
                  axis.origin};
  };
  const auto bytes = static_cast<std::size_t>(args.rows().extent * args.columns().extent) * 4;
  stencil_detail::for_each_step(args, context, bytes, [&](const Stencil::Args& step, void* rows) {
    for (std::int64_t array = 0; array < step.arrays(); ++array) {
      separable(image_of(step, array), vector(step.across, step.columns()),
                vector(step.down, step.rows()), static_cast<float>(step.scale),
                static_cast<float*>(rows), result_of(step, array));
    }
  });
}

const Rung<Stencil> self{{.name = "separable",
                          .step = 24,
                          .after = "tiled",
                          .teaching = true,
                          .supports = supports,
                          .run = run}};

}  // namespace
}  // namespace rung
