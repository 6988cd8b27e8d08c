// SPDX-License-Identifier: Apache-2.0
// Shared by conv_backward_filter's tiled CUDA rungs: kernel arguments with slices of the pixels,
// positions of pixels and terms, and the sum over slices.
#pragma once

#include "rung/ops/conv/shared/cuda/layer.hpp"
#include "rung/ops/conv/shared/cuda/partial_sums.hpp"
#include "rung/ops/conv/shared/cuda/tile_facts.hpp"
#include "rung/ops/conv/shared/cuda/tiles.hpp"
#include "rung/ops/conv_backward_filter/op/conv_backward_filter.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

/// Kernel arguments of a filter gradient.
template <class T>
struct FilterGradient {
  const T* x;
  const T* dy;
  View<T, 5> dw;
  Accumulator<T>* sums;  // [slice][group][filter][term]
  std::int64_t x_strides[5];
  std::int64_t dy_strides[5];
  ConvGeometry g;
  std::int64_t terms;
  std::int64_t pixels;
  std::int64_t slices;
};

/// Offsets of a term (a channel and a tap); small, since a thread holds many terms in registers.
struct Term {
  std::int64_t image;  // from a pixel's start
  int d, h, v;         // outside of every image if the term is out of range
};

/// Returns the offsets of a term's elements from the start of a pixel. Channels are innermost or
/// taps are, to match x's contiguous axis.
template <bool ChannelsInnermost, class T>
__device__ __forceinline__ Term make_term(const FilterGradient<T>& p, std::int64_t index) {
  if (index >= p.terms) return {0, outside, outside, outside};
  const ConvGeometry& g = p.g;
  std::int64_t c = 0;
  if constexpr (ChannelsInnermost) c = take_axis(index, g.group_channels());
  const std::int64_t v = take_axis(index, g.axis[2].kernel) * g.axis[2].dilation;
  const std::int64_t h = take_axis(index, g.axis[1].kernel) * g.axis[1].dilation;
  const std::int64_t d = take_axis(index, g.axis[0].kernel) * g.axis[0].dilation;
  if constexpr (!ChannelsInnermost) c = index;
  return {c * p.x_strides[1] + d * p.x_strides[2] + h * p.x_strides[3] + v * p.x_strides[4],
          static_cast<int>(d), static_cast<int>(h), static_cast<int>(v)};
}

/// Returns the start of a pixel in x, and its position in dy.
template <class T>
__device__ __forceinline__ Entry entry_of_pixel(const FilterGradient<T>& p, std::int64_t pixel,
                                                std::int64_t end) {
  if (pixel >= end) return no_entry;
  const ConvGeometry& g = p.g;
  const std::int64_t ow = take_axis(pixel, g.axis[2].out);
  const std::int64_t oh = take_axis(pixel, g.axis[1].out);
  const std::int64_t od = take_axis(pixel, g.axis[0].out);
  Entry made{};
  made.d = static_cast<int>(od * g.axis[0].stride - g.axis[0].padding);
  made.h = static_cast<int>(oh * g.axis[1].stride - g.axis[1].padding);
  made.v = static_cast<int>(ow * g.axis[2].stride - g.axis[2].padding);
  made.image = pixel * p.x_strides[0] + made.d * p.x_strides[2] + made.h * p.x_strides[3] +
               made.v * p.x_strides[4];
  made.other =
      pixel * p.dy_strides[0] + od * p.dy_strides[2] + oh * p.dy_strides[3] + ow * p.dy_strides[4];
  return made;
}

/// Returns whether a term of a pixel is within the image.
template <class T>
__device__ __forceinline__ bool is_inside(const FilterGradient<T>& p, const Entry& pixel,
                                          const Term& term) {
  const ConvGeometry& g = p.g;
  return static_cast<unsigned>(pixel.d + term.d) < static_cast<unsigned>(g.axis[0].in) &&
         static_cast<unsigned>(pixel.h + term.h) < static_cast<unsigned>(g.axis[1].in) &&
         static_cast<unsigned>(pixel.v + term.v) < static_cast<unsigned>(g.axis[2].in);
}

/// Range of pixels of a slice.
struct PixelRange {
  std::int64_t begin, end;
};
template <class T>
__device__ __forceinline__ PixelRange slice_of(const FilterGradient<T>& p, std::int64_t slice) {
  const std::int64_t share = ceil_div(p.pixels, p.slices);
  const std::int64_t begin = smaller(slice * share, p.pixels);
  return {begin, smaller(begin + share, p.pixels)};
}

/// Stores dw, the sums over all slices.
template <class T, bool ChannelsInnermost>
__device__ __forceinline__ void add_slices(const FilterGradient<T>& p, std::int64_t count) {
  add_partial_sums(p.sums, p.slices, count, [&](std::int64_t rest, Accumulator<T> sum) {
    std::int64_t c = 0;
    if constexpr (ChannelsInnermost) c = take_axis(rest, p.g.group_channels());
    const std::int64_t v = take_axis(rest, p.g.axis[2].kernel);
    const std::int64_t h = take_axis(rest, p.g.axis[1].kernel);
    const std::int64_t d = take_axis(rest, p.g.axis[0].kernel);
    if constexpr (!ChannelsInnermost) c = take_axis(rest, p.g.group_channels());
    p.dw(rest, c, d, h, v) = convert<T>(sum);
  });
}

// --- on the host ---------------------------------------------------------------------------------

