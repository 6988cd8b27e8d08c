// SPDX-License-Identifier: Apache-2.0
// stencil / TMA tile
//
// Idea     The TMA unit (compute capability 9.0) loads the tile: one thread issues the copy of a
//          box, halo included, and the hardware fills elements outside the array with zeros.
// Changes  Against vectorized: no addresses or bounds tests per element of x, no registers held by
//          loads in flight. A box starts at a multiple of 16 bytes, so up to three unused columns
//          precede the first tap.
// Cost     One load from shared memory per up to 4 multiply-adds, one load of a weight per two.
//          Under a mask of m x n, each element of x is loaded (31 + m)(66 + n) / 2048 times from
//          global memory.
// Limits   f32; one or two axes; zero edges; rows of x that begin at multiples of 16 bytes.
// Source   CUDA C++ Programming Guide, "Tensor memory access"; PTX ISA, cp.async.bulk.tensor.
#include "rung/device/ptx/tensor_copy.hpp"
#include "rung/ops/stencil/cuda/detail/arrays.hpp"

namespace rung {
namespace {

using namespace stencil_cuda;
using P = Arrays<float, float>;

constexpr int lanes = 32, warps = 8;
constexpr int thread_rows = 4, thread_columns = 2;  // of y: adjacent rows, columns a warp apart
constexpr int rows = warps * thread_rows, columns = lanes * thread_columns;
constexpr int alignment = 4;  // alignment of a box's first column, in elements

/// Shared memory before the box, which is aligned to 128 bytes.
struct Head {
  alignas(128) ptx::MemoryBarrier full;
  float weights[Stencil::max_taps * Stencil::max_taps];
};

/// Returns the number of columns between the box's first column and the first tap's.
constexpr int columns_in_front(int origin) { return round_up(origin, alignment) - origin; }

__global__ void __launch_bounds__(lanes* warps)
    stencil_tma_tile(const __grid_constant__ TensorMap x, const __grid_constant__ P p, float* y,
                     int box_rows, int box_columns) {
  Head& head = shared<Head>();
  float* const box = reinterpret_cast<float*>(&head + 1);
  const Stencil::Axis& down = p.axis[1];
  const Stencil::Axis& across = p.axis[2];
  const int lane = static_cast<int>(threadIdx.x);
  const int warp = static_cast<int>(threadIdx.y);
  const int first_row = static_cast<int>(blockIdx.y) * rows;
  const int first_column = static_cast<int>(blockIdx.x) * columns;
  if (lane == 0 && warp == 0) {
    ptx::mbarrier_init(head.full, 1);
    ptx::mbarrier_fence_init();
    ptx::mbarrier_arrive_expect(head.full, static_cast<unsigned>(box_rows * box_columns * 4));
    ptx::tensor_load(box, x,
                     {first_row - down.origin, first_column - round_up(across.origin, alignment)},
                     head.full);
  }
  for (int i = warp * lanes + lane; i < down.taps * across.taps; i += lanes * warps) {
    head.weights[i] = p.weights.at(0, i / across.taps, i % across.taps);
  }
  __syncthreads();
  ptx::mbarrier_wait(head.full, 0);

  float sums[thread_rows][thread_columns] = {};
  const int above = warp * thread_rows;
  const float* from = box + above * box_columns + columns_in_front(across.origin) + lane;
  for (int r = 0; r < thread_rows + down.taps - 1; ++r, from += box_columns) {
    for (int j = 0; j < across.taps; ++j) {
      const float left = from[j];
      const float right = from[j + lanes];
#pragma unroll
      for (int q = 0; q < thread_rows; ++q) {
        const int i = r - q;  // the mask's row that contributes row r of x to row q of y
        if (i < 0 || i >= down.taps) continue;
        const float weight = head.weights[i * across.taps + j];
        sums[q][0] += weight * left;
        sums[q][1] += weight * right;
      }
    }
  }
#pragma unroll
  for (int q = 0; q < thread_rows; ++q) {
    const int row = first_row + above + q;
#pragma unroll
    for (int h = 0; h < thread_columns; ++h) {
      const int column = first_column + lane + h * lanes;
      if (row < down.extent && column < across.extent) {
        y[row * down.y + column] = p.scale * sums[q][h];
      }
    }
  }
}

struct Box {
  int extents[2];
};
Box box_of(const Stencil::Args& args) {
  const int width = columns + args.columns().taps - 1 + columns_in_front(args.columns().origin);
  return {{rows + args.rows().taps - 1, round_up(width, alignment)}};
}

View<const float, 2> array_of(const Stencil::Args& args, std::int64_t offset) {
  View<const float, 2> view;
  view.data = static_cast<const float*>(args.x.data) + offset;
  view.shape[0] = args.rows().extent;
  view.shape[1] = args.columns().extent;
  view.strides[0] = args.rows().x;
  view.strides[1] = 1;
  return view;
}

Support supports(const Stencil::Args& args, const Context&) {
  if (args.x.dtype != DType::f32) return unsupported("takes f32");
  if (args.axes > 2) return unsupported("takes masks of one or two axes");
  if (args.edge != StencilEdge::zero) return unsupported("takes zero edges");
  if (args.iterations > 1) return unsupported("takes one iteration");
  const Stencil::Axis& c = args.columns();
  if (c.extent > 1 && (c.x != 1 || c.y != 1)) return unsupported("the rows must be contiguous");
  if (c.extent > std::int64_t{1} << 30 || ceil_div(args.rows().extent, rows) > 65535) {
    return unsupported("more than 2^30 columns, or rows than a grid has blocks for");
  }
  for (int axis = 0; axis < args.batch.rank; ++axis) {
    if (args.batch.strides[0][axis] % alignment != 0) {
      return unsupported("arrays must begin at multiples of 16 bytes");
    }
  }
  return tensor_map_support(array_of(args, 0), box_of(args).extents, Swizzle::none);
}

Cost traffic(const Stencil::Args& args) { return traffic_of(args, 1); }

std::size_t shared_bytes(const Box& box) {
  return sizeof(Head) + sizeof(float) * static_cast<std::size_t>(box.extents[0] * box.extents[1]);
}

LaunchExtent grid_of(const Stencil::Args& args) {
  return {ceil_div(args.columns().extent, columns), ceil_div(args.rows().extent, rows)};
}

/// Returns the work of one launch per array, each of which moves its part of the bytes.
Work work(const Stencil::Args& args, const Context&) {
  const auto arrays = static_cast<int>(smaller<std::int64_t>(args.arrays(), 1 << 20));
  Work work = launches_work(args, arrays, grid_of(args), double{rows * columns} * args.taps(), 2);
  work.bytes = Stencil::cost(args).bytes;
  return work;
}

void run(const Stencil::Args& args, Context& context) {
  const Box box = box_of(args);
  const P p = arrays_of<float, float>(args);
  for (std::int64_t array = 0; array < args.arrays(); ++array) {
    std::int64_t at[2];
    args.batch.offsets(array, at);
    launch(context,
           {.grid = grid_of(args), .block = {lanes, warps}, .shared_bytes = shared_bytes(box)},
           stencil_tma_tile, make_tensor_map(array_of(args, at[0]), box.extents), p, p.y + at[1],
           box.extents[0], box.extents[1]);
  }
}

const Rung<Stencil> self{{.name = "tma_tile",
                          .step = 90,
                          .after = "vectorized",
                          .backend = device_backend,
                          .supports = supports,
                          .traffic = traffic,
                          .work = work,
                          .run = run}};

}  // namespace
}  // namespace rung
