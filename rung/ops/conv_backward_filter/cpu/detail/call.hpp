// SPDX-License-Identifier: Apache-2.0
// What conv_backward_filter's CPU rungs share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rung/core/context.hpp"
#include "rung/ops/conv/shared/gathered.hpp"
#include "rung/ops/conv_backward_filter/op/conv_backward_filter.hpp"

namespace rung::conv_backward_filter_cpu {

/// terms_by_filters' kernels, for this machine, and what they take.
void terms_by_filters_on(const ConvBackwardFilter::Args& args, Context& context, int threads);
double seconds(const ConvBackwardFilter::Args& args, int threads);

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

/// Sums of some filters and channels, sum(term, filter) with terms in the order q t0 t1 t2, to dw.
template <class T, class In, class Sum>
void write_block(const conv_layer::Gathered& g, std::int64_t filter, std::int64_t filters,
                 std::int64_t channel, std::int64_t channels, const Sum& sum) {
  // dw is written, though a layer's w is read.
  auto* const dw = static_cast<In*>(const_cast<void*>(g.w));  // NOLINT
  for (std::int64_t j = 0; j < filters; ++j) {
    std::int64_t term = 0;
    for (std::int64_t q = channel; q < channel + channels; ++q) {
      In* const to = dw + (filter + j) * g.w_strides[0] + q * g.w_strides[1];
      for (std::int64_t t0 = 0; t0 < g.axis[0].kernel; ++t0) {
        for (std::int64_t t1 = 0; t1 < g.axis[1].kernel; ++t1) {
          for (std::int64_t t2 = 0; t2 < g.axis[2].kernel; ++t2, ++term) {
            to[t0 * g.w_strides[2] + t1 * g.w_strides[3] + t2 * g.w_strides[4]] =
                static_cast<In>(sum(term, j));
          }
        }
      }
    }
  }
}

}  // namespace rung::conv_backward_filter_cpu
