// SPDX-License-Identifier: Apache-2.0
// gemm / fp8 wgmma: the kernel, compiled for a pair of operand types a file.
//
// Idea, Changes, Cost and Limits stand in 370_fp8_wgmma.sm90a.cu, whose rung this is a part of.
#pragma once

#include "rung/device/ptx_hopper.hpp"
#include "rung/ops/gemm/cuda/detail/byte_operands.hpp"
#include "rung/ops/gemm/cuda/detail/bytes.hpp"
#include "rung/ops/gemm/cuda/detail/consume.hpp"
#include "rung/ops/gemm/cuda/detail/tensor_job.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// A consumer's 64 rows once or twice: with two, a tile of B serves 256 rows.
constexpr TensorTile fp8_tiles[] = {
    {.rows = 256, .columns = 128, .reach = 0.7, .step_seconds = 0.6e-6},
    {.rows = 128, .columns = 128, .reach = 0.6, .step_seconds = 0.4e-6},
    {.rows = 128, .columns = 64, .reach = 0.45, .step_seconds = 0.3e-6}};

/// What a kernel is given. In `finish`, C and bias are floats, or of `out` where that is narrow.
struct Fp8Job {
  TensorMap a, b;
  TensorMap c;  // where boxes_of_c
  Finish<e4m3> finish;
  DType out;
  BlockScales scales;
  Raster raster;
  int a_moves, b_moves;
  int k_tiles;
  int slice_tiles;
  bool boxes_of_c;

  [[nodiscard]] __device__ int tiles_of_slice(int slice) const {
    return smaller(slice_tiles, k_tiles - slice * slice_tiles);
  }
};

template <int Rows, int Columns>
struct Fp8Layout {
  static constexpr int stage_count =
      (192 << 10) / static_cast<int>(sizeof(TileStage<Rows, Columns>));
  TileStage<Rows, Columns> stages[stage_count];
  StripBoxes strips[consumer_warps];
  StageRing<stage_count> ring;
};

/// A strip of 16 rows, with C of whichever type.
template <int Columns, class Sums>
__device__ __forceinline__ void write_fp8_strip(const Fp8Job& job, StripBoxes& boxes, int& turn,
                                                int matrix, int first_row, int first_column,
                                                const Sums& sums) {
  const auto& p = job.finish.p;
  const auto write = [&]<class Out>() {
    if (job.boxes_of_c) {
      store_strip<Out, Columns>(job.c, boxes, turn, p.alpha, matrix, first_row, first_column,
                                static_cast<int>(p.m()), static_cast<int>(p.n()), sums);
      return;
    }
    finish_strip<Columns>(with_output<Out>(p), boxes.box[0], matrix, first_row, first_column, sums);
  };
  if (job.out == DType::bf16) return write.template operator()<bf16>();
  if (job.out == DType::f16) return write.template operator()<f16>();
  write.template operator()<float>();
}

/// Blocks that stay take every gridDim.x-th tile of C, or of a slice of k.
template <class A, class B, int Rows, int Columns>
__global__ void __launch_bounds__(role_threads, 1)
    gemm_fp8_wgmma(const __grid_constant__ Fp8Job job) {
  using TileA = WgmmaTile<A, Rows, true>;
  using TileB = WgmmaTile<B, Columns, true>;
  using Layout = Fp8Layout<Rows, Columns>;
  static_assert(TileA::depth == gemm_scale_block && gemm_scale_block % Columns == 0,
                "a stage has one factor per row of A, and one of B");
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
      produce_tiles<TileA, TileB>(
          layout.stages, layout.ring, at, job, work.batch, work.row * Rows, work.column * Columns,
          work.slice * job.slice_tiles * TileA::depth, job.tiles_of_slice(work.slice));
    }
    return;
  }

  ptx::claim_registers<consumer_registers>();
  constexpr int halves = Rows / (64 * consumer_groups);
  const int warp = static_cast<int>(threadIdx.x - producer_threads) / 32;
  const int group_row = warp / 4 * halves * 64;  // of the consumer's rows in the tile
  const int lane_row = static_cast<int>(threadIdx.x) % 32 / 4;
  const bool scaled = job.scales.a.data != nullptr || job.scales.b.data != nullptr;
  int turn = 0;
  for (int number = first; number < works; number += blocks) {
    const TileWork work = job.raster.at(number);
    const int first_row = work.row * Rows + group_row + 16 * (warp % 4);  // of the warp's strip
    const int tiles = job.tiles_of_slice(work.slice);
    float sums[halves][Columns / 2] = {};
    for (int tile = 0; tile < tiles; ++tile) {
      // Of rows lane_row and lane_row + 8 of each half; loaded while the stage is awaited.
      float factor[halves][2];
      if (scaled) {
        const int k_block = work.slice * job.slice_tiles + tile;
        const float of_b =
            job.scales.of_b(work.batch, k_block, work.column * Columns / gemm_scale_block);
#pragma unroll
        for (int i = 0; i < 2 * halves; ++i) {
          const int row = first_row + i / 2 * 64 + i % 2 * 8 + lane_row;
          const std::int64_t inside = smaller<std::int64_t>(row, job.finish.p.m() - 1);
          factor[i / 2][i % 2] = job.scales.of_a(work.batch, inside, k_block) * of_b;
        }
      } else {
#pragma unroll
        for (int i = 0; i < 2 * halves; ++i) factor[i / 2][i % 2] = 1;
      }
      layout.ring.await_full(at);
      const auto& stage = layout.stages[at.stage];
#pragma unroll
      for (int half = 0; half < halves; ++half) {
        // Four instructions, 128 steps of k, keep some 14 bits; between them and the next f32 adds.
        float partial[Columns / 2];
        ptx::wgmma_fence(partial);
        wgmma_tile<TileA, TileB>(partial, stage.a, group_row + half * 64, stage.b, false);
        ptx::wgmma_commit();
        ptx::wgmma_wait<0>(partial);
        if (half == halves - 1) ReleaseHere{}(layout.ring, at.stage);
#pragma unroll
        for (int i = 0; i < Columns / 2; ++i) {
          sums[half][i] += factor[half][i / 2 % 2] * partial[i];
        }
      }
      at.advance();
    }
#pragma unroll
    for (int half = 0; half < halves; ++half) {
      write_fp8_strip<Columns>(job, layout.strips[warp], turn,
                               work.slice * job.raster.batch + work.batch, first_row + half * 64,
                               work.column * Columns, [&](int i) { return sums[half][i]; });
    }
  }
  if (threadIdx.x % 32 == 0) StripBoxes::drain();
}

