// SPDX-License-Identifier: Apache-2.0
// What conv_backward_filter's CPU rungs share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rung/core/context.hpp"
#include "rung/ops/conv/shared/cpu/bands.hpp"
#include "rung/ops/conv/shared/gathered.hpp"
#include "rung/ops/conv_backward_filter/op/conv_backward_filter.hpp"

namespace rung::conv_backward_filter_cpu {

/// terms_by_filters' kernels, for this machine, and what they take.
void terms_by_filters_on(const ConvBackwardFilter::Args& args, Context& context, int threads);
/// terms_by_filters: facts of a call, and how many threads it is worth, by any of these rungs.
Work facts(const ConvBackwardFilter::Args& args, int threads);
int threads_of(const ConvBackwardFilter::Args& args, const Context& context);

/// Channels of a depthwise layer whose bands are copied together.
inline constexpr std::int64_t part_channels = 64;

/// Into how many slices the pixels are cut where dw has so few blocks; of the shape alone. They
/// consist of bands.
inline std::int64_t slices_of(const conv_layer::Gathered& g, std::int64_t blocks,
                              std::int64_t bands) {
  constexpr std::int64_t min_slice = 2048;  // pixels that are worth one
  constexpr std::int64_t max_slices = 16;
  const std::int64_t most = max_slices / std::max<std::int64_t>(1, blocks);
  const std::int64_t slices = std::min({g.pixels() / min_slice, most, bands});
  return std::max<std::int64_t>(1, slices);
}

/// Rows [row, row + rows) and columns [column, column + width) of a band.
struct BandPixels {
  std::int64_t row, column, rows, width;
};
/// Calls f for parts of a band of up to `most` pixels, of whole rows if these are no longer.
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

/// Adds the sums of other slices, `apart` elements one behind the other, in their order.
template <class T>
void add_slices(T* sums, std::int64_t count, std::int64_t slices, std::int64_t apart) {
  for (std::int64_t slice = 1; slice < slices; ++slice) {
    const T* other = sums + slice * apart;
    for (std::int64_t i = 0; i < count; ++i) sums[i] += other[i];
  }
}

}  // namespace rung::conv_backward_filter_cpu
