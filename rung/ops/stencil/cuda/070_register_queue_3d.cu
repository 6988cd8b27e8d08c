// SPDX-License-Identifier: Apache-2.0
// stencil / register queue, 3-D
//
// Idea     2.5-D blocking: a block covers a tile of rows and columns and walks through the planes.
//          Each plane of x is loaded into shared memory once and contributes to several planes of
//          y, to each with another layer of the mask. A thread keeps the sums of these planes in a
//          register queue: each plane of x completes the oldest sum and starts a new one.
// Changes  Against halo_from_cache_3d: one plane of x is in shared memory instead of a cube. There
//          is no halo along the depth: x is read once, apart from the halo of rows and columns. One
//          load of a weight from shared memory serves four rows.
// Cost     Per layer of m x n in the mask, for 4 rows: m n / 4 loads of weights and m n of elements
//          from shared memory. Each element of x is loaded (15 + m)(31 + n) / 512 times from global
//          memory.
// Limits   f32; three axes, up to 7 planes in the mask; contiguous rows.
// Source   P. Micikevicius, 3D finite difference computation on GPUs using CUDA, 2009 (which keeps
//          the planes of x in the queue, for cross-shaped masks).
#include "rung/ops/stencil/cuda/detail/arrays.hpp"

namespace rung {
namespace {

using namespace stencil_cuda;
using P = Arrays<float, float>;

constexpr int max_planes = 7;
constexpr int thread_rows = 4;  // adjacent rows per thread
constexpr int columns = 32, warps = 4, rows = thread_rows * warps;
constexpr int chunk = 64;  // planes of y per block

template <int planes>
__global__ void __launch_bounds__(columns* warps)
    stencil_register_queue_3d(const __grid_constant__ P p, int chunks) {
  const Stencil::Axis& depth = p.axis[0];
  const int down = p.axis[1].taps;
  const int across = p.axis[2].taps;
  const int width = columns + across - 1;
  float* const weights = &shared<float>();
  float* const tile = weights + planes * down * across;  // tile of one plane of x
  const int lane = static_cast<int>(threadIdx.x);
  const int warp = static_cast<int>(threadIdx.y);
  for (int i = warp * columns + lane; i < planes * down * across; i += columns * warps) {
    weights[i] = p.weights.at(i / (down * across), i / across % down, i % across);
  }
  std::int64_t first[2];
  p.batch.offsets(blockIdx.z / chunks, first);
  const std::int64_t first_plane = std::int64_t{blockIdx.z} % chunks * chunk;
  const std::int64_t last_plane = smaller(first_plane + chunk, depth.extent);
  const std::int64_t first_row = std::int64_t{blockIdx.y} * rows;
  const std::int64_t first_column = std::int64_t{blockIdx.x} * columns;

  float queue[planes][thread_rows] = {};  // queue[k]: the plane of y under layer k of the mask
  for (std::int64_t v = first_plane; v < last_plane + planes - 1; ++v) {
    const std::int64_t plane = p.inside(0, v - depth.origin);
    __syncthreads();  // all threads have read the previous plane; the weights are loaded
    for (int r = warp; r < rows + down - 1; r += warps) {
      const std::int64_t row = p.inside(1, first_row + r - p.axis[1].origin);
      for (int c = lane; c < width; c += columns) {
        const std::int64_t column = p.inside(2, first_column + c - p.axis[2].origin);
        const bool exists = plane >= 0 && row >= 0 && column >= 0;
        const std::int64_t at = first[0] + plane * depth.x + row * p.axis[1].x + column;
        tile[r * width + c] = exists ? p.x[at] : 0.0F;
      }
    }
    __syncthreads();
    for (int i = 0; i < down; ++i) {
      for (int j = 0; j < across; ++j) {
        float values[thread_rows];
#pragma unroll
        for (int q = 0; q < thread_rows; ++q) {
          values[q] = tile[(warp * thread_rows + q + i) * width + lane + j];
        }
#pragma unroll
        for (int k = 0; k < planes; ++k) {
          const float weight = weights[(k * down + i) * across + j];
#pragma unroll
          for (int q = 0; q < thread_rows; ++q) queue[k][q] += weight * values[q];
        }
      }
    }
    // The plane of y that has received the last layer is complete; it is planes - 1 behind.
    const std::int64_t done = v - (planes - 1);
    const std::int64_t column = first_column + lane;
#pragma unroll
    for (int q = 0; q < thread_rows; ++q) {
      const std::int64_t row = first_row + warp * thread_rows + q;
      if (done >= first_plane && row < p.axis[1].extent && column < p.axis[2].extent) {
        p.y[first[1] + done * depth.y + row * p.axis[1].y + column] =
            p.scale * queue[planes - 1][q];
      }
#pragma unroll
      for (int k = planes - 1; k > 0; --k) queue[k][q] = queue[k - 1][q];
      queue[0][q] = 0;
    }
  }
}

std::size_t shared_bytes(const Stencil::Args& args) {
  const int tile = (rows + args.rows().taps - 1) * (columns + args.columns().taps - 1);
  return static_cast<std::size_t>(args.taps() + tile) * sizeof(float);
}

Support supports(const Stencil::Args& args, const Context&) {
  if (args.x.dtype != DType::f32) return unsupported("takes f32");
  if (args.axes != 3) return unsupported("takes three axes");
  if (args.depth().taps > max_planes) return unsupported("takes masks of up to 7 planes");
  const Stencil::Axis& c = args.columns();
  if (c.extent > 1 && (c.x != 1 || c.y != 1)) return unsupported("the rows must be contiguous");
  if (ceil_div(args.rows().extent, rows) > 65535 ||
      ceil_div(args.depth().extent, chunk) * args.arrays() > 65535) {
    return unsupported("more rows, or planes of all arrays, than a grid has blocks for");
  }
  return supported;
}

Cost traffic(const Stencil::Args& args) { return traffic_of(args, args.iterations); }

LaunchExtent grid_of(const Stencil::Args& args) {
  return {ceil_div(args.columns().extent, columns), ceil_div(args.rows().extent, rows),
          ceil_div(args.depth().extent, chunk) * args.arrays()};
}

Work work(const Stencil::Args& args, const Context&) {
  const Stencil::Axis &depth = args.depth(), &down = args.rows(), &across = args.columns();
  const double planes = smaller<std::int64_t>(chunk, depth.extent) + depth.taps - 1;
  const int loads =
      ceil_div(rows + down.taps - 1, warps) * ceil_div(columns + across.taps - 1, columns);
  return launches_work(args, args.iterations, grid_of(args), planes * rows * columns * args.taps(),
                       planes * (loads + 1));
}

template <int planes>
void launch_queue(const Stencil::Args& args, Context& context) {
  if (args.depth().taps != planes) {
    if constexpr (planes < max_planes) launch_queue<planes + 1>(args, context);
    return;
  }
  const auto chunks = static_cast<int>(ceil_div(args.depth().extent, chunk));
  launch(context,
         {.grid = grid_of(args), .block = {columns, warps}, .shared_bytes = shared_bytes(args)},
         stencil_register_queue_3d<planes>, arrays_of<float, float>(args), chunks);
}

void run(const Stencil::Args& args, Context& context) {
  stencil_detail::for_each_step(
      args, context, 0, [&](const Stencil::Args& step, void*) { launch_queue<1>(step, context); });
}

const Rung<Stencil> self{{.name = "register_queue_3d",
                          .step = 70,
                          .after = "halo_from_cache_3d",
                          .backend = device_backend,
                          .supports = supports,
                          .traffic = traffic,
                          .work = work,
                          .run = run}};

}  // namespace
}  // namespace rung
