// SPDX-License-Identifier: Apache-2.0
// gemm / wgmma tma
//
// Idea     Hopper's tensor cores and TMA: one thread issues TMA loads, mbarriers in shared memory
//          signal their arrival, and four warps multiply 64 x 128 by wgmma, which reads both
//          operands from shared memory.
// Changes  against ldmatrix_pipeline: no addresses, bounds checks or fragment loads; a warp issues
//          8 wgmma per tile of 128 x 128 x 64, where it issued 128 mma and their fragment loads.
// Cost     the traffic of 128 x 128 tiles; one block barrier per tile of k.
// Limits   operands must suit TMA: 16-byte aligned, strides of a multiple of 16 bytes; tf32 only
//          with k contiguous. The warps that multiply also issue the loads: they wait for the
//          products of a tile before its stage can be refilled.
// Source   PTX ISA, wgmma and cp.async.bulk.tensor; fast.cu's second kernel.
#include "rung/device/stage_ring.hpp"
#include "rung/ops/gemm/cuda/detail/tensor_job.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int rows = 128;
constexpr int columns = 128;
constexpr int threads = 128;    // a warpgroup
constexpr int ring_stages = 4;  // of 32 KiB

struct WgmmaLayout {
  struct alignas(1024) Stage {
    unsigned char a[rows * 128];
    unsigned char b[columns * 128];
  };
  Stage stages[ring_stages];
  StripStage strips[threads / 32];
  ptx::MemoryBarrier full[ring_stages];
};

template <class T, bool KMajorA, bool KMajorB>
__global__ void __launch_bounds__(threads, 1)
    gemm_wgmma_tma(const __grid_constant__ TensorJob<T> job) {
  using TileA = WgmmaTile<T, rows, KMajorA>;
  using TileB = WgmmaTile<T, columns, KMajorB>;
  auto& layout = shared<WgmmaLayout>();
  const TileWork work = job.raster.at(static_cast<int>(blockIdx.x));
  const int first_row = work.row * rows;
  const int first_column = work.column * columns;
  const int tiles = job.k_tiles;
  const auto fetch = [&](int tile) {
    auto& stage = layout.stages[tile % ring_stages];
    auto& full = layout.full[tile % ring_stages];
    ptx::mbarrier_arrive_expect(full, TileA::bytes + TileB::bytes);
    const int k = tile * TileA::depth;
    TileA::load(stage.a, job.a, work.batch * job.a_moves, first_row, k, full);
    TileB::load(stage.b, job.b, work.batch * job.b_moves, first_column, k, full);
  };
  if (threadIdx.x == 0) {
    for (auto& full : layout.full) ptx::mbarrier_init(full, 1);
    ptx::mbarrier_fence_init();
    for (int tile = 0; tile < ring_stages && tile < tiles; ++tile) fetch(tile);
  }
  __syncthreads();

  float sums[rows / 64][columns / 2];
  for (int tile = 0; tile < tiles; ++tile) {
    const auto& stage = layout.stages[tile % ring_stages];
    ptx::mbarrier_wait(layout.full[tile % ring_stages],
                       static_cast<unsigned>(tile / ring_stages) & 1);
    ptx::wgmma_fence(sums);
#pragma unroll
    for (int i = 0; i < rows / 64; ++i) {
      wgmma_tile<TileA, TileB>(sums[i], stage.a, 64 * i, stage.b, tile > 0);
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>(sums);
    __syncthreads();  // all warps have read the stage
    if (threadIdx.x == 0 && tile + ring_stages < tiles) fetch(tile + ring_stages);
  }

  const int warp = static_cast<int>(threadIdx.x) / 32;
  const auto finish = [&](const auto& p) {
#pragma unroll
    for (int i = 0; i < rows / 64; ++i) {
      finish_strip<columns>(p, layout.strips[warp], work.batch, first_row + 64 * i + 16 * warp,
                            first_column, [&](int at) { return sums[i][at]; });
    }
  };
  with_output_type<T>(job.finish.p, job.finish.narrow, finish);
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
      launch(context,
             {.grid = job.raster.total(), .block = threads, .shared_bytes = sizeof(WgmmaLayout)},
             gemm_wgmma_tma<T, KMajorA, KMajorB>, job);
    });
  });
}

const Rung<Gemm> self{{.name = "wgmma_tma",
                       .step = 300,
                       .after = "ldmatrix_pipeline",
                       .backend = device_backend,
                       .teaching = true,
                       .supports = require_16_bit_maps,
                       .tile = {.rows = rows, .columns = columns},
                       .run = run}};

}  // namespace
}  // namespace rung
