// SPDX-License-Identifier: Apache-2.0
// stencil / temporal blocking
//
// Idea     Temporal blocking: several iterations in one launch, as a chain of register queues. A
//          row that register_queue would store enters the queue of the next iteration instead, in
//          registers; only the last iteration's rows are stored. Shuffles provide neighboring
//          columns.
// Changes  Against register_queue: x is loaded and y stored once per several iterations, not once
//          per iteration. Each iteration invalidates columns at both ends of a strip, and rows at
//          its top and bottom; neighboring warps recompute them (ghost zones). Trades arithmetic
//          for traffic.
// Cost     For five iterations of 3 x 3: 112 of a strip's 128 columns are valid, and a warp that
//          computes H rows walks H + 10. One shuffle per column of the mask except the middle one.
// Limits   f32; one or two axes; zero edges, two iterations or more; masks of 3 or 5 columns about
//          the element, and no more rows than columns; contiguous rows. Between iterations,
//          elements outside the array stay 0.
// Source   J. Meng and K. Skadron, Performance modeling and automatic ghost zone optimization for
//          iterative stencil loops on GPUs, ICS 2009; K. Matsumura et al., AN5D, CGO 2020, for
//          queues in registers.
#include "rung/device/collectives.hpp"
#include "rung/device/load.hpp"
#include "rung/ops/stencil/cuda/detail/arrays.hpp"

