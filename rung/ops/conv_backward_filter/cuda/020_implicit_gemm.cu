// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / implicit GEMM
//
// Idea     dw is a matrix product over the pixels of all images: filters by terms, a term being a
//          channel and a tap. A block computes 16 or 64 filters by 64 terms, gathering dy and x
//          into shared memory. Split-K: dw is small and pixels are many, so pixels are partitioned
//          into slices, one block each, whose sums a second kernel adds in order.
// Changes  Against warp_per_tap: an element of dy or x is loaded once per tile.
// Cost     Per multiply-add 1/64 of a load of dy and of x; the sums of all slices are written and
//          read once.
// Limits   Extents of up to 2^28. Loads of single elements. The number of slices depends on the
//          shape alone, so that all devices add in the same order.
// Source   split-K: S. Chetlur et al., cuDNN, 2014.
#include "rung/ops/conv_backward_filter/cuda/detail/slices.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

/// Rows of a tile for few filters; such a tile takes few registers, so more blocks fit on an SM.
constexpr int few_rows = 16;
constexpr int columns = 64;
constexpr int depth_of(int rows) { return rows == few_rows ? 32 : 16; }
constexpr std::int64_t blocks_of(int rows) {
  return rows == few_rows ? two_for_each / 2 * 3 : two_for_each;
}

/// Computes the partial sums of dw, one tile per block. Rows are filters, columns terms, k the
/// pixels. blockIdx.x counts tiles of terms, blockIdx.y tiles of filters of all groups, blockIdx.z
/// slices of the pixels.
template <class T, class S>
__global__ void __launch_bounds__(block_threads, S::rows == few_rows ? 3 : 1)
    conv_backward_filter_implicit_gemm(FilterGradient<T> p) {
  using Sum = Accumulator<T>;
  // Adjacent lanes load adjacent pixels, or, if channels are innermost, adjacent filters and terms.
  constexpr bool by_pixels = !S::swapped;
  auto& strips = shared<TabledStrips<Sum, S>>();
  const ConvGeometry& g = p.g;
  const std::int64_t tiles = ceil_div(g.group_filters(), std::int64_t{S::rows});
  const std::int64_t group = blockIdx.y / tiles;
  const std::int64_t first_filter = blockIdx.y % tiles * S::rows;
  const std::int64_t first_term = std::int64_t{blockIdx.x} * S::columns;
  const std::int64_t slice = blockIdx.z;
  const PixelRange pixels = slice_of(p, slice);
  const T* const x = p.x + group * g.group_channels() * p.x_strides[1];
  const T* const dy = p.dy + (group * g.group_filters() + first_filter) * p.dy_strides[1];
  const auto filters =
      static_cast<int>(smaller(g.group_filters() - first_filter, std::int64_t{S::rows}));
  constexpr int own_terms = by_pixels ? S::column_slots : 1;
  Term term[own_terms];
#pragma unroll
  for (int i = 0; i < own_terms; ++i) {
    const int at = loaded<by_pixels, S::columns, S::depth>(i).at;
    term[i] = make_term<S::swapped>(p, first_term + at);
  }

  const auto decode = [&](std::int64_t first) {  // 256 pixels, one per thread
    const std::int64_t pixel = first + threadIdx.x;
    Entry& entry = strips.table[threadIdx.x];
    if (pixel >= pixels.end) {
      entry = no_entry;  // a branch: a select would spill registers
    } else {
      entry = entry_of_pixel(p, pixel, pixels.end);
    }
    __syncthreads();
  };
  // Elements of a step, held in registers while the previous step is multiplied.
  Sum of_dy[S::row_slots] = {};
  Sum of_x[S::column_slots] = {};
  const auto load = [&](int first) {
#pragma unroll
    for (int slot = 0; slot < S::row_slots; ++slot) {
      const Loaded one = loaded<by_pixels, S::rows, S::depth>(slot);
      if (one.at >= S::rows || one.k >= S::depth) continue;
      const Entry& pixel = strips.table[first + one.k];
      const bool exists = pixel.other >= 0 && one.at < filters;
      of_dy[slot] = exists ? convert<Sum>(dy[one.at * p.dy_strides[1] + pixel.other]) : Sum(0);
    }
    // The implicit matrix: x if the term's tap of the pixel is inside the image, else zero.
#pragma unroll
    for (int slot = 0; slot < S::column_slots; ++slot) {
      const Entry& pixel = strips.table[first + loaded<by_pixels, S::columns, S::depth>(slot).k];
      const Term& of = term[by_pixels ? slot : 0];
      of_x[slot] = is_inside(p, pixel, of) ? convert<Sum>(x[pixel.image + of.image]) : Sum(0);
    }
  };

  Sum sums[S::thread_rows][S::thread_columns] = {};
  if (pixels.begin < pixels.end) {
    decode(pixels.begin);
    load(0);
  }
  int stage = 0;
  for (std::int64_t k = pixels.begin; k < pixels.end; k += S::depth, stage ^= 1) {
    keep_strips<by_pixels, by_pixels, S>(strips, stage, of_dy, of_x);
    __syncthreads();  // one per step: the next step uses the other stage
    const std::int64_t next = k + S::depth;
    if (next < pixels.end) {
      const int at = static_cast<int>((next - pixels.begin) % table_entries);
      if (at == 0) decode(next);
      load(at);
    }
    multiply_strips<S>(strips, stage, sums);
  }

#pragma unroll
  for (int i = 0; i < S::thread_rows; ++i) {
    const std::int64_t filter = first_filter + S::row(i);
    if (filter >= g.group_filters()) continue;
    Sum* to = p.sums + ((slice * g.groups + group) * g.group_filters() + filter) * p.terms;
#pragma unroll
    for (int j = 0; j < S::thread_columns; ++j) {
      const std::int64_t at = first_term + S::column(j);
      if (at < p.terms) to[at] = sums[i][j];
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

bool is_swapped(const ConvBackwardFilter::Args& args) {
  return args.x.strides[1] == 1 && args.dy.strides[1] == 1;
}

Work work(const ConvBackwardFilter::Args& args, const Context&) {
  const int rows = rows_of(args);
  Work work = sliced_facts(args, rows, columns, depth_of(rows), blocks_of(rows), pixels_of(args));
  work.path = tile_path(args.dw.dtype, rows == few_rows, is_swapped(args));
  return work;
}

template <class T, int Rows, bool Swapped>
void start(const ConvBackwardFilter::Args& args, Context& context) {
  using S = Shape<Rows, columns, Swapped, depth_of(Rows)>;
  const FilterGradient<T> p =
      sliced<T>(args, context, tiles_of(args, Rows, columns), blocks_of(Rows));
  launch(context, sliced_grid(p, S::rows, S::columns, sizeof(TabledStrips<Accumulator<T>, S>)),
         conv_backward_filter_implicit_gemm<T, S>, p);
  launch(context, sum_grid(p), conv_backward_filter_add_slices<T, Swapped>, p, args.dw.size());
}

void run(const ConvBackwardFilter::Args& args, Context& context) {
  const bool swapped = is_swapped(args);
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
                                     .work = work,
                                     .run = run}};

}  // namespace
}  // namespace rung
