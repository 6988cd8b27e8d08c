// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / implicit GEMM
//
// Idea     The gradient is a convolution of dy by w with its axes of channels and filters swapped,
//          so conv's tiles compute it: 64 or 128 channels of dx by as many of its pixels, dy
//          gathered into shared memory.
// Changes  Against gather: an element of dy or w is loaded once per tile, not once per
//          multiply-add.
// Cost     Per multiply-add 1/64 of a load of dy and of w. A strided layer is split into its
//          phases, the positions of one i mod s, which have the same taps: taps without a result
//          are not multiplied.
// Limits   extents of up to 2^28, 65535 phases. Loads of single elements.
// Source   V. Dumoulin & F. Visin, A guide to convolution arithmetic for deep learning, 2016.
#include "rung/cpu/split.hpp"  // types: float double f16 bf16
#include "rung/ops/conv/shared/cuda/implicit.hpp"
#include "rung/ops/conv_backward_data/op/layer.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

template <class T, class S>
struct PhasedTile {
  TabledStrips<Accumulator<T>, S> strips;  // at offset 0, as the kernel expects
  PhasePlace phase;
};

/// Computes dx, one tile per block. Rows of a tile are channels of dx, columns its positions, k the
/// terms: filters and taps. blockIdx.x counts tiles of positions, blockIdx.y tiles of channels of
/// all groups, blockIdx.z slices of the terms, and phases.
template <class T, class S, bool Phases>
__global__ void __launch_bounds__(block_threads)
    conv_backward_data_implicit_gemm(Gathered layer, TermSlices slices) {
  using Sum = Accumulator<T>;
  constexpr bool by_channels = S::swapped;  // order of terms in which x is contiguous
  const Gathered& g = phase_of_block<T, PhasedTile<T, S>, Phases>(layer, slices);
  auto& strips = shared<TabledStrips<Sum, S>>();
  const auto tiles = static_cast<unsigned>(ceil_div(g.m, S::rows));
  const std::int64_t group = blockIdx.y / tiles;
  const std::int64_t first_filter = std::int64_t{blockIdx.y % tiles} * S::rows;
  const std::int64_t first_pixel = std::int64_t{blockIdx.x} * S::columns;
  if (first_pixel >= g.pixels()) return;
  const T* const dy = static_cast<const T*>(g.x) + group * g.q * g.x_strides[1];
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
  Sum of_dy[S::column_slots] = {};
  const auto load = [&](int first) {
#pragma unroll
    for (int slot = 0; slot < S::row_slots; ++slot) {
      const Loaded one = loaded<true, S::rows, S::depth>(slot);
      if (one.at >= S::rows || one.k >= S::depth) continue;
      const Entry& term = strips.table[first + one.k];
      const bool exists = term.other >= 0 && one.at < filters;
      of_w[slot] = exists ? convert<Sum>(w[one.at * w_filter + term.other]) : Sum(0);
    }
    // The implicit matrix: dy if the term's tap of the pixel is inside the image, else zero.
#pragma unroll
    for (int slot = 0; slot < S::column_slots; ++slot) {
      const Entry& term = strips.table[first + loaded<by_channels, S::columns, S::depth>(slot).k];
      const GatheredPixel& from = pixel[by_channels ? slot : 0];
      const int d = from.d + term.d;
      const int h = from.h + term.h;
      const int v = from.v + term.v;
      const bool inside = static_cast<unsigned>(d) < depth && static_cast<unsigned>(h) < height &&
                          static_cast<unsigned>(v) < width;
      of_dy[slot] = inside ? convert<Sum>(dy[from.base + term.image]) : Sum(0);
    }
  };

  Sum sums[S::thread_rows][S::thread_columns] = {};
  if (terms.begin < terms.end) {
    decode(terms.begin);
    load(0);
  }
  int stage = 0;
  for (std::int64_t k = terms.begin; k < terms.end; k += S::depth, stage ^= 1) {
    keep_strips<true, by_channels, S>(strips, stage, of_w, of_dy);
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
    conv_backward_data_implicit_gemm_add_slices(Gathered g, const Accumulator<T>* sums,
                                                TermSlices slices) {
  finish_slices<T>(g, sums, slices);
}

template <class T, bool Phases>
void multiply_gathered(const Gathered& g, Context& context) {
  with_tile<T>(g, [&]<class S>() {
    const TermSlices slices = slices_of(g, tile_size(g));
    const LaunchShape shape =
        tile_grid(g, slices, S::rows, S::columns,
                  Phases ? sizeof(PhasedTile<T, S>) : sizeof(TabledStrips<Accumulator<T>, S>));
    with_slices<T>(g, slices, context, conv_backward_data_implicit_gemm_add_slices<T>,
                   [&](const Gathered& layer) {
                     launch(context, shape, conv_backward_data_implicit_gemm<T, S, Phases>, layer,
                            slices);
                   });
  });
}

namespace conv_backward_data {

/// Computes the layer; compiled with its kernels in T's part of this file.
template <class T>
void multiply(const Gathered& g, Context& context);
template <>
void multiply<RUNG_SPLIT_TYPE>(const Gathered& g, Context& context) {
  is_divided(g) ? multiply_gathered<RUNG_SPLIT_TYPE, true>(g, context)
                : multiply_gathered<RUNG_SPLIT_TYPE, false>(g, context);
}

}  // namespace conv_backward_data
}  // namespace rung::conv_cuda::inline RUNG_TARGET

#if RUNG_SPLIT_ONCE
namespace rung {
namespace {

using namespace conv_cuda;

Support supports(const ConvBackwardData::Args& args, const Context&) {
  return supports_gathered(conv_layer::transposed(args), 16, 64);
}

Work work(const ConvBackwardData::Args& args, const Context&) {
  return implicit_facts(conv_layer::transposed(args), ConvBackwardData::cost(args),
                        conv_layer::terms_in_a_row(args));
}

void run(const ConvBackwardData::Args& args, Context& context) {
  const Gathered g = conv_layer::transposed(args);
  visit<float, double, f16, bf16>(
      g.dtype, [&]<class T>() { conv_cuda::conv_backward_data::multiply<T>(g, context); });
}

const Rung<ConvBackwardData> self{{.name = "implicit_gemm",
                                   .step = 20,
                                   .after = "gather",
                                   .backend = device_backend,
                                   .supports = supports,
                                   .work = work,
                                   .run = run}};

}  // namespace
}  // namespace rung
#endif  // RUNG_SPLIT_ONCE
