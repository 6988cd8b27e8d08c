// SPDX-License-Identifier: Apache-2.0
// stencil / vectorized
//
// Idea     Register tiling: a thread computes 4 x 4 elements of y. It walks down the rows of the
//          tile that these elements need and loads four elements at a time; eight adjacent elements
//          in registers serve four taps. Four weights are one load, a broadcast to all lanes; every
//          row of x serves four rows of y.
// Changes  Against halo_from_cache: one 16-byte load from shared memory per 16 or more
//          multiply-adds, instead of a 4-byte load per multiply-add. Weights are in shared memory
//          too, where each launch has its own.
// Cost     Per row of x, for four rows of y and four taps: one load of elements, up to four of
//          weights, up to 64 multiply-adds. Each element of x is loaded (31 + m)(127 + n) / 4096
//          times from global memory under a mask of m x n.
// Limits   Masks of one or two axes; contiguous rows; not f64. A separable mask is multiplied out.
// Source   V. Volkov, Better performance at lower occupancy, GTC 2010 (sums in registers).
#include "rung/device/load.hpp"
#include "rung/ops/stencil/cuda/detail/arrays.hpp"

namespace rung {
namespace {

using namespace stencil_cuda;

constexpr int lanes = 32, warps = 8;
constexpr int pack = 4;  // elements per load, and taps per iteration
constexpr int weight_row = 32;

/// Computes a tile of y of `thread_rows` rows per row of threads.
template <class P, int thread_rows>
__global__ void __launch_bounds__(lanes* warps) stencil_vectorized(const __grid_constant__ P p) {
  const int height = static_cast<int>(blockDim.y) * thread_rows;
  const int width = static_cast<int>(blockDim.x) * pack;
  const int down = p.axis[1].taps;
  const int across = p.axis[2].taps;
  const int pitch = round_up(width + across - 1, pack) + pack;
  float* const weights = &shared<float>();          // rows of weight_row
  float* const tile = weights + down * weight_row;  // tile of x, from the first tap's element on
  const int thread_x = static_cast<int>(threadIdx.x);
  const int thread_y = static_cast<int>(threadIdx.y);
  const int threads = static_cast<int>(blockDim.x * blockDim.y);
  for (int i = thread_y * static_cast<int>(blockDim.x) + thread_x; i < down * weight_row;
       i += threads) {
    const bool exists = i % weight_row < across;
    weights[i] = exists ? p.weights.at(0, i / weight_row, i % weight_row) : 0.0F;
  }
  std::int64_t first[2];
  p.batch.offsets(blockIdx.z, first);
  const std::int64_t first_row = std::int64_t{blockIdx.y} * height;
  const std::int64_t first_column = std::int64_t{blockIdx.x} * width;
  for (int r = thread_y; r < height + down - 1; r += static_cast<int>(blockDim.y)) {
    const std::int64_t row = p.inside(1, first_row + r - p.axis[1].origin);
    const auto* const x = p.x + first[0] + row * p.axis[1].x;
    for (int c = thread_x; c < pitch; c += static_cast<int>(blockDim.x)) {
      const std::int64_t column = p.inside(2, first_column + c - p.axis[2].origin);
      const bool exists = row >= 0 && column >= 0 && c < width + across - 1;
      tile[r * pitch + c] = exists ? convert<float>(x[column]) : 0.0F;
    }
  }
  __syncthreads();

  float sums[thread_rows][pack] = {};
  const int above = thread_y * thread_rows;  // first row of the tile that the thread reads
  for (int r = 0; r < thread_rows + down - 1; ++r) {
    const float* from = tile + (above + r) * pitch + thread_x * pack;
    float seen[2 * pack];
    *reinterpret_cast<Pack<float, pack>*>(seen + pack) = load_wide<pack>(from);
    for (int j = 0; j < across; j += pack) {
      from += pack;
#pragma unroll
      for (int c = 0; c < pack; ++c) seen[c] = seen[pack + c];
      *reinterpret_cast<Pack<float, pack>*>(seen + pack) = load_wide<pack>(from);
#pragma unroll
      for (int q = 0; q < thread_rows; ++q) {
        const int i = r - q;  // the mask's row that contributes row r of x to row q of y
        if (i < 0 || i >= down) continue;
        const auto w = load_wide<pack>(weights + i * weight_row + j);
#pragma unroll
        for (int t = 0; t < pack; ++t) {
          // No padding with weights of 0: 0 times an infinity outside the window would be NaN.
          if (j + t >= across) break;
#pragma unroll
          for (int c = 0; c < pack; ++c) sums[q][c] += w[t] * seen[c + t];
        }
      }
    }
  }

  using Y = typename P::Out;
  const std::int64_t column = first_column + thread_x * pack;
#pragma unroll
  for (int q = 0; q < thread_rows; ++q) {
    const std::int64_t row = first_row + above + q;
    if (row >= p.axis[1].extent || column >= p.axis[2].extent) continue;
    Y* const y = p.y + first[1] + row * p.axis[1].y + column;
    Pack<Y, pack> results;
#pragma unroll
    for (int c = 0; c < pack; ++c) results[c] = element_of<Y>(p.scale * sums[q][c]);
    if (is_wide_aligned<Y, pack>(y)) {
      store_wide<pack>(y, results, p.axis[2].extent - column);
    } else {
      store<pack>(y, results, p.axis[2].extent - column);
    }
  }
}

/// Grid and block of tiles of 32 x 128, or 1 x 1024 for arrays of a single row.
struct Tiling {
  LaunchExtent block;
  int thread_rows;
  [[nodiscard]] std::int64_t height() const { return block.y * thread_rows; }
  [[nodiscard]] std::int64_t width() const { return block.x * pack; }
};
Tiling tiling_of(const Stencil::Args& args) {
  if (args.rows().extent == 1) return {.block = {lanes * warps, 1}, .thread_rows = 1};
  return {.block = {lanes, warps}, .thread_rows = 4};
}

Support supports(const Stencil::Args& args, const Context&) {
  if (args.x.dtype == DType::f64) return unsupported("f32, f16, bf16 and u8");
  if (args.axes > 2) return unsupported("takes masks of one or two axes");
  const Stencil::Axis& columns = args.columns();
  if (columns.extent > 1 && (columns.x != 1 || columns.y != 1)) {
    return unsupported("the rows must be contiguous");
  }
  const std::int64_t down = ceil_div(args.rows().extent, tiling_of(args).height());
  if (down > 65535 || args.arrays() > 65535) {
    return unsupported("more rows or arrays than a grid has blocks for");
  }
  return supported;
}

Cost traffic(const Stencil::Args& args) { return traffic_of(args, args.iterations); }

std::int64_t pitch_of(const Stencil::Args& args, const Tiling& tiling) {
  return round_up(tiling.width() + args.columns().taps - 1, pack) + pack;
}
std::size_t shared_bytes(const Stencil::Args& args, const Tiling& tiling) {
  const int down = args.rows().taps;
  const std::int64_t tile = (tiling.height() + down - 1) * pitch_of(args, tiling);
  return static_cast<std::size_t>(down * weight_row + tile) * sizeof(float);
}

LaunchExtent grid_of(const Stencil::Args& args, const Tiling& tiling) {
  return {ceil_div(args.columns().extent, tiling.width()),
          ceil_div(args.rows().extent, tiling.height()), args.arrays()};
}

Work work(const Stencil::Args& args, const Context&) {
  const Tiling tiling = tiling_of(args);
  const std::int64_t loads = ceil_div(tiling.height() + args.rows().taps - 1, tiling.block.y) *
                             ceil_div(pitch_of(args, tiling), tiling.block.x);
  const auto made = static_cast<double>(tiling.height() * tiling.width());
  return launches_work(args, args.iterations, grid_of(args, tiling), made * args.taps(),
                       static_cast<double>(loads));
}

void run(const Stencil::Args& args, Context& context) {
  const Tiling tiling = tiling_of(args);
  stencil_detail::for_each_step(args, context, 0, [&](const Stencil::Args& step, void*) {
    with_types(step, [&]<class T, class Y>() {
      if constexpr (!std::is_same_v<T, double>) {
        using P = Arrays<T, Y>;
        launch(context,
               {.grid = grid_of(step, tiling),
                .block = tiling.block,
                .shared_bytes = shared_bytes(args, tiling)},
               tiling.thread_rows == 1 ? stencil_vectorized<P, 1> : stencil_vectorized<P, 4>,
               arrays_of<T, Y>(step));
      }
    });
  });
}

const Rung<Stencil> self{{.name = "vectorized",
                          .step = 80,
                          .after = "register_queue_3d",
                          .backend = device_backend,
                          .supports = supports,
                          .traffic = traffic,
                          .work = work,
                          .run = run}};

}  // namespace
}  // namespace rung
