// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / implicit GEMM
//
// Idea     dw is a matrix product over the pixels of all images: filters by terms, a term being a
//          channel and a tap. A block makes 16 or 64 filters by 64 terms, gathering dy and x into
//          shared memory. dw is small and pixels are many: they are cut into slices, a block each,
//          whose sums a second kernel adds in their order.
// Changes  against warp_per_tap: an element of dy or x is loaded once per tile.
// Cost     per multiply-add 1/64 of a load of dy and of x; the sums of all slices are written and
//          read once.
// Limits   extents of up to 2^28. Loads of single elements. The number of slices depends on the
//          shape alone, so that all devices add in the same order.
// Tried    -
// Source   split-K: S. Chetlur et al., cuDNN, 2014.
#include "rung/ops/conv/cuda/detail/layer.hpp"
#include "rung/ops/conv/cuda/detail/tiles.hpp"
#include "rung/ops/conv_backward_filter/conv_backward_filter.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

/// A call, small enough for a kernel's parameters.
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

/// Rows are filters, columns terms, k the pixels.
template <class T, class S>
struct PixelSource {
  using Sum = Accumulator<T>;
  static constexpr bool rows_by_k = !S::swapped;
  static constexpr bool columns_by_k = !S::swapped;

  const FilterGradient<T>& p;
  const T* x;
  const T* dy;
  std::int64_t filters;
  Entry term[S::column_slots];

  __device__ PixelSource(const FilterGradient<T>& gradient, std::int64_t group,
                         std::int64_t first_filter, std::int64_t first_term)
      : p(gradient),
        x(gradient.x + group * gradient.g.group_channels() * gradient.x_strides[1]),
        dy(gradient.dy +
           (group * gradient.g.group_filters() + first_filter) * gradient.dy_strides[1]),
        filters(gradient.g.group_filters() - first_filter) {
#pragma unroll
    for (int slot = 0; slot < S::column_slots; ++slot) {
      term[slot] = term_at(first_term + loaded<columns_by_k, S::columns, S::depth>(slot).at);
    }
  }

  /// In the order that x is contiguous in: taps innermost, or channels.
  __device__ __forceinline__ Entry term_at(std::int64_t index) const {
    if (index >= p.terms) return {0, -1, outside, outside, outside, 0};
    const ConvGeometry& g = p.g;
    std::int64_t c = 0;
    if constexpr (S::swapped) c = take_axis(index, g.group_channels());
    const std::int64_t v = take_axis(index, g.axis[2].kernel) * g.axis[2].dilation;
    const std::int64_t h = take_axis(index, g.axis[1].kernel) * g.axis[1].dilation;
    const std::int64_t d = take_axis(index, g.axis[0].kernel) * g.axis[0].dilation;
    if constexpr (!S::swapped) c = index;
    return {c * p.x_strides[1] + d * p.x_strides[2] + h * p.x_strides[3] + v * p.x_strides[4],
            0,
            static_cast<int>(d),
            static_cast<int>(h),
            static_cast<int>(v),
            0};
  }

  __device__ __forceinline__ void refill(Entry& entry, std::int64_t pixel, std::int64_t end) const {
    if (pixel >= end) {
      entry = {0, -1, outside, outside, outside, 0};
      return;
    }
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
    made.other = pixel * p.dy_strides[0] + od * p.dy_strides[2] + oh * p.dy_strides[3] +
                 ow * p.dy_strides[4];
    entry = made;
  }

  [[nodiscard]] __device__ __forceinline__ Sum row(int slot, const Entry& entry) const {
    const int at = loaded<rows_by_k, S::rows, S::depth>(slot).at;
    if (entry.other < 0 || at >= filters) return Sum(0);
    return convert<Sum>(dy[at * p.dy_strides[1] + entry.other]);
  }

  [[nodiscard]] __device__ __forceinline__ Sum column(int slot, const Entry& entry) const {
    const Entry& of = term[slot];
    const ConvGeometry& g = p.g;
    const bool inside =
        static_cast<unsigned>(entry.d + of.d) < static_cast<unsigned>(g.axis[0].in) &&
        static_cast<unsigned>(entry.h + of.h) < static_cast<unsigned>(g.axis[1].in) &&
        static_cast<unsigned>(entry.v + of.v) < static_cast<unsigned>(g.axis[2].in);
    return inside && of.other == 0 ? convert<Sum>(x[entry.image + of.image]) : Sum(0);
  }
};

template <class T, class S>
__global__ void __launch_bounds__(block_threads)
    conv_backward_filter_implicit_gemm(FilterGradient<T> p) {
  using Sum = Accumulator<T>;
  auto& strips = shared<Strips<Sum, S>>();
  const ConvGeometry& g = p.g;
  const std::int64_t tiles = ceil_div(g.group_filters(), std::int64_t{S::rows});
  const std::int64_t group = blockIdx.y / tiles;
  const std::int64_t first_filter = blockIdx.y % tiles * S::rows;
  const std::int64_t first_term = std::int64_t{blockIdx.x} * S::columns;
  const std::int64_t slice = blockIdx.z;
  const std::int64_t share = ceil_div(p.pixels, p.slices);
  const std::int64_t begin = smaller(slice * share, p.pixels);
  const std::int64_t end = smaller(begin + share, p.pixels);
  const PixelSource<T, S> source(p, group, first_filter, first_term);
  Sum sums[S::thread_rows][S::thread_columns] = {};
  multiply_tile<S>(source, strips, begin, end, sums);
#pragma unroll
  for (int i = 0; i < S::thread_rows; ++i) {
    const std::int64_t filter = first_filter + S::row(i);
    if (filter >= g.group_filters()) continue;
    Sum* to = p.sums + ((slice * g.groups + group) * g.group_filters() + filter) * p.terms;
#pragma unroll
    for (int j = 0; j < S::thread_columns; ++j) {
      const std::int64_t term = first_term + S::column(j);
      if (term < p.terms) to[term] = sums[i][j];
    }
  }
}

