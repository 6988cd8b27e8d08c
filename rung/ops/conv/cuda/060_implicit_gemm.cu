// SPDX-License-Identifier: Apache-2.0
// conv / implicit GEMM
//
// Idea     The product of im2col_gemm without its second matrix: a block gathers the elements of x
//          that a step of 8 terms needs into shared memory, with padding as zeros. A block computes
//          64 or 128 filters by as many pixels, of all images so that small ones fill a tile, with
//          4 x 4 or 8 x 8 per thread in registers. Split-K: if there are few tiles, several blocks
//          split the terms of each, and a second kernel adds their sums in a fixed order.
// Changes  Against im2col_gemm: nothing is materialized; supports every type, layout, group count
//          and stride.
// Cost     Per multiply-add 1/64 of a load of x and of w. A term's position is decoded once per
//          block; an element of x then costs three additions and comparisons.
// Source   S. Chetlur et al., cuDNN: Efficient primitives for deep learning, 2014.
#include "rung/ops/conv/shared/cuda/implicit.hpp"
#include "rung/ops/conv/shared/layer.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

/// Computes a layer, one tile per block. blockIdx.x counts tiles of pixels, blockIdx.y tiles of
/// filters of all groups, blockIdx.z slices of the terms.
template <class T, class S>
__global__ void __launch_bounds__(block_threads) conv_implicit_gemm(Gathered g, TermSlices slices) {
  using Sum = Accumulator<T>;
  constexpr bool by_channels = S::swapped;  // order of terms in which x is contiguous
  auto& strips = shared<TabledStrips<Sum, S>>();
  const auto tiles = static_cast<unsigned>(ceil_div(g.m, S::rows));
  const std::int64_t group = blockIdx.y / tiles;
  const std::int64_t first_filter = std::int64_t{blockIdx.y % tiles} * S::rows;
  const std::int64_t first_pixel = std::int64_t{blockIdx.x} * S::columns;
  if (first_pixel >= g.pixels()) return;
  const T* const x = static_cast<const T*>(g.x) + group * g.q * g.x_strides[1];
  const T* const w = static_cast<const T*>(g.w) + group * g.w_group + first_filter * g.w_strides[0];
  const auto filters = static_cast<int>(smaller(g.m - first_filter, std::int64_t{S::rows}));
  // Held in registers: in shared memory the layer would be loaded again for each element.
  const std::int64_t w_filter = g.w_strides[0];
  const auto depth = static_cast<unsigned>(g.axis[0].extent);
  const auto height = static_cast<unsigned>(g.axis[1].extent);
  const auto width = static_cast<unsigned>(g.axis[2].extent);
  constexpr int own_pixels = by_channels ? S::column_slots : 1;
  GatheredPixel pixel[own_pixels];
#pragma unroll
  for (int i = 0; i < own_pixels; ++i) {
    const int at = loaded<by_channels, S::columns, S::depth>(i).at;
    pixel[i] = gathered_pixel(g, first_pixel + at);
  }
  const TermRange terms = terms_of_block(slices, g.terms(), S::depth);

  const auto decode = [&](std::int64_t first) {  // 256 terms, one per thread
    strips.table[threadIdx.x] = gathered_term<by_channels>(g, first + threadIdx.x, terms.end);
    __syncthreads();
  };
  // Elements of a step, held in registers while the previous step is multiplied.
  Sum of_w[S::row_slots] = {};
  Sum of_x[S::column_slots] = {};
  const auto load = [&](int first) {
#pragma unroll
    for (int slot = 0; slot < S::row_slots; ++slot) {
      const Loaded one = loaded<true, S::rows, S::depth>(slot);
      if (one.at >= S::rows || one.k >= S::depth) continue;
      const Entry& term = strips.table[first + one.k];
      const bool exists = term.other >= 0 && one.at < filters;
      of_w[slot] = exists ? convert<Sum>(w[one.at * w_filter + term.other]) : Sum(0);
    }
    // The implicit matrix: x if the term's tap of the pixel is inside the image, else zero.
#pragma unroll
    for (int slot = 0; slot < S::column_slots; ++slot) {
      const Entry& term = strips.table[first + loaded<by_channels, S::columns, S::depth>(slot).k];
      const GatheredPixel& from = pixel[by_channels ? slot : 0];
      const int d = from.d + term.d;
      const int h = from.h + term.h;
      const int v = from.v + term.v;
      const bool inside = static_cast<unsigned>(d) < depth && static_cast<unsigned>(h) < height &&
                          static_cast<unsigned>(v) < width;
      of_x[slot] = inside ? convert<Sum>(x[from.base + term.image]) : Sum(0);
    }
  };

  Sum sums[S::thread_rows][S::thread_columns] = {};
  if (terms.begin < terms.end) {
    decode(terms.begin);
    load(0);
  }
  int stage = 0;
  for (std::int64_t k = terms.begin; k < terms.end; k += S::depth, stage ^= 1) {
    keep_strips<true, by_channels, S>(strips, stage, of_w, of_x);
    __syncthreads();  // one per step: the next step uses the other stage
    const std::int64_t next = k + S::depth;
    if (next < terms.end) {
      const int at = static_cast<int>((next - terms.begin) % table_entries);
      if (at == 0) decode(next);
      load(at);
    }
    multiply_strips<S>(strips, stage, sums);
  }

  const LayerEpilogue<T> epilogue(g, slices, group);
#pragma unroll
  for (int j = 0; j < S::thread_columns; ++j) {
    const std::int64_t index = first_pixel + S::column(j);
    if (index >= g.pixels()) continue;
    const std::int64_t place = epilogue.place(index);
#pragma unroll
    for (int i = 0; i < S::thread_rows; ++i) {
      epilogue.store(place, first_filter + S::row(i), sums[i][j]);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(sum_threads)
    conv_implicit_gemm_add_slices(Gathered g, const Accumulator<T>* sums, TermSlices slices) {
  finish_slices<T>(g, sums, slices);
}

Support supports(const Conv::Args& args, const Context&) {
  return supports_gathered(conv_layer::forward(args), 16, 64);
}

Work work(const Conv::Args& args, const Context&) {
  return implicit_facts(conv_layer::forward(args), Conv::cost(args), args.terms());
}

void run(const Conv::Args& args, Context& context) {
  const Gathered g = conv_layer::forward(args);
  visit<float, double, f16, bf16>(g.dtype, [&]<class T>() {
    with_tile<T>(g, [&]<class S>() {
      const TermSlices slices = slices_of(g, tile_size(g));
      with_slices<T>(
          g, slices, context, conv_implicit_gemm_add_slices<T>, [&](const Gathered& layer) {
            launch(
                context,
                tile_grid(g, slices, S::rows, S::columns, sizeof(TabledStrips<Accumulator<T>, S>)),
                conv_implicit_gemm<T, S>, layer, slices);
          });
    });
  });
}

const Rung<Conv> self{{.name = "implicit_gemm",
                       .step = 60,
                       .after = "im2col_gemm",
                       .backend = device_backend,
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