/// A call whose operands are where the copy engine takes them.
struct Fp8Call {
  Finish<e4m3> finish;
  DType out;
  ByteOperand a, b;
  BlockScales scales;
};

/// Runs the plan's kernel; with several slices, sums go to `partial`. In
/// detail/fp8_wgmma_*.sm90a.cu, and for e4m3 in the rung's file.
template <class A, class B>
void run_fp8_wgmma(Context& context, const Fp8Call& call, const TensorPlan& plan, float* partial);
template <>
void run_fp8_wgmma<e4m3, e4m3>(Context&, const Fp8Call&, const TensorPlan&, float*);
template <>
void run_fp8_wgmma<e4m3, e5m2>(Context&, const Fp8Call&, const TensorPlan&, float*);
template <>
void run_fp8_wgmma<e5m2, e4m3>(Context&, const Fp8Call&, const TensorPlan&, float*);
template <>
void run_fp8_wgmma<e5m2, e5m2>(Context&, const Fp8Call&, const TensorPlan&, float*);

/// Its definition, for the file that compiles A's and B's kernels.
template <class A, class B>
void launch_fp8_wgmma(Context& context, const Fp8Call& call, const TensorPlan& plan,
                      float* partial) {
  const auto with_tile = [&]<int Rows, int Columns>() {
    if (fp8_tiles[plan.tile].rows != Rows || fp8_tiles[plan.tile].columns != Columns) return;
    const Product<e4m3, float>& p = call.finish.p;
    const auto k_tiles = static_cast<int>(tiles_of(p.k(), gemm_scale_block));
    const auto slice_tiles = static_cast<int>(tiles_of(k_tiles, plan.slices));
    const bool sliced = plan.slices > 1;
    Fp8Job job{
        .a = make_tensor_map(call.a.view, WgmmaTile<A, Rows, true>::box, Swizzle::bytes_128),
        .b = make_tensor_map(call.b.view, WgmmaTile<B, Columns, true>::box, Swizzle::bytes_128),
        .c = {},
        .finish = sliced ? into_partial_sums(call.finish, partial) : call.finish,
        .out = sliced ? DType::f32 : call.out,
        .scales = call.scales,
        .raster = {.down = static_cast<int>(tiles_of(p.m(), Rows)),
                   .along = static_cast<int>(tiles_of(p.n(), Columns)),
                   .batch = static_cast<int>(p.c.shape[0]),
                   .slices = static_cast<int>(tiles_of(k_tiles, slice_tiles)),
                   .band = raster_band(context.info().sms, Rows, Columns)},
        .a_moves = call.a.moves ? 1 : 0,
        .b_moves = call.b.moves ? 1 : 0,
        .k_tiles = k_tiles,
        .slice_tiles = slice_tiles,
        .boxes_of_c = false};
    // Slices lie one behind the other, as a longer batch; what stands behind their rows is unowned.
    Product<e4m3, float> longer = job.finish.p;
    if (sliced) {
      longer.c.shape[0] *= job.raster.slices;
      longer.c.shape[2] = partial_pitch(p.n());
    }
    visit<float, f16, bf16>(job.out,
                            [&]<class Out>() { job.boxes_of_c = map_c<Out>(longer, job.c); });
    launch(context,
           {.grid = smaller<std::int64_t>(job.raster.total(), context.info().sms),
            .block = role_threads,
            .shared_bytes = sizeof(Fp8Layout<Rows, Columns>)},
           gemm_fp8_wgmma<A, B, Rows, Columns>, job);
  };
  with_tile.template operator()<256, 128>();
  with_tile.template operator()<128, 128>();
  with_tile.template operator()<128, 64>();
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
