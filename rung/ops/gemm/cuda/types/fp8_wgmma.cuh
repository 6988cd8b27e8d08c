// SPDX-License-Identifier: Apache-2.0
// gemm / fp8 wgmma: the kernel, compiled once per pair of operand types.
//
// Part of the rung whose Idea, Changes, Cost and Limits are in fp8_wgmma.sm90a.cu.
#pragma once

#include "rung/device/collectives.hpp"
#include "rung/ops/gemm/cuda/detail/byte_operands.hpp"
#include "rung/ops/gemm/cuda/detail/bytes.hpp"
#include "rung/device/tile/roles.hpp"
#include "rung/ops/gemm/cuda/detail/tensor_job.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// Tile sizes. A consumer multiplies half of a 256-column tile at a time.
constexpr int fp8_rows = 64 * consumer_groups;
constexpr TensorTile fp8_tiles[] = {
    {.rows = fp8_rows, .columns = 256, .reach = 0.7, .step_seconds = 0.6e-6},
    {.rows = fp8_rows, .columns = 128, .reach = 0.6, .step_seconds = 0.4e-6},
    {.rows = fp8_rows, .columns = 64, .reach = 0.45, .step_seconds = 0.3e-6}};

/// Kernel parameters. In `finish`, C and bias are floats, or of type `out` if `narrow`.
struct Fp8Job {
  TensorMap a, b;
  TensorMap c;  // valid if boxes_of_c
  Finish<e4m3> finish;
  DType out;
  BlockScales scales;
  Raster raster;
  int a_moves, b_moves;
  int k_tiles;
  int slice_tiles;
  bool boxes_of_c;

  [[nodiscard]] __device__ const auto& product() const { return finish.p; }
  [[nodiscard]] __device__ int out_bytes() const { return out == DType::f32 ? 4 : 2; }
  [[nodiscard]] __device__ int tiles_of_slice(int slice) const {
    return smaller(slice_tiles, k_tiles - slice * slice_tiles);
  }
};

template <int Columns>
struct Fp8Layout {
  static constexpr int stage_count =
      (192 << 10) / static_cast<int>(sizeof(TileStage<fp8_rows, Columns>));
  TileStage<fp8_rows, Columns> stages[stage_count];
  StripBoxes strips[consumer_warps];
  StageRing<stage_count> ring;
};

/// Writes a strip of 16 rows to C of any supported type.
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

/// Scale factors of a tile's blocks: for a lane's two rows of A, and per 128 columns of B.
template <int Halves>
class TileFactors {
  const float* rows_[2];  // null: the factor is 1
  const float* columns_;
  int last_;  // index of the last half inside C
  const BlockScales& scales_;

 public:
  float rows[2], columns[Halves];

  __device__ TileFactors(const Fp8Job& job, const BlockTile& tile, int first_row)
      : scales_(job.scales) {
    const auto& [a, b] = job.scales;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      // Rows beyond C use the last row's factor.
      const int row = first_row + 8 * i + static_cast<int>(threadIdx.x) % 32 / 4;
      const std::int64_t inside = smaller<std::int64_t>(row, job.finish.p.m() - 1);
      rows_[i] = a.data == nullptr ? nullptr : &a(tile.batch, inside, 0);
    }
    const int block = tile.column / gemm_scale_block;
    last_ = static_cast<int>((job.finish.p.n() - 1) / gemm_scale_block) - block;
    columns_ = b.data == nullptr ? nullptr : &b(tile.batch, 0, block);
  }
  /// Starts loading the factors of a block along k.
  __device__ __forceinline__ void load(int k_block) {
    const auto& [a, b] = scales_;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      rows[i] = rows_[i] == nullptr ? 1.0F : rows_[i][k_block * a.strides[2]];
    }
#pragma unroll
    for (int i = 0; i < Halves; ++i) {
      const int half = smaller(i, last_);
      columns[i] =
          columns_ == nullptr ? 1.0F : columns_[k_block * b.strides[1] + half * b.strides[2]];
    }
  }
};

