// SPDX-License-Identifier: Apache-2.0
// Shared by conv_backward_filter's CPU rungs.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rung/core/context.hpp"
#include "rung/ops/conv/shared/cpu/bands.hpp"
#include "rung/ops/conv/shared/gathered.hpp"
#include "rung/ops/conv_backward_filter/op/conv_backward_filter.hpp"

namespace rung::conv_backward_filter_cpu {

/// Computes dw by terms_by_filters' kernels for this machine's instruction set.
void terms_by_filters_on(const ConvBackwardFilter::Args& args, Context& context, int threads);
/// Returns the work of terms_by_filters; threads_of(): the number of threads that suit a layer, in
/// all rungs.
Work facts(const ConvBackwardFilter::Args& args, int threads);
int threads_of(const ConvBackwardFilter::Args& args, const Context& context);

/// Number of channels of a depthwise layer whose bands are copied together.
inline constexpr std::int64_t part_channels = 64;

/// Returns the number of slices of the pixels, at most the number of bands: more than one if dw has
/// few blocks. Depends on the shape alone.
inline std::int64_t slices_of(const conv_layer::Gathered& g, std::int64_t blocks,
                              std::int64_t bands) {
  constexpr std::int64_t min_slice = 2048;  // minimum pixels per slice
  constexpr std::int64_t max_slices = 16;
  const std::int64_t most = max_slices / std::max<std::int64_t>(1, blocks);
  const std::int64_t slices = std::min({g.pixels() / min_slice, most, bands});
  return std::max<std::int64_t>(1, slices);
}

/// Part of a band: rows [row, row + rows) and columns [column, column + width).
struct BandPixels {
  std::int64_t row, column, rows, width;
};
/// Calls f for parts of a band of up to `most` pixels; parts are whole rows if a row has at most
/// `most` pixels.
template <class F>
void for_each_part(const conv_cpu::Band& band, std::int64_t most, const F& f) {
  const std::int64_t width = std::min(band.columns, most);
  const std::int64_t height = std::max<std::int64_t>(1, most / width);
  for (std::int64_t row = 0; row < band.rows; row += height) {
    for (std::int64_t column = 0; column < band.columns; column += width) {
      f(BandPixels{row, column, std::min(height, band.rows - row),
                   std::min(width, band.columns - column)});
    }
  }
}

/// Adds the sums of the other slices, `apart` elements apart, to those of the first, in order.
template <class T>
void add_slices(T* sums, std::int64_t count, std::int64_t slices, std::int64_t apart) {
  for (std::int64_t slice = 1; slice < slices; ++slice) {
    const T* other = sums + slice * apart;
    for (std::int64_t i = 0; i < count; ++i) sums[i] += other[i];
  }
}

}  // namespace rung::conv_backward_filter_cpu
