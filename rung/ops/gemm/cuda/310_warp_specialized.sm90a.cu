// SPDX-License-Identifier: Apache-2.0
// gemm / warp specialized
//
// Idea     warp roles: one thread of a producer warpgroup only issues TMA loads, two consumer
//          warpgroups only multiply, and they synchronize by mbarriers in both directions. The
//          producer gives its registers to the consumers (setmaxnreg).
// Changes  against wgmma_tma: products of the next tile are issued while those of the last run; no
//          block barrier; a tile of 128 x 256, whose 256 sums per thread would not fit in one
//          warpgroup.
// Cost     the traffic of 128 x 256 tiles: 25 % fewer bytes per multiply-add than with 128 x 128.
// Limits   as wgmma_tma. The tensor cores idle while a block writes C, and in the last wave unless
//          the tiles of C are a multiple of the SMs.
// Source   CUTLASS, "Warp-specialized kernel design"; fast.cu.
#include "rung/device/collectives.hpp"
#include "rung/device/tile/roles.hpp"
#include "rung/ops/gemm/cuda/detail/tensor_job.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int rows = 64 * consumer_groups;
constexpr int columns = 256;

struct RolesLayout {
  static constexpr int stage_count = 4;  // of 48 KiB
  TileStage<rows, columns> stages[stage_count];
  StripStage strips[consumer_warps];
  StageRing<stage_count> ring;
};

/// Computes one tile of C per block. Producer and consumers synchronize at the ring's barriers
/// only.
template <class T, bool KMajorA, bool KMajorB>
__global__ void __launch_bounds__(role_threads, 1)
    gemm_warp_specialized(const __grid_constant__ TensorJob<T> job) {
  using TileA = WgmmaTile<T, rows, KMajorA>;
  using TileB = WgmmaTile<T, columns, KMajorB>;
  auto& layout = shared<RolesLayout>();
  auto& ring = layout.ring;
  const TileWork work = job.raster.at(static_cast<int>(blockIdx.x));
  const int first_row = work.row * rows;
  const int first_column = work.column * columns;
  const int tiles = job.k_tiles;
  if (threadIdx.x == 0) ring.init(consumer_warps);
  __syncthreads();

  RingPlace<RolesLayout::stage_count> at;
  if (threadIdx.x < producer_threads) {
    ptx::release_registers<producer_registers>();
    if (threadIdx.x != 0) return;
    for (int tile = 0; tile < tiles; ++tile, at.advance()) {
      auto& stage = layout.stages[at.stage];
      auto& full = ring.full[at.stage];
      const int k = tile * TileA::depth;
      ring.await_empty(at);
      ring.expect(at, TileA::bytes + TileB::bytes);
      TileA::load(stage.a, job.a, work.batch * job.a_moves, first_row, k, full);
      TileB::load(stage.b, job.b, work.batch * job.b_moves, first_column, k, full);
    }
    return;
  }

  ptx::claim_registers<consumer_registers>();
  const int warp = consumer_warp();
  const int lane = lane_of_thread();
  float sums[columns / 2];
  int stage_before = 0;
  for (int tile = 0; tile < tiles; ++tile, at.advance()) {
    ring.await_full(at);
    const auto& stage = layout.stages[at.stage];
    ptx::wgmma_fence(sums);
    wgmma_tile<TileA, TileB>(sums, stage.a, warp / 4 * 64, stage.b, tile > 0);
    ptx::wgmma_commit();
    ptx::wgmma_wait<1>(sums);  // this tile's products still run; those of the previous one are done
    if (tile > 0 && lane == 0) ring.release(stage_before);
    stage_before = at.stage;
  }
  ptx::wgmma_wait<0>(sums);

  // A zero that is opaque to the compiler: the addresses of the stores are computed here, not
  // before the loop, where they would occupy registers.
  const int zero = zero_anew();
  with_output_type<T>(job.finish.p, job.finish.narrow, [&](const auto& p) {
    finish_strip<columns>(p, layout.strips[warp], work.batch + zero, first_row + 16 * warp + zero,
                          first_column + zero, [&](int i) { return sums[i]; });
  });
}

void run(const Gemm::Args& args, Context& context) {
  visit<f16, bf16>(args.a.dtype, [&]<class T>() {
    const MappedOperands<T> operands = mapped_operands<T>(args);
    with_majors(operands, [&]<bool KMajorA, bool KMajorB>() {
      const TensorJob<T> job =
          tensor_job<WgmmaTile<T, rows, KMajorA>, WgmmaTile<T, columns, KMajorB>>(
              operands,
              {.rows = rows, .columns = columns, .slices = 1, .at_once = context.info().sms},
              nullptr);
      launch(
          context,
          {.grid = job.raster.total(), .block = role_threads, .shared_bytes = sizeof(RolesLayout)},
          gemm_warp_specialized<T, KMajorA, KMajorB>, job);
    });
  });
}

const Rung<Gemm> self{{.name = "warp_specialized",
                       .step = 310,
                       .after = "wgmma_tma",
                       .backend = device_backend,
                       .teaching = true,
                       .supports = require_16_bit_maps,
                       .tile = {.rows = rows, .columns = columns},
                       .run = run}};

}  // namespace
}  // namespace rung