/// Computes C by persistent blocks, each of which loops over every gridDim.x-th tile of C or, with
/// split-K, slice of a tile.
template <class A, class B, int Columns, bool Scaled>
__global__ void __launch_bounds__(role_threads, 1)
    gemm_fp8_wgmma(const __grid_constant__ Fp8Job job) {
  using TileA = WgmmaTile<A, fp8_rows, true>;
  using TileB = WgmmaTile<B, Columns, true>;
  constexpr int width = smaller<int>(Columns, gemm_scale_block);
  constexpr int halves = Columns / width;
  static_assert(TileA::depth == gemm_scale_block && gemm_scale_block % width == 0,
                "a stage has one factor per row of A, and one of B per half");
  auto& layout = shared<Fp8Layout<Columns>>();
  auto& ring = layout.ring;
  set_up_roles<TileB>(layout, job);
  RingPlace<Fp8Layout<Columns>::stage_count> at;
  if (threadIdx.x < producer_threads) ptx::release_registers<producer_registers>();
  if (threadIdx.x < 32) {
    for_each_tile<TileA, TileB>(job, [&](const BlockTile& tile) {
      prefetch_addends_of<TileA, TileB>(job, tile);
      for (int step = 0; threadIdx.x == 0 && step < tile.k_tiles; ++step, at.advance()) {
        auto& stage = layout.stages[at.stage];
        auto& full = ring.full[at.stage];
        const int k = (tile.first_step + step) * TileA::depth;
        ring.await_empty(at);
        ring.expect(at, TileA::bytes + TileB::bytes);
        TileA::load(stage.a, job.a, tile.batch * job.a_moves, tile.row, k, full);
        TileB::load(stage.b, job.b, tile.batch * job.b_moves, tile.column, k, full);
      }
      __syncwarp();  // keeps lanes from prefetching for a later tile
    });
  } else if (threadIdx.x >= producer_threads) {
    ptx::claim_registers<consumer_registers>();
    const int warp = consumer_warp();
    int turn = 0;
    for_each_tile<TileA, TileB>(job, [&](const BlockTile& tile) {
      const int first_row = tile.row + 16 * warp;  // of the warp's strip
      TileFactors<halves> factors(job, tile, first_row);
      if constexpr (Scaled) factors.load(tile.first_step);
      float sums[halves][width / 2] = {};
      for (int step = 0; step < tile.k_tiles; ++step) {
        ring.await_full(at);
        const auto& stage = layout.stages[at.stage];
#pragma unroll
        for (int half = 0; half < halves; ++half) {
          // The sum of four instructions, 128 steps of k, keeps about 14 bits; partial sums are
          // added in f32.
          float partial[width / 2];
          ptx::wgmma_fence(partial);
          wgmma_tile<TileA, TileB>(partial, stage.a, warp / 4 * 64, stage.b, false, half * width);
          ptx::wgmma_commit();
          ptx::wgmma_wait<0>(partial);
          if (half == halves - 1) release_stage<TileB>(ring, at.stage);
          const float by[2] = {Scaled ? factors.rows[0] * factors.columns[half] : 1.0F,
                               Scaled ? factors.rows[1] * factors.columns[half] : 1.0F};
#pragma unroll
          for (int i = 0; i < width / 2; ++i) sums[half][i] += by[i / 2 % 2] * partial[i];
        }
        // The loads overlap with the products of the next block.
        if (Scaled && step + 1 < tile.k_tiles) factors.load(tile.first_step + step + 1);
        at.advance();
      }
      write_fp8_strip<Columns>(job, layout.strips[warp], turn, tile.matrix, first_row, tile.column,
                               [&](int i) { return sums[i / (width / 2)][i % (width / 2)]; });
    });
    if (lane_of_thread() == 0) ptx::bulk_wait_read<0>();  // until its stores have read their boxes
  }
}

/// Arguments of a call whose operands are in a layout that TMA supports.
struct Fp8Call {
  Finish<e4m3> finish;
  DType out;
  ByteOperand a, b;
  BlockScales scales;
};

/// Runs the plan's kernel; with several slices, sums go to `partial`. Defined in the rung's file,
/// which is compiled once per pair of types.
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

/// Implements run_fp8_wgmma(), in the file that compiles A's and B's kernels.
template <class A, class B>
void launch_fp8_wgmma(Context& context, const Fp8Call& call, const TensorPlan& plan,
                      float* partial) {
  const auto with_tile = [&]<int Columns>() {
    const TensorTile& tile = fp8_tiles[plan.tile];
    if (tile.columns != Columns) return;
    using TileA = WgmmaTile<A, fp8_rows, true>;
    using TileB = WgmmaTile<B, Columns, true>;
    const std::int64_t at_once = context.info().sms;
    const Product<e4m3, float>& p = call.finish.p;
    const auto k_tiles = static_cast<int>(tiles_of(p.k(), gemm_scale_block));
    const auto slice_tiles = static_cast<int>(tiles_of(k_tiles, plan.slices));
    const bool sliced = plan.slices > 1;
    Fp8Job job{.a = make_tensor_map(call.a.view, TileA::box, Swizzle::bytes_128),
               .b = make_tensor_map(call.b.view, TileB::box, Swizzle::bytes_128),
               .c = {},
               .finish = sliced ? into_partial_sums(call.finish, partial) : call.finish,
               .out = sliced ? DType::f32 : call.out,
               .scales = call.scales,
               .raster = {.down = static_cast<int>(tiles_of(p.m(), tile.rows)),
                          .along = static_cast<int>(tiles_of(p.n(), Columns)),
                          .batch = static_cast<int>(p.c.shape[0]),
                          .slices = static_cast<int>(tiles_of(k_tiles, slice_tiles)),
                          .band = raster_band(at_once, tile.rows, Columns)},
               .a_moves = call.a.moves ? 1 : 0,
               .b_moves = call.b.moves ? 1 : 0,
               .k_tiles = k_tiles,
               .slice_tiles = slice_tiles,
               .boxes_of_c = false};
    // The slices are matrices of one contiguous batch; the padding after their rows may be
    // overwritten.
    Product<e4m3, float> longer = job.finish.p;
    if (sliced) {
      longer.c.shape[0] *= job.raster.slices;
      longer.c.shape[2] = partial_pitch(p.n());
    }
    visit<float, f16, bf16>(job.out,
                            [&]<class Out>() { job.boxes_of_c = map_c<Out>(longer, job.c); });
    const bool scaled = job.scales.a.data != nullptr || job.scales.b.data != nullptr;
    launch(context,
           {.grid = smaller<std::int64_t>(job.raster.total(), at_once),
            .block = role_threads,
            .shared_bytes = sizeof(Fp8Layout<Columns>)},
           scaled ? gemm_fp8_wgmma<A, B, Columns, true> : gemm_fp8_wgmma<A, B, Columns, false>,
           job);
  };
  with_tile.template operator()<256>();
  with_tile.template operator()<128>();
  with_tile.template operator()<64>();
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