inline Support supports_sliced(const ConvBackwardFilter::Args& args, std::int64_t rows) {
  const ConvGeometry& g = args.geometry;
  for (const ConvAxis& axis : g.axis) {
    if (axis.in > max_place || axis.padding > max_place || axis.out * axis.stride > max_place ||
        (axis.kernel - 1) * axis.dilation > max_place) {
      return unsupported("extents and paddings of up to 2^28");
    }
  }
  if (g.group_channels() > 0x7fffffff) return unsupported("up to 2^31 - 1 channels per group");
  const std::int64_t terms = g.group_channels() * g.taps();
  if (g.groups * ceil_div(g.group_filters(), rows) > 0xffff || ceil_div(terms, 64) > 0x7fffffff) {
    return unsupported("more tiles than a grid has blocks");
  }
  return supported;
}

/// Number of blocks for a large device: two per SM.
constexpr std::int64_t two_for_each = 264;

/// Returns the number of slices for `tiles` tiles of dw: about `blocks` blocks in all, with at
/// least about 64 pixels per slice.
inline std::int64_t slices_of(const ConvBackwardFilter::Args& args, std::int64_t tiles,
                              std::int64_t blocks) {
  constexpr std::int64_t few_pixels = 64;
  const std::int64_t pixels = args.geometry.images * args.geometry.results();
  return clamped(blocks / tiles, std::int64_t{1},
                 ceil_div(larger(pixels, std::int64_t{1}), few_pixels));
}
inline std::int64_t tiles_of(const ConvBackwardFilter::Args& args, std::int64_t rows,
                             std::int64_t columns) {
  const ConvGeometry& g = args.geometry;
  return g.groups * ceil_div(g.group_filters(), rows) *
         ceil_div(g.group_channels() * g.taps(), columns);
}
inline std::int64_t pixels_of(const ConvBackwardFilter::Args& args) {
  return args.geometry.images * args.geometry.results();
}
/// Returns the work of dw in tiles of rows x columns, which multiply `pixels` pixels, `depth` at a
/// time; a second launch adds the slices. The slices fill the GPU, so a block's strips count as
/// steps.
inline Work sliced_facts(const ConvBackwardFilter::Args& args, int rows, int columns, int depth,
                         std::int64_t blocks, std::int64_t pixels) {
  const std::int64_t tiles = tiles_of(args, rows, columns);
  const double sums =
      (args.dw.dtype == DType::f64 ? 8.0 : 4.0) * static_cast<double>(args.dw.size());
  Work work = tile_facts(
      ConvBackwardFilter::cost(args),
      {static_cast<double>(tiles), rows, columns, depth, slices_of(args, tiles, blocks), sums},
      pixels, 8);
  std::swap(work.rounds, work.steps);
  return work;
}
/// Returns the work of dw in `parts` parts times `slices` slices, whose blocks process `threads`
/// pixels at a time with all taps in registers; a second launch adds the slices.
inline Work register_facts(const ConvBackwardFilter::Args& args, std::int64_t parts,
                           std::int64_t slices, std::int64_t threads) {
  return {.bytes = ConvBackwardFilter::cost(args).bytes +
                   8 * static_cast<double>(slices) * static_cast<double>(args.dw.size()),
          .launches = 2,
          .blocks = parts * slices,
          .resident = 8,
          .steps = ceil_div(pixels_of(args), slices * threads) * (args.geometry.taps() + 6)};
}

/// Returns the kernel arguments for dw in slices of the pixels, with workspace for their sums.
template <class T>
FilterGradient<T> in_slices(const ConvBackwardFilter::Args& args, Context& context,
                            std::int64_t slices) {
  const ConvGeometry& g = args.geometry;
  FilterGradient<T> p{.x = static_cast<const T*>(args.x.data),
                      .dy = static_cast<const T*>(args.dy.data),
                      .dw = args.dw.view<T, 5>(),
                      .sums = nullptr,
                      .x_strides = {},
                      .dy_strides = {},
                      .g = g,
                      .terms = g.group_channels() * g.taps(),
                      .pixels = g.images * g.results(),
                      .slices = slices};
  conv_layer::set_strides(p.x_strides, args.x);
  conv_layer::set_strides(p.dy_strides, args.dy);
  p.sums = static_cast<Accumulator<T>*>(context.workspace(
      static_cast<std::size_t>(slices * args.dw.size()) * sizeof(Accumulator<T>)));
  return p;
}
/// Returns the kernel arguments for dw in `tiles` tiles and slices, about `blocks` in all.
template <class T>
FilterGradient<T> sliced(const ConvBackwardFilter::Args& args, Context& context, std::int64_t tiles,
                         std::int64_t blocks) {
  return in_slices<T>(args, context, slices_of(args, tiles, blocks));
}

template <class T>
LaunchShape sliced_grid(const FilterGradient<T>& p, std::int64_t rows, std::int64_t columns,
                        std::size_t shared_bytes) {
  return {.grid = {ceil_div(p.terms, columns), p.g.groups * ceil_div(p.g.group_filters(), rows),
                   p.slices},
          .block = block_threads,
          .shared_bytes = shared_bytes};
}
/// Returns the launch shape of the kernel that adds the slices.
template <class T>
LaunchShape sum_grid(const FilterGradient<T>& p) {
  return sum_grid<Accumulator<T>>(p.g.filters * p.terms, p.slices);
}

}  // namespace rung::conv_cuda::inline RUNG_TARGET
