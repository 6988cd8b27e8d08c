// SPDX-License-Identifier: Apache-2.0
// conv / streams
//
// Idea     Unrolling an image is memory-bound, multiplying compute-bound: a device can overlap the
//          two. The images of a batch are divided among four streams, each with its own matrix:
//          while one stream multiplies, others unroll their next images.
// Changes  Against im2col_gemm: four matrices and four streams, which fork from the caller's stream
//          and join it by events. The caller sees one stream, and a CUDA graph captures all four.
// Cost     As im2col_gemm, less the overlapped time; an event per stream. The textbook version has
//          x and y on the host and overlaps their copies with kernels: chunk i + 1 is copied while
//          chunk i is computed. Here tensors are on the device; the operator transfer overlaps
//          copies of host arrays.
// Limits   As im2col_gemm. A batch of one image gains nothing; small images, whose kernels leave
//          SMs idle, gain most. The simulator runs streams in turn: it checks that they share no
//          data.
// Source   CUDA C++ Programming Guide, "Overlapping behavior"; W. Hwu, D. Kirk & I. El Hajj,
//          Programming Massively Parallel Processors, 4th ed., 20.5.
#include "rung/device/fork_join.hpp"
#include "rung/ops/conv/cuda/detail/im2col.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr std::int64_t max_lanes = 4;

/// Unrolls image n to the matrix: `count` elements, one row per term, one column per pixel.
__global__ void __launch_bounds__(block_threads)
    conv_streams_unroll(View<const float, 5> x, ConvGeometry g, std::int64_t n, float* matrix,
                        std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * block_threads;
  std::int64_t i = std::int64_t{blockIdx.x} * block_threads + threadIdx.x;
  for (; i < count; i += step) {
    std::int64_t channel = i;
    const std::int64_t ow = take_axis(channel, g.axis[2].out);
    const std::int64_t oh = take_axis(channel, g.axis[1].out);
    const std::int64_t od = take_axis(channel, g.axis[0].out);
    const std::int64_t v = g.axis[2].source(ow, take_axis(channel, g.axis[2].kernel));
    const std::int64_t h = g.axis[1].source(oh, take_axis(channel, g.axis[1].kernel));
    const std::int64_t d = g.axis[0].source(od, take_axis(channel, g.axis[0].kernel));
    matrix[i] = d < 0 || h < 0 || v < 0 ? 0.0F : x(n, channel, d, h, v);
  }
}

/// Multiplies w by the matrix, 64 x 64 elements per block: rows are filters, columns pixels.
__global__ void __launch_bounds__(block_threads) conv_streams_gemm(Im2colProduct p) {
  using S = Im2colTile;
  auto& strips = shared<Strips<float, S>>();
  const std::int64_t first_filter = std::int64_t{blockIdx.y} * S::rows;
  const std::int64_t first_pixel = std::int64_t{blockIdx.x} * S::columns;
  MatrixStep<S> step{.a = p.w + first_filter * p.terms,
                     .rows = p.filters - first_filter,
                     .b = p.matrix + first_pixel,
                     .b_row = p.pixels,
                     .columns = p.pixels - first_pixel,
                     .terms = p.terms};
  float sums[S::thread_rows][S::thread_columns] = {};
  step.load(0);
  int stage = 0;
  for (std::int64_t term = 0; term < p.terms; term += S::depth, stage ^= 1) {
    step.store(strips, stage);
    __syncthreads();             // one per step: the next step uses the other stage
    step.load(term + S::depth);  // in flight during the product; zeros beyond the last term
    multiply_strips<S>(strips, stage, sums);
  }
#pragma unroll
  for (int i = 0; i < S::thread_rows; ++i) {
    const std::int64_t filter = first_filter + S::row(i);
    if (filter >= p.filters) continue;
#pragma unroll
    for (int j = 0; j < S::thread_columns; ++j) {
      const std::int64_t pixel = first_pixel + S::column(j);
      if (pixel < p.pixels) p.y[filter * p.y_filter + pixel] = p.epilogue(sums[i][j], filter);
    }
  }
}

std::int64_t lanes_of(const Conv::Args& args) { return smaller(args.geometry.images, max_lanes); }

Support supports(const Conv::Args& args, const Context&) { return supports_im2col(args); }

void run(const Conv::Args& args, Context& context) {
  const std::int64_t count = matrix_size(args);
  const std::int64_t lanes = lanes_of(args);
  const std::int64_t pitch = round_up(count, std::int64_t{64});  // matrices share no cache line
  auto* const matrices = static_cast<float*>(
      context.workspace(static_cast<std::size_t>(Extents{lanes, pitch, sizeof(float)}.product())));
  context.memo<Lanes>().fork_join(context, static_cast<int>(lanes), [&](int lane, Context& on) {
    float* const matrix = matrices + lane * pitch;
    for (std::int64_t n = lane; n < args.geometry.images; n += lanes) {
      launch(on, unroll_grid(args), conv_streams_unroll, args.x.view<const float, 5>(),
             args.geometry, n, matrix, count);
      const Im2colProduct product = product_of_image(args, n, matrix);
      launch(on, product_grid(product), conv_streams_gemm, product);
    }
  });
}

const Rung<Conv> self{{.name = "streams",
                       .step = 45,
                       .after = "im2col_gemm",
                       .backend = device_backend,
                       .supports = supports,
                       .work = im2col_facts,
                       .run = run}};

}  // namespace
}  // namespace rung