/// dw, from the sums of all slices.
template <class T, bool Swapped>
__global__ void __launch_bounds__(block_threads)
    conv_backward_filter_add_slices(FilterGradient<T> p, std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * block_threads;
  std::int64_t i = std::int64_t{blockIdx.x} * block_threads + threadIdx.x;
  for (; i < count; i += step) {
    Accumulator<T> sum = 0;
    for (std::int64_t slice = 0; slice < p.slices; ++slice) sum += p.sums[slice * count + i];
    std::int64_t rest = i;
    std::int64_t c = 0;
    if constexpr (Swapped) c = take_axis(rest, p.g.group_channels());
    const std::int64_t v = take_axis(rest, p.g.axis[2].kernel);
    const std::int64_t h = take_axis(rest, p.g.axis[1].kernel);
    const std::int64_t d = take_axis(rest, p.g.axis[0].kernel);
    if constexpr (!Swapped) c = take_axis(rest, p.g.group_channels());
    p.dw(rest, c, d, h, v) = convert<T>(sum);
  }
}

Support supports(const ConvBackwardFilter::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  for (const ConvAxis& axis : g.axis) {
    if (axis.in > max_place || axis.padding > max_place || axis.out * axis.stride > max_place ||
        (axis.kernel - 1) * axis.dilation > max_place) {
      return unsupported("extents and paddings of up to 2^28");
    }
  }
  if (g.group_channels() > 0x7fffffff) return unsupported("up to 2^31 - 1 channels per group");
  const std::int64_t terms = g.group_channels() * g.taps();
  if (g.groups * ceil_div(g.group_filters(), 16) > 0xffff || ceil_div(terms, 64) > 0x7fffffff) {
    return unsupported("more tiles than a grid has blocks");
  }
  return supported;
}

double estimate(const ConvBackwardFilter::Args& args, const Context& context) {
  const double filters = static_cast<double>(args.geometry.group_filters());
  const double rows =
      filters <= 16 ? 16 : 64 * static_cast<double>(ceil_div(args.geometry.group_filters(), 64));
  return estimate_seconds(ConvBackwardFilter::cost(args),
                          {.peak = 0.4 * filters / rows, .launches = 2}, context);
}

template <class T, int Rows, bool Swapped>
void start(const ConvBackwardFilter::Args& args, Context& context) {
  using S = Shape<Rows, 64, Swapped>;
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
                      .slices = 1};
  conv_layer::set_strides(p.x_strides, args.x);
  conv_layer::set_strides(p.dy_strides, args.dy);
  const std::int64_t rows = g.groups * ceil_div(g.group_filters(), std::int64_t{Rows});
  const std::int64_t columns = ceil_div(p.terms, std::int64_t{S::columns});
  // Two blocks for each SM of a large device, if that leaves them some pixels.
  constexpr std::int64_t enough_blocks = 264, few_pixels = 512;
  p.slices = clamped(enough_blocks / (rows * columns), std::int64_t{1},
                     ceil_div(larger(p.pixels, std::int64_t{1}), few_pixels));
  const std::int64_t count = args.dw.size();
  p.sums = static_cast<Accumulator<T>*>(
      context.workspace(static_cast<std::size_t>(p.slices * count) * sizeof(Accumulator<T>)));
  launch(context,
         {.grid = {columns, rows, p.slices},
          .block = block_threads,
          .shared_bytes = sizeof(Strips<Accumulator<T>, S>)},
         conv_backward_filter_implicit_gemm<T, S>, p);
  launch(context,
         {.grid = smaller(ceil_div(count, block_threads), std::int64_t{0x7fffffff}),
          .block = block_threads},
         conv_backward_filter_add_slices<T, Swapped>, p, count);
}

void run(const ConvBackwardFilter::Args& args, Context& context) {
  const bool swapped = args.x.strides[1] == 1 && args.dy.strides[1] == 1;
  visit<float, double, f16, bf16>(args.dw.dtype, [&]<class T>() {
    if constexpr (sizeof(T) == 4) {
      if (args.geometry.group_filters() <= 16) {
        return swapped ? start<T, 16, true>(args, context) : start<T, 16, false>(args, context);
      }
    }
    return swapped ? start<T, 64, true>(args, context) : start<T, 64, false>(args, context);
  });
}

const Rung<ConvBackwardFilter> self{{.name = "implicit_gemm",
                                     .step = 20,
                                     .after = "warp_per_tap",
                                     .backend = device_backend,
                                     .supports = supports,
                                     .estimate = estimate,
                                     .run = run}};

}  // namespace
}  // namespace rung
