// SPDX-License-Identifier: Apache-2.0
// conv / streams
//
// Idea     unrolling an image is bound by memory, multiplying by arithmetic: a device can do both
//          at once. The images of a batch are shared by four streams, each with a matrix of its
//          own: while one stream multiplies, others unroll what comes next.
// Changes  against im2col_gemm: four matrices and four streams, which fork from the caller's and
//          join it again by events. Whoever calls sees one stream, and a CUDA graph takes all.
// Cost     that of im2col_gemm, less what overlaps; an event per stream. A course's version has x
//          and y on the host, and overlaps their copies with kernels in the same way: chunk i + 1
//          comes in while chunk i is computed. Here tensors are on the device already; for arrays
//          on the host the operator transfer does that.
// Limits   as im2col_gemm. One image gains nothing; small ones, whose kernels leave SMs idle, most.
//          In the simulator streams take turns: what is checked there is that they share nothing.
// Tried    -
// Source   CUDA C++ Programming Guide, "Overlapping behavior"; W. Hwu, D. Kirk & I. El Hajj,
//          Programming Massively Parallel Processors, 4th ed., 20.5.
#include "rung/device/fork_join.hpp"
#include "rung/ops/conv/cuda/detail/im2col.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr std::int64_t max_lanes = 4;

__global__ void __launch_bounds__(block_threads)
    conv_streams_unroll(View<const float, 5> x, ConvGeometry g, std::int64_t n, float* matrix,
                        std::int64_t count) {
  unroll_image(x, g, n, matrix, count);
}

__global__ void __launch_bounds__(block_threads) conv_streams_gemm(Im2colProduct p) {
  multiply_image(p);
}

std::int64_t lanes_of(const Conv::Args& args) { return smaller(args.geometry.images, max_lanes); }

Support supports(const Conv::Args& args, const Context&) { return supports_im2col(args); }

double estimate(const Conv::Args& args, const Context& context) {
  // Streams wait at the same time; an event costs some microseconds.
  const std::int64_t lanes = larger(lanes_of(args), std::int64_t{1});
  const double waiting =
      static_cast<double>(ceil_div(args.geometry.images, lanes)) * im2col_waiting(args);
  return larger(im2col_seconds(args, context), waiting) + 4e-6 * static_cast<double>(lanes);
}

void run(const Conv::Args& args, Context& context) {
  const std::int64_t count = matrix_size(args);
  const std::int64_t lanes = lanes_of(args);
  const std::int64_t pitch = round_up(count, std::int64_t{64});  // matrices share no line
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
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
