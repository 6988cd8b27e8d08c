// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / tensor cores
//
// Idea     The product over pixels on tensor cores, for f16 and bf16 with channels last. Eight
//          filters of a pixel are 16 contiguous bytes of dy, and eight channels of a tap 16 bytes
//          of x. Strips of 32 pixels are copied unchanged, pixel by pixel; since the sum runs over
//          pixels, ldmatrix transposes both operands.
// Changes  Against implicit_gemm: 16-byte loads, each decoded once for 8 terms; 2048 multiply-adds
//          per instruction; half the bytes.
// Cost     64 filters x 64 terms per block and slice: per multiply-add 1/64 of an element of dy and
//          of x; the sums of all slices, f32, are written and read once.
// Limits   Contiguous channels and filters, multiples of 8 per group, all 16-byte aligned. Tensor
//          cores truncate when they add: twice the error bound of f32.
// Source   PTX ISA, "Matrix load instruction: ldmatrix", .trans.
#include "rung/ops/conv/shared/cuda/tensor_tiles.hpp"
#include "rung/ops/conv_backward_filter/cuda/detail/slices.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int tile_rows = 64;     // filters
constexpr int tile_columns = 64;  // terms
constexpr int step_pixels = 32;
constexpr int row_chunks = tile_rows / chunk;
constexpr int warp_columns = 32;  // 4 x 2 warps of 16 x 32
constexpr int column_fragments = warp_columns / 8;
/// Row pitch. With 144 bytes, the eight rows that ldmatrix reads at a time are in different banks.
constexpr int padded = tile_rows + chunk;

template <class T>
struct PixelStage {
  alignas(16) T dy[step_pixels][padded];
  alignas(16) T x[step_pixels][padded];
};
template <class T>
struct PixelStrips {
  PixelStage<T> stage[2];
  Entry table[table_entries];
};

template <class T>
__global__ void __launch_bounds__(block_threads)
    conv_backward_filter_tensor_cores(FilterGradient<T> p) {
  auto& memory = shared<PixelStrips<T>>();
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp = thread / 32;
  const ConvGeometry& g = p.g;
  const std::int64_t filters = g.group_filters();
  const std::int64_t tiles = ceil_div(filters, std::int64_t{tile_rows});
  const std::int64_t group = blockIdx.y / tiles;
  const std::int64_t first_filter = blockIdx.y % tiles * tile_rows;
  const std::int64_t first_term = std::int64_t{blockIdx.x} * tile_columns;
  const std::int64_t slice = blockIdx.z;
  const PixelRange pixels = slice_of(p, slice);
  const T* const x = p.x + group * g.group_channels() * p.x_strides[1];
  const T* const dy = p.dy + (group * filters + first_filter) * p.dy_strides[1];

  // Eight adjacent threads copy the 128 bytes of a pixel.
  const int row = thread / row_chunks;
  const int column = thread % row_chunks * chunk;
  const bool has_filters = first_filter + column < filters;
  const Term term = make_term<true>(p, first_term + column);
  const auto refill = [&](std::int64_t first) {
    memory.table[thread] = entry_of_pixel(p, first + thread, pixels.end);
    __syncthreads();
  };
  Eight<T> of_dy;
  Eight<T> of_x;
  const auto load = [&](int first) {
    const Entry& pixel = memory.table[first + row];
    of_dy = has_filters && pixel.other >= 0 ? load_raw<chunk>(dy + pixel.other + column)
                                            : eight_zeros<T>();
    of_x = is_inside(p, pixel, term) ? load_raw<chunk>(x + pixel.image + term.image)
                                     : eight_zeros<T>();
  };

  float sums[column_fragments][4] = {};
  if (pixels.begin < pixels.end) {
    refill(pixels.begin);
    load(0);
  }
  int stage = 0;
  for (std::int64_t k = pixels.begin; k < pixels.end; k += step_pixels, stage ^= 1) {
    PixelStage<T>& here = memory.stage[stage];
    store_raw(&here.dy[row][column], of_dy);
    store_raw(&here.x[row][column], of_x);
    __syncthreads();
    const std::int64_t next = k + step_pixels;
    if (next < pixels.end) {
      const int at = static_cast<int>((next - pixels.begin) % table_entries);
      if (at == 0) refill(next);
      load(at);
    }
#pragma unroll
    for (int depth = 0; depth < step_pixels; depth += 16) {
      std::uint32_t a[4];
      ptx::load_matrix<4, true>(
          a, &here.dy[depth + lane / 16 * 8 + lane % 8][warp / 2 * 16 + lane / 8 % 2 * 8]);
#pragma unroll
      for (int j = 0; j < column_fragments; ++j) {
        std::uint32_t b[2];
        ptx::load_matrix<2, true>(b, &here.x[depth + lane % 16][warp % 2 * warp_columns + j * 8]);
        ptx::mma<T>(sums[j], a, b);
      }
    }
  }

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::int64_t filter = first_filter + warp / 2 * 16 + half * 8 + lane / 4;
    if (filter >= filters) continue;
    float* const to = p.sums + ((slice * g.groups + group) * filters + filter) * p.terms;
#pragma unroll
    for (int j = 0; j < column_fragments; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const std::int64_t at = first_term + warp % 2 * warp_columns + j * 8 + lane % 4 * 2 + e;
        if (at < p.terms) to[at] = sums[j][half * 2 + e];
      }
    }
  }
}

template <class T>
__global__ void __launch_bounds__(block_threads)
    conv_backward_filter_add_slices(FilterGradient<T> p, std::int64_t count) {
  add_slices<T, true>(p, count);
}

Support supports(const ConvBackwardFilter::Args& args, const Context&) {
  if (size_of(args.dw.dtype) != 2) return unsupported("f16 and bf16");
  const ConvGeometry& g = args.geometry;
  const bool wide = g.group_filters() >= chunk && g.group_channels() >= chunk;
  if (!wide || !in_eights(args.dy, g.group_filters()) || !in_eights(args.x, g.group_channels())) {
    return unsupported("contiguous channels and filters, in multiples of 8, aligned to 16 bytes");
  }
  return supports_sliced(args, tile_rows);
}

Work work(const ConvBackwardFilter::Args& args, const Context&) {
  return sliced_facts(args, tile_rows, tile_columns, step_pixels, two_for_each, pixels_of(args));
}

void run(const ConvBackwardFilter::Args& args, Context& context) {
  visit<f16, bf16>(args.dw.dtype, [&]<class T>() {
    const FilterGradient<T> p =
        sliced<T>(args, context, tiles_of(args, tile_rows, tile_columns), two_for_each);
    launch(context, sliced_grid(p, tile_rows, tile_columns, sizeof(PixelStrips<T>)),
           conv_backward_filter_tensor_cores<T>, p);
    launch(context, sum_grid(p), conv_backward_filter_add_slices<T>, p, args.dw.size());
  });
}

const Rung<ConvBackwardFilter> self{{.name = "tensor_cores",
                                     .step = 30,
                                     .after = "implicit_gemm",
                                     .backend = device_backend,
                                     .supports = supports,
                                     .work = work,
                                     .run = run}};

}  // namespace
}  // namespace rung
