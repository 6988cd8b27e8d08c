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
#include "rung/ops/conv_backward_filter/cuda/detail/slices.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

/// Tiles of few filters are small, of few registers: a device holds more of them.
constexpr int few_rows = 16;
constexpr int columns = 64;
constexpr int depth_of(int rows) { return rows == few_rows ? 32 : 16; }
constexpr std::int64_t blocks_of(int rows) {
  return rows == few_rows ? two_for_each / 2 * 3 : two_for_each;
}

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
  static constexpr int own_terms = columns_by_k ? S::column_slots : 1;
  Term term[own_terms];

  __device__ PixelSource(const FilterGradient<T>& gradient, std::int64_t group,
                         std::int64_t first_filter, std::int64_t first_term)
      : p(gradient),
        x(gradient.x + group * gradient.g.group_channels() * gradient.x_strides[1]),
        dy(gradient.dy +
           (group * gradient.g.group_filters() + first_filter) * gradient.dy_strides[1]),
        filters(gradient.g.group_filters() - first_filter) {
#pragma unroll
    for (int slot = 0; slot < own_terms; ++slot) {
      term[slot] = make_term<S::swapped>(
          p, first_term + loaded<columns_by_k, S::columns, S::depth>(slot).at);
    }
  }

  __device__ __forceinline__ void refill(Entry& entry, std::int64_t pixel, std::int64_t end) const {
    entry = entry_of_pixel(p, pixel, end);
  }

  [[nodiscard]] __device__ __forceinline__ Sum row(int slot, const Entry& entry) const {
    const int at = loaded<rows_by_k, S::rows, S::depth>(slot).at;
    if (entry.other < 0 || at >= filters) return Sum(0);
    return convert<Sum>(dy[at * p.dy_strides[1] + entry.other]);
  }

  [[nodiscard]] __device__ __forceinline__ Sum column(int slot, const Entry& entry) const {
    const Term& of = term[columns_by_k ? slot : 0];
    return meet(p, entry, of) ? convert<Sum>(x[entry.image + of.image]) : Sum(0);
  }
};

template <class T, class S>
__global__ void __launch_bounds__(block_threads, S::rows == few_rows ? 3 : 1)
    conv_backward_filter_implicit_gemm(FilterGradient<T> p) {
  using Sum = Accumulator<T>;
  auto& strips = shared<Strips<Sum, S>>();
  const ConvGeometry& g = p.g;
  const std::int64_t tiles = ceil_div(g.group_filters(), std::int64_t{S::rows});
  const std::int64_t group = blockIdx.y / tiles;
  const std::int64_t first_filter = blockIdx.y % tiles * S::rows;
  const std::int64_t first_term = std::int64_t{blockIdx.x} * S::columns;
  const std::int64_t slice = blockIdx.z;
  const PixelRange pixels = slice_of(p, slice);
  const PixelSource<T, S> source(p, group, first_filter, first_term);
  Sum sums[S::thread_rows][S::thread_columns] = {};
  multiply_tile<S>(source, strips, pixels.begin, pixels.end, sums);
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

template <class T, bool Swapped>
__global__ void __launch_bounds__(block_threads)
    conv_backward_filter_add_slices(FilterGradient<T> p, std::int64_t count) {
  add_slices<T, Swapped>(p, count);
}

Support supports(const ConvBackwardFilter::Args& args, const Context&) {
  return supports_sliced(args, 16);
}

int rows_of(const ConvBackwardFilter::Args& args) {
  return args.dw.dtype == DType::f32 && args.geometry.group_filters() <= few_rows ? few_rows : 64;
}

double estimate(const ConvBackwardFilter::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  const int rows = rows_of(args);
  const DType dtype = args.dw.dtype;
  // Tiles of few filters spend their time on gathering.
  const SlicedSpeed speed{.start = dtype == DType::f32   ? 11e-6
                                   : dtype == DType::f64 ? 17e-6
                                                         : 14e-6,
                          .of_step = 0.9e-6,
                          .step = depth_of(rows),
                          .peak = rows == few_rows      ? 0.075
                                  : dtype == DType::f64 ? 0.15
                                                        : 0.33};
  return sliced_seconds(args, context, rows, columns, blocks_of(rows),
                        static_cast<double>(g.images * g.results()), speed);
}

template <class T, int Rows, bool Swapped>
void start(const ConvBackwardFilter::Args& args, Context& context) {
  using S = Shape<Rows, columns, Swapped, depth_of(Rows)>;
  const FilterGradient<T> p =
      sliced<T>(args, context, tiles_of(args, Rows, columns), blocks_of(Rows));
  launch(context, sliced_grid(p, S::rows, S::columns, sizeof(Strips<Accumulator<T>, S>)),
         conv_backward_filter_implicit_gemm<T, S>, p);
  launch(context, sum_grid(p), conv_backward_filter_add_slices<T, Swapped>, p, args.dw.size());
}

void run(const ConvBackwardFilter::Args& args, Context& context) {
  const bool swapped = args.x.strides[1] == 1 && args.dy.strides[1] == 1;
  visit<float, double, f16, bf16>(args.dw.dtype, [&]<class T>() {
    if constexpr (sizeof(T) == 4) {
      if (rows_of(args) == few_rows) {
        return swapped ? start<T, few_rows, true>(args, context)
                       : start<T, few_rows, false>(args, context);
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
