// SPDX-License-Identifier: Apache-2.0
// gemm / warp tile
//
// Idea     a level between block and thread: each warp owns a 64 x 32 part of the 128 x 128 tile,
//          computed by an 8 x 4 arrangement of lanes with 8 x 8 elements each.
// Changes  against async_copy: a warp reads 64 + 32 distinct words per step instead of 16 + 128,
//          and the fragments of the next step are read while the current ones are multiplied (two
//          sets of registers), across tile boundaries too.
// Cost     the same global-memory traffic, less shared-memory traffic.
// Limits   64 multiply-adds per 4 shared loads: one instruction in sixteen does not compute.
// Source   CUTLASS, "Efficient GEMM in CUDA": thread-block, warp and thread tiles.
#include "rung/device/tile/epilogue.hpp"
#include "rung/ops/gemm/cuda/detail/async.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int tile = 128;
constexpr int steps = 8;
constexpr int threads = 256;
constexpr int stages = 4;
constexpr int blocks = 2;  // per SM: at most 128 registers per thread
constexpr int warp_rows = 64, warp_columns = 32;
constexpr int warps_down = tile / warp_rows;
constexpr int lanes_down = 8, lanes_along = 4;
constexpr int fragment = 8;  // rows, and columns, per thread
constexpr int group = 4;     // adjacent rows or columns: 16 bytes

template <TileAccess access>
using Copies = AsyncTile<tile, steps, threads, access>;

template <TileAccess access_a, TileAccess access_b>
struct Ring {
  alignas(16) float a[stages][Copies<access_a>::elements];
  alignas(16) float b[stages][Copies<access_b>::elements];
};

template <TileAccess access_a, TileAccess access_b>
__global__ void __launch_bounds__(threads, blocks) gemm_warp_tile(Product32 p) {
  auto& ring = shared<Ring<access_a, access_b>>();
  const int batch = static_cast<int>(blockIdx.z);
  const int first_row = static_cast<int>(blockIdx.y) * tile;
  const int first_column = static_cast<int>(blockIdx.x) * tile;
  // A lane's elements are in groups of four adjacent ones, so a warp's load of a fragment is free
  // of bank conflicts.
  const int warp = thread_index() / 32;
  const int lane = thread_index() % 32;
  const int warp_row = warp % warps_down * warp_rows + lane / lanes_along * group;
  const int warp_column = warp / warps_down * warp_columns + lane % lanes_along * group;
  const auto row = [&](int i) { return warp_row + i / group * lanes_down * group + i % group; };
  const auto column = [&](int j) {
    return warp_column + j / group * lanes_along * group + j % group;
  };

  Copies<access_a> a(operand_a(p, batch), first_row);
  Copies<access_b> b(operand_b(p, batch), first_column);
  const auto tiles = static_cast<int>(tiles_of(p.k(), steps));
  const auto first_steps = static_cast<int>(p.k() - (tiles - 1) * std::int64_t{steps});
  const auto start = [&](int number, int stage) {
    if (number == 0 && tiles > 0) {
      a.copy_first(ring.a[stage], first_steps);
      b.copy_first(ring.b[stage], first_steps);
    } else if (number < tiles) {
      a.copy(ring.a[stage]);
      b.copy(ring.b[stage]);
    }
    ptx::async_commit();  // an empty group too: one group per tile
  };
  for (int number = 0; number < stages - 1; ++number) start(number, number);

  float sums[fragment][fragment] = {};
  float a_values[2][fragment];  // of even and of odd steps
  float b_values[2][fragment];
  const auto load_step = [&](int stage, int step) {
    load_fragment<fragment, lanes_down * group>(
        a_values[step % 2], ring.a[stage] + step * Copies<access_a>::pitch + warp_row);
    load_fragment<fragment, lanes_along * group>(
        b_values[step % 2], ring.b[stage] + step * Copies<access_b>::pitch + warp_column);
  };
  ptx::async_wait<stages - 2>();
  __syncthreads();
  if (tiles > 0) load_step(0, 0);
  for (int number = 0; number < tiles; ++number) {
    const int stage = number % stages;
    start(number + stages - 1, (stage + stages - 1) % stages);
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      int next_stage = stage;
      if (step == steps - 1) {
        // The next tile has arrived for all threads, and all have read the current one. After the
        // last tile, that tile is read again and not used.
        ptx::async_wait<stages - 2>();
        __syncthreads();
        if (number + 1 < tiles) next_stage = (stage + 1) % stages;
      }
      load_step(next_stage, (step + 1) % steps);
      multiply_add(sums, a_values[step % 2], b_values[step % 2]);
    }
  }
  finish_tile<group>(
      p, batch, sums, [&](int i) { return first_row + row(i); },
      [&](int j) { return first_column + column(j); });
}

constexpr TileExtents tile_extents{.rows = tile, .columns = tile};

Work work(const Gemm::Args& args, const Context& context) {
  Work work =
      tile_work(args, context, {.rows = tile, .columns = tile, .depth = steps, .resident = blocks});
  work.path = copies_path(args);
  return work;
}

void run(const Gemm::Args& args, Context& context) {
  const Product32 p = with_contiguous_c(product<float, float>(args));
  with_few_accesses(p, [&]<TileAccess access_a, TileAccess access_b>() {
    launch_tiles(context,
                 {.rows = tile,
                  .columns = tile,
                  .block = threads,
                  .shared_bytes = sizeof(Ring<access_a, access_b>)},
                 gemm_warp_tile<access_a, access_b>, p);
  });
}

const Rung<Gemm> self{{.name = "warp_tile",
                       .step = 120,
                       .after = "async_copy",
                       .backend = device_backend,
                       .supports = require_short_strides,
                       .tile = tile_extents,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
