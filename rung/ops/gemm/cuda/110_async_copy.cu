// SPDX-License-Identifier: Apache-2.0
// gemm / async copy
//
// Idea     cp.async copies tiles from global to shared memory without registers, three tiles ahead
//          of the multiply-adds.
// Changes  against prefetch: a ring of four buffers instead of two hides the latency behind three
//          tiles instead of one; data in flight needs no registers and no store instructions. A is
//          transposed element by element, so its rows need no alignment; aligned rows of B are
//          copied 16 bytes at a time. Edges use clamped addresses instead of comparisons
//          (detail/pipeline.hpp).
// Cost     the same global-memory traffic; one barrier per tile.
// Limits   shared-memory reads: the 2 x 16 threads of a warp read 16 + 128 words per step; a warp
//          of 4 x 8 threads would read 32 + 64.
// Source   NVIDIA A100 white paper, "Asynchronous copy"; CUTLASS, "multistage" pipelines.
#include "rung/device/tile/epilogue.hpp"
#include "rung/ops/gemm/cuda/detail/async.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int steps = 8;
constexpr int stages = 4;
constexpr int tile = GroupedTile::extent;
constexpr int threads = GroupedTile::threads;
constexpr int blocks = 2;  // per SM: at most 128 registers per thread

template <TileAccess access>
using Copies = AsyncTile<tile, steps, threads, access>;

template <TileAccess access_a, TileAccess access_b>
struct Ring {
  alignas(16) float a[stages][Copies<access_a>::elements];
  alignas(16) float b[stages][Copies<access_b>::elements];
};

template <TileAccess access_a, TileAccess access_b>
__global__ void __launch_bounds__(threads, blocks) gemm_async_copy(Product32 p) {
  auto& ring = shared<Ring<access_a, access_b>>();
  const int batch = static_cast<int>(blockIdx.z);
  const int first_row = static_cast<int>(blockIdx.y) * tile;
  const int first_column = static_cast<int>(blockIdx.x) * tile;
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

  float sums[GroupedTile::fragment][GroupedTile::fragment] = {};
  for (int number = 0; number < stages - 1; ++number) start(number, number);
  for (int number = 0; number < tiles; ++number) {
    const int stage = number % stages;
    // Tile `number` has arrived for all threads, and all have read the previous tile, whose buffer
    // is filled next.
    ptx::async_wait<stages - 2>();
    __syncthreads();
    start(number + stages - 1, (stage + stages - 1) % stages);
    const float* a_tile = ring.a[stage];
    const float* b_tile = ring.b[stage];
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      float a_values[GroupedTile::fragment];
      float b_values[GroupedTile::fragment];
      load_fragment<GroupedTile::fragment, GroupedTile::apart>(
          a_values, a_tile + step * Copies<access_a>::pitch + GroupedTile::row(0));
      load_fragment<GroupedTile::fragment, GroupedTile::apart>(
          b_values, b_tile + step * Copies<access_b>::pitch + GroupedTile::column(0));
      multiply_add(sums, a_values, b_values);
    }
  }
  finish_tile<GroupedTile::group>(
      p, batch, sums, [&](int i) { return first_row + GroupedTile::row(i); },
      [&](int j) { return first_column + GroupedTile::column(j); });
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
                 gemm_async_copy<access_a, access_b>, p);
  });
}

const Rung<Gemm> self{{.name = "async_copy",
                       .step = 110,
                       .after = "prefetch",
                       .backend = device_backend,
                       .supports = require_short_strides,
                       .tile = tile_extents,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
