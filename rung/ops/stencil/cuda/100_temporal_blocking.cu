// SPDX-License-Identifier: Apache-2.0
// stencil / temporal blocking
//
// Idea     several iterations in one launch: a block loads a tile with a halo for all of them, and
//          goes back and forth between two tiles in shared memory. With each iteration the part of
//          the tile that is right shrinks by the mask's halo; what is left after the last is y.
// Changes  against vectorised: x is read and y written once in several iterations instead of once
//          in each. What neighbouring blocks both need they compute twice: work for traffic.
// Cost     a tile of 64 x 64 and five iterations of 3 x 3: 54 x 54 elements of y. Loads 1.40 times
//          x in five iterations; 1.19 times the multiply-adds.
// Limits   f32; one or two axes; zero edges, two iterations or more, masks of up to 6 a side;
//          contiguous rows. In the iterations between, places outside the array stay 0.
// Tried    -
// Source   J. Meng and K. Skadron, Performance modeling and automatic ghost zone optimization for
//          iterative stencil loops on GPUs, ICS 2009.
#include "rung/ops/stencil/cuda/detail/arrays.hpp"

namespace rung {
namespace {

using namespace stencil_cuda;
using P = Arrays<float, float>;

constexpr int side = 64;      // of the tiles
constexpr int lost = 10;      // of the side, at most, to all iterations
constexpr int max_steps = 8;  // in a launch
constexpr int lanes = 32, warps = 8;
constexpr int thread_rows = 4;  // that a thread makes in one go

struct Tiles {
  float at[2][side][side];
  float weights[(lost / 2 + 1) * (lost / 2 + 1)];
};

__global__ void __launch_bounds__(lanes* warps)
    stencil_temporal_blocking(const __grid_constant__ P p, int steps) {
  Tiles& tiles = shared<Tiles>();
  const Stencil::Axis& down = p.axis[1];
  const Stencil::Axis& across = p.axis[2];
  const int lane = static_cast<int>(threadIdx.x);
  const int warp = static_cast<int>(threadIdx.y);
  for (int i = warp * lanes + lane; i < down.taps * across.taps; i += lanes * warps) {
    tiles.weights[i] = p.weights.at(0, i / across.taps, i % across.taps);
  }
  std::int64_t first[2];
  p.batch.offsets(blockIdx.z, first);
  // Of the tile's first element; with each step, of that of its first right one.
  int height = side;
  int width = side;
  std::int64_t row =
      std::int64_t{blockIdx.y} * (side - steps * (down.taps - 1)) - steps * down.origin;
  std::int64_t column =
      std::int64_t{blockIdx.x} * (side - steps * (across.taps - 1)) - steps * across.origin;
  const auto exists = [&](int r, int c) {
    return row + r >= 0 && row + r < down.extent && column + c >= 0 && column + c < across.extent;
  };
  for (int r = warp; r < side; r += warps) {
    for (int c = lane; c < side; c += lanes) {
      const std::int64_t at = first[0] + (row + r) * down.x + column + c;
      tiles.at[0][r][c] = exists(r, c) ? p.x[at] : 0.0F;
    }
  }
  for (int step = 0; step < steps; ++step) {
    const float(&from)[side][side] = tiles.at[step % 2];
    float(&to)[side][side] = tiles.at[(step + 1) % 2];
    height -= down.taps - 1;
    width -= across.taps - 1;
    row += down.origin;
    column += across.origin;
    __syncthreads();
    for (int above = warp * thread_rows; above < height; above += warps * thread_rows) {
      const int last = smaller(thread_rows, height - above) + down.taps - 1;  // row of `from`
      for (int c = lane; c < width; c += lanes) {
        float sums[thread_rows] = {};
        for (int r = 0; r < last; ++r) {
          for (int j = 0; j < across.taps; ++j) {
            const float value = from[above + r][c + j];
#pragma unroll
            for (int q = 0; q < thread_rows; ++q) {
              const int i = r - q;  // the row of the mask that lies on this one for row q
              if (i >= 0 && i < down.taps) sums[q] += tiles.weights[i * across.taps + j] * value;
            }
          }
        }
#pragma unroll
        for (int q = 0; q < thread_rows; ++q) {
          const int r = above + q;
          if (r >= height) break;
          const float result = p.scale * sums[q];
          if (step + 1 < steps) {
            to[r][c] = exists(r, c) ? result : 0.0F;
          } else if (exists(r, c)) {
            p.y[first[1] + (row + r) * down.y + column + c] = result;
          }
        }
      }
    }
  }
}

/// The iterations of a launch, at most: the wider the mask, the fewer.
int steps_of(const Stencil::Args& args) {
  const int reach = larger(args.rows().taps, args.columns().taps) - 1;
  return reach == 0 ? max_steps : smaller(max_steps, lost / reach);
}
int launches_of(const Stencil::Args& args) { return ceil_div(args.iterations, steps_of(args)); }

Support supports(const Stencil::Args& args, const Context&) {
  if (args.x.dtype != DType::f32) return unsupported("takes f32");
  if (args.axes > 2) return unsupported("takes masks of one or two axes");
  if (args.edge != StencilEdge::zero) return unsupported("takes zero edges");
  if (args.iterations == 1) return unsupported("takes two iterations and more");
  if (steps_of(args) < 2) return unsupported("takes masks of up to 6 elements a side");
  const Stencil::Axis& c = args.columns();
  if (c.extent > 1 && (c.x != 1 || c.y != 1)) return unsupported("the rows must be contiguous");
  if (args.rows().extent > 65535 * (side - lost) || args.arrays() > 65535) {
    return unsupported("more rows or arrays than a grid has blocks for");
  }
  return supported;
}

Cost traffic(const Stencil::Args& args) { return traffic_of(args, launches_of(args)); }

double estimate(const Stencil::Args& args, const Context& context) {
  return seconds(args, context, {.bandwidth = 0.6, .peak = 0.15}, launches_of(args));
}

void run(const Stencil::Args& args, Context& context) {
  const int launches = launches_of(args);
  // Between launches, back and forth as between iterations: the last writes y.
  TensorRef between = args.y;
  if (launches > 1) {
    between.data = context.workspace(stencil_detail::step_bytes(args));
    between.strides = args.y.shape.contiguous_strides();
  }
  ConstTensorRef from = args.x;
  for (int i = launches, done = 0; i > 0; --i) {
    const int steps = ceil_div(args.iterations - done, i);
    const TensorRef to = i % 2 == 1 ? args.y : between;
    launch(context,
           {.grid = {ceil_div(args.columns().extent, side - steps * (args.columns().taps - 1)),
                     ceil_div(args.rows().extent, side - steps * (args.rows().taps - 1)),
                     args.arrays()},
            .block = {lanes, warps},
            .shared_bytes = sizeof(Tiles)},
           stencil_temporal_blocking,
           arrays_of<float, float>(stencil_detail::one_step(args, from, to)), steps);
    done += steps;
    from = to;
  }
}

const Rung<Stencil> self{{.name = "temporal_blocking",
                          .step = 100,
                          .after = "tma_tile",
                          .backend = device_backend,
                          .supports = supports,
                          .traffic = traffic,
                          .estimate = estimate,
                          .run = run}};

}  // namespace
}  // namespace rung