namespace rung {
namespace {

using namespace stencil_cuda;

constexpr int lanes = 32, warps = 4;
constexpr int pack = 4;              // columns per lane
constexpr int strip = lanes * pack;  // columns per warp
constexpr int ahead = 2;             // rows of x prefetched

/// Kernel parameters: the arrays, and their partition into strips and bands.
struct Strips : Arrays<float, float> {
  int steps;          // iterations
  int rows, columns;  // extents
  int strips, bands;  // strips across the columns, bands down the rows
  int lead;           // columns at either end of a strip that become invalid, a multiple of a pack
  int width;          // valid columns per strip
  int length;         // rows of y per warp
  bool wide;          // rows begin at multiples of 16 bytes
};

/// Computes a launch of up to max_steps iterations of a mask of 2 side + 1 columns about the
/// element, and at most as many rows.
template <int side, int max_steps>
__global__ void __launch_bounds__(lanes* warps)
    stencil_temporal_blocking(const __grid_constant__ Strips p) {
  constexpr int taps = 2 * side + 1;
  const int down = p.axis[1].taps;
  const int origin = p.axis[1].origin;
  // Weights in queue order, from the last row of the mask to the first. Rows beyond the mask have
  // weights of 0 and add to unused sums.
  float weights[taps][taps];
#pragma unroll
  for (int k = 0; k < taps; ++k) {
#pragma unroll
    for (int j = 0; j < taps; ++j) {
      weights[k][j] = k < down ? p.weights.at(0, down - 1 - k, j) : 0.0F;
    }
  }

  const int lane = static_cast<int>(threadIdx.x);
  std::int64_t task = std::int64_t{blockIdx.x} * warps + threadIdx.y;
  const int first_column = static_cast<int>(task % p.strips) * p.width;  // of the strip's part of y
  task /= p.strips;
  const int begin = static_cast<int>(task % p.bands) * p.length;
  const std::int64_t array = task / p.bands;
  if (array >= p.batch.size()) return;
  const int end = smaller(begin + p.length, p.rows);
  std::int64_t first[2];
  p.batch.offsets(array, first);
  const int column = first_column - p.lead + lane * pack;  // the lane's first, in every iteration
  bool exists[pack];
#pragma unroll
  for (int c = 0; c < pack; ++c) exists[c] = column + c >= 0 && column + c < p.columns;
  const bool whole = p.wide && exists[0] && exists[pack - 1];

  const auto load_row = [&](int row) {
    const float* const x = p.x + first[0] + row * p.axis[1].x + column;
    if (row < 0 || row >= p.rows) return Pack<float, pack>{};
    if (whole) return load_wide<pack>(x);
    Pack<float, pack> values;
#pragma unroll
    for (int c = 0; c < pack; ++c) values[c] = exists[c] ? x[c] : 0.0F;
    return values;
  };

  // Rows per iteration from the row of x that enters up to the row that it completes.
  const int lag = down - 1 - origin;
  const int first_row = begin - p.steps * origin;
  const int last_row = end + p.steps * lag;
  float queues[max_steps][taps][pack] = {};
  Pack<float, pack> next[ahead];
#pragma unroll
  for (int a = 0; a < ahead; ++a) next[a] = load_row(first_row + a);
#pragma unroll 1
  for (int entering = first_row; entering < last_row; ++entering) {
    Pack<float, pack> row = next[0];
#pragma unroll
    for (int a = 0; a + 1 < ahead; ++a) next[a] = next[a + 1];
    next[ahead - 1] = load_row(entering + ahead);
    int at = entering;
#pragma unroll
    for (int step = 0; step < max_steps; ++step) {
      if (step >= p.steps) break;
      float x[pack + 2 * side];
#pragma unroll
      for (int c = 0; c < side; ++c) {
        x[c] = shuffle_up(row[pack - side + c], 1);
        x[side + pack + c] = shuffle_down(row[c], 1);
      }
#pragma unroll
      for (int c = 0; c < pack; ++c) x[side + c] = row[c];
      float(&queue)[taps][pack] = queues[step];
#pragma unroll
      for (int j = 0; j < taps; ++j) {
#pragma unroll
        for (int k = 0; k < taps; ++k) {
#pragma unroll
          for (int c = 0; c < pack; ++c) queue[k][c] += weights[k][j] * x[c + j];
        }
      }
      at -= lag;
      const bool last = step + 1 == p.steps;
#pragma unroll
      for (int c = 0; c < pack; ++c) {
        const bool zero = !last && (!exists[c] || at < 0 || at >= p.rows);
        row[c] = zero ? 0.0F : p.scale * queue[0][c];
#pragma unroll
        for (int k = 0; k + 1 < taps; ++k) queue[k][c] = k + 1 < down ? queue[k + 1][c] : 0.0F;
        queue[taps - 1][c] = 0;
      }
    }
    const int beyond = smaller(first_column + p.width, p.columns) - column;
    if (at < begin || column < first_column || beyond <= 0) continue;
    float* const y = p.y + first[1] + at * p.axis[1].y + column;
    if (p.wide) {
      store_wide<pack>(y, row, beyond);
    } else {
      store<pack>(y, row, beyond);
    }
  }
}

/// Returns the maximum number of iterations per launch: the wider the mask, the fewer queues fit in
/// registers.
int max_steps_of(const Stencil::Args& args) { return args.columns().taps == 3 ? 5 : 3; }
int launches_of(const Stencil::Args& args) { return ceil_div(args.iterations, max_steps_of(args)); }

Support supports(const Stencil::Args& args, const Context&) {
  if (args.x.dtype != DType::f32) return unsupported("takes f32");
  if (args.axes > 2) return unsupported("takes masks of one or two axes");
  if (args.edge != StencilEdge::zero) return unsupported("takes zero edges");
  if (args.iterations == 1) return unsupported("takes two iterations and more");
  const Stencil::Axis& c = args.columns();
  const bool fits = (c.taps == 3 || c.taps == 5) && c.origin == c.taps / 2;
  if (!fits || args.rows().taps > c.taps) {
    return unsupported("takes masks of 3 or 5 columns, and no more rows, about the element");
  }
  if (c.extent > 1 && (c.x != 1 || c.y != 1)) return unsupported("the rows must be contiguous");
  if (c.extent > std::int64_t{1} << 30 || args.rows().extent > std::int64_t{1} << 30) {
    return unsupported("more than 2^30 rows or columns");
  }
  return args.elements() < std::int64_t{1} << 40 ? supported
                                                 : unsupported("2^40 elements and more");
}

Cost traffic(const Stencil::Args& args) { return traffic_of(args, launches_of(args)); }

/// Returns the parameters of one launch of `steps` iterations.
Strips strips_of(const Stencil::Args& args, int steps) {
  // Two warps per resident warp of a large GPU, unless most rows would then be computed twice.
  constexpr std::int64_t wanted = 4224, min_length = 32;
  Strips p{arrays_of<float, float>(args)};
  p.steps = steps;
  p.rows = static_cast<int>(args.rows().extent);
  p.columns = static_cast<int>(args.columns().extent);
  p.lead = round_up(steps * args.columns().origin, pack);
  p.width = strip - 2 * p.lead;
  p.strips = ceil_div(p.columns, p.width);
  const std::int64_t bands = ceil_div(wanted, p.strips * args.arrays());
  p.length = static_cast<int>(larger(ceil_div(args.rows().extent, bands), min_length));
  p.bands = ceil_div(p.rows, p.length);
  p.wide = is_wide_aligned<float, pack>(p.x) && is_wide_aligned<float, pack>(p.y);
  const Stencil::Axis& rows = args.rows();
  p.wide = p.wide && (p.rows == 1 || (rows.x % pack == 0 && rows.y % pack == 0));
  for (int axis = 0; axis < args.batch.rank; ++axis) {
    const auto& strides = args.batch.strides;
    p.wide = p.wide && strides[0][axis] % pack == 0 && strides[1][axis] % pack == 0;
  }
  return p;
}

std::int64_t blocks_of(const Strips& p) {
  return ceil_div(std::int64_t{p.strips} * p.bands * p.batch.size(), std::int64_t{warps});
}

Work work(const Stencil::Args& args, const Context&) {
  const int launches = launches_of(args), steps = ceil_div(args.iterations, launches);
  const Strips p = strips_of(args, steps);
  const double walked = smaller(p.length, p.rows) + steps * (args.rows().taps - 1);
  const double taps = args.columns().taps * args.columns().taps;
  return launches_work(args, launches, blocks_of(p), walked * warps * strip * steps * taps, walked);
}

void run(const Stencil::Args& args, Context& context) {
  const int launches = launches_of(args);
  // Launches alternate between two buffers, as iterations do, such that the last one writes y.
  TensorRef between = args.y;
  if (launches > 1) {
    between.data = context.workspace(stencil_detail::step_bytes(args));
    between.strides = args.y.shape.contiguous_strides();
  }
  ConstTensorRef from = args.x;
  for (int i = launches, done = 0; i > 0; --i) {
    const int steps = ceil_div(args.iterations - done, i);
    const TensorRef to = i % 2 == 1 ? args.y : between;
    const Strips p = strips_of(stencil_detail::one_step(args, from, to), steps);
    launch(context, {.grid = blocks_of(p), .block = {lanes, warps}},
           args.columns().taps == 3 ? stencil_temporal_blocking<1, 5>
                                    : stencil_temporal_blocking<2, 3>,
           p);
    done += steps;
    from = to;
  }
}

const Rung<Stencil> self{{.name = "temporal_blocking",
                          .step = 100,
                          .after = "register_queue",
                          .backend = device_backend,
                          .supports = supports,
                          .traffic = traffic,
                          .work = work,
                          .run = run}};

}  // namespace
}  // namespace rung
