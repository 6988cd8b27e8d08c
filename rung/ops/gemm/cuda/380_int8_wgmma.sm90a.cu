// SPDX-License-Identifier: Apache-2.0
// gemm / int8 wgmma
//
// Idea     i8 on wgmma, with sums of 32 bits: persistent for integers.
// Changes  against fp8_wgmma: sums are exact, so that they stay in the instruction's registers
//          through all of k, and tiles are 128 x 256.
// Cost     as fp8_wgmma, without the additions. C is four times as wide as the operands.
// Limits   as fp8_wgmma: operands whose k is not contiguous are copied first. k is not cut into
//          slices. C is written by threads.
// Tried    -
// Source   PTX ISA, "Asynchronous warpgroup level matrix multiply-accumulate".
#include "rung/device/ptx_hopper.hpp"
#include "rung/ops/gemm/cuda/detail/byte_operands.hpp"
#include "rung/ops/gemm/cuda/detail/consume.hpp"
#include "rung/ops/gemm/cuda/detail/tensor_job.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int tile_rows = 64 * consumer_groups;
constexpr TensorTile int8_tiles[] = {
    {.rows = tile_rows, .columns = 256, .reach = 0.7, .step_seconds = 0.4e-6},
    {.rows = tile_rows, .columns = 128, .reach = 0.6, .step_seconds = 0.3e-6},
    {.rows = tile_rows, .columns = 64, .reach = 0.45, .step_seconds = 0.25e-6}};

struct Int8Job {
  TensorMap a, b;
  Product<std::int8_t, std::int32_t> p;
  Raster raster;
  int a_moves, b_moves;
  int k_tiles;
};

template <int Columns>
struct Int8Layout {
  static constexpr int stage_count =
      (192 << 10) / static_cast<int>(sizeof(TileStage<tile_rows, Columns>));
  TileStage<tile_rows, Columns> stages[stage_count];
  StripStage strips[consumer_warps];
  StageRing<stage_count> ring;
};

/// Blocks that stay take every gridDim.x-th tile of C.
template <int Columns>
__global__ void __launch_bounds__(role_threads, 1)
    gemm_int8_wgmma(const __grid_constant__ Int8Job job) {
  using TileA = WgmmaTile<std::int8_t, tile_rows, true>;
  using TileB = WgmmaTile<std::int8_t, Columns, true>;
  using Layout = Int8Layout<Columns>;
  auto& layout = shared<Layout>();
  if (threadIdx.x == 0) {
    layout.ring.init(consumer_warps);
    ptx::tensor_prefetch_map(job.a);
    ptx::tensor_prefetch_map(job.b);
  }
  __syncthreads();
  RingPlace<Layout::stage_count> at;
  const int works = job.raster.total();
  const auto first = static_cast<int>(blockIdx.x);
  const auto blocks = static_cast<int>(gridDim.x);

  if (threadIdx.x < producer_threads) {
    ptx::release_registers<producer_registers>();
    if (threadIdx.x != 0) return;
    for (int number = first; number < works; number += blocks) {
      const TileWork work = job.raster.at(number);
      produce_tiles<TileA, TileB>(layout.stages, layout.ring, at, job, work.batch,
                                  work.row * tile_rows, work.column * Columns, 0, job.k_tiles);
    }
    return;
  }

  ptx::claim_registers<consumer_registers>();
  const int warp = static_cast<int>(threadIdx.x - producer_threads) / 32;
  for (int number = first; number < works; number += blocks) {
    const TileWork work = job.raster.at(number);
    int sums[Columns / 2];
    int before = 0;
    for (int tile = 0; tile < job.k_tiles; ++tile) {
      layout.ring.await_full(at);
      const auto& stage = layout.stages[at.stage];
      const ptx::MatrixDescriptor a = TileA::descriptor(stage.a, warp / 4 * 64);
      const ptx::MatrixDescriptor b = TileB::descriptor(stage.b, 0);
      ptx::wgmma_fence(sums);
#pragma unroll
      for (int step = 0; step < TileA::steps; ++step) {
        const int offset = step * TileA::step_bytes;
        ptx::wgmma<std::int8_t>(sums, ptx::advanced(a, offset), ptx::advanced(b, offset),
                                tile > 0 || step > 0);
      }
      ptx::wgmma_commit();
      ptx::wgmma_wait<1>(sums);  // the tile before is done, and its stage may be filled again
      if (tile > 0) ReleaseHere{}(layout.ring, before);
      before = at.stage;
      at.advance();
    }
    ptx::wgmma_wait<0>(sums);
    ReleaseHere{}(layout.ring, before);
    finish_strip<Columns>(job.p, layout.strips[warp], work.batch, work.row * tile_rows + 16 * warp,
                          work.column * Columns, [&](int i) { return sums[i]; });
  }
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (args.a.dtype != DType::i8) return unsupported("this rung multiplies i8");
  if (const Support sizes = require_mapped_sizes(args, context); !sizes) return sizes;
  return ByteOperands(args).bytes() <= most_packed_bytes ? supported
                                                         : unsupported("copies of more than 1 GiB");
}

/// Of one slice of k: the best of the tiles.
TensorPlan plan_of(const Gemm::Args& args, const Context& context) {
  TensorPlan plan;
  for (int tile = 0; tile < static_cast<int>(std::size(int8_tiles)); ++tile) {
    const double seconds = tensor_seconds(args, context, int8_tiles[tile], 1, true);
    if (tile == 0 || seconds < plan.seconds) plan = {tile, 1, seconds};
  }
  return plan;
}

double estimate(const Gemm::Args& args, const Context& context) {
  return plan_of(args, context).seconds + ByteOperands(args).seconds(context);
}

void run(const Gemm::Args& args, Context& context) {
  const int columns = int8_tiles[plan_of(args, context).tile].columns;
  ByteOperands operands(args);
  operands.pack(context, context.workspace(static_cast<std::size_t>(operands.bytes())));
  const auto p = product<std::int8_t, std::int32_t>(args);
  const auto with_columns = [&]<int Columns>() {
    if (columns != Columns) return;
    const Int8Job job{
        .a = make_tensor_map(operands.a.view, WgmmaTile<std::int8_t, tile_rows, true>::box,
                             Swizzle::bytes_128),
        .b = make_tensor_map(operands.b.view, WgmmaTile<std::int8_t, Columns, true>::box,
                             Swizzle::bytes_128),
        .p = p,
        .raster = {.down = static_cast<int>(tiles_of(p.m(), tile_rows)),
                   .along = static_cast<int>(tiles_of(p.n(), Columns)),
                   .batch = static_cast<int>(p.c.shape[0]),
                   .slices = 1,
                   .band = raster_band(context.info().sms, tile_rows, Columns)},
        .a_moves = operands.a.moves ? 1 : 0,
        .b_moves = operands.b.moves ? 1 : 0,
        .k_tiles = static_cast<int>(tiles_of(p.k(), 128))};
    launch(context,
           {.grid = smaller<std::int64_t>(job.raster.total(), context.info().sms),
            .block = role_threads,
            .shared_bytes = sizeof(Int8Layout<Columns>)},
           gemm_int8_wgmma<Columns>, job);
  };
  with_columns.template operator()<256>();
  with_columns.template operator()<128>();
  with_columns.template operator()<64>();
}

const Rung<Gemm> self{{.name = "int8_wgmma",
                       .step = 380,
                       .after = "fp8_wgmma",
                       .backend = device_backend,
                       .supports = supports,
                       .speed = {.rows = tile_rows, .columns = 256},
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
