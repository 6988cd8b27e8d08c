// SPDX-License-Identifier: Apache-2.0
// gemm / split k
//
// Idea     tiles of C that do not fill the device's SMs are split along k into slices that are
//          computed in parallel; a second kernel combines them in a fixed order.
// Changes  against simt_top: with fewer tiles than SMs all tiles are split. With more tiles, those
//          of the last, partial wave are split if the other SMs would wait for it. The second
//          kernel's blocks are set up while the first kernel ends.
// Cost     the partial sums are written and read once: 8 bytes per element of C and slice, in
//          memory tile by tile, so that all accesses have 16 bytes.
// Limits   a second launch, and at most 32 MiB of partial sums.
// Source   CUTLASS, "Parallelized reductions: split K"; Osama et al. 2023, "Stream-K", its hybrid
//          schedules.
#include <array>

#include "rung/device/collectives.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/tile/raster.hpp"
#include "rung/ops/gemm/cuda/detail/async.hpp"
#include "rung/ops/gemm/cuda/detail/warp_epilogue.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr std::array<TileShape, 2> shapes{{{.rows = 64,
                                            .columns = 128,
                                            .steps = 16,
                                            .warp_rows = 32,
                                            .warp_columns = 64,
                                            .thread_rows = 8,
                                            .thread_columns = 8,
                                            .stages = 4,
                                            .blocks = 3},
                                           {.rows = 64,
                                            .columns = 64,
                                            .steps = 16,
                                            .warp_rows = 32,
                                            .warp_columns = 64,
                                            .thread_rows = 8,
                                            .thread_columns = 8,
                                            .stages = 4,
                                            .blocks = 6}}};
constexpr std::array<double, 2> fractions{0.76, 0.735};  // of the peak, for a large C
constexpr std::int64_t workspace_limit = std::int64_t{32} << 20;
constexpr int shortest_slice = 64;  // steps of k; below, filling the pipeline dominates
constexpr int sum_threads = 256;
// Threads that share the slices of four adjacent elements, unless there are many such groups: one
// thread would serialize its loads.
constexpr int sum_shares = 8;
constexpr std::int64_t many_groups = 32768;

struct SplitKCall {
  Product32 p;
  Raster raster;
  std::int64_t slice_depth;  // of k, for the tiles from raster.whole on
  float* partial;            // [slice][tile][row][column]

  [[nodiscard]] RUNG_HD int split_tiles() const { return raster.tiles() - raster.whole; }
};

/// Computes a tile of C, or the partial sums of a slice.
template <int Shape, TileAccess access_a, TileAccess access_b>
__global__ void __launch_bounds__(shapes[Shape].threads(), shapes[Shape].blocks)
    gemm_split_k(SplitKCall call) {
  constexpr TileShape shape = shapes[Shape];
  using Tile = Pipeline<shape, access_a, access_b>;
  const auto& p = call.p;
  const auto number = static_cast<int>(blockIdx.x);
  const TileWork work = call.raster.at(number);
  const bool split = number >= call.raster.whole && call.raster.slices > 1;
  const int first_row = work.row * shape.rows;
  const int first_column = work.column * shape.columns;
  const std::int64_t first_k = split ? work.slice * call.slice_depth : 0;
  const std::int64_t depth = split ? smaller(p.k() - first_k, call.slice_depth) : p.k();
  TileOperand a = operand_a(p, work.batch);
  TileOperand b = operand_b(p, work.batch);
  a.data += first_k * a.depth_stride;
  b.data += first_k * b.depth_stride;
  typename Tile::Sums sums = {};
  Tile::accumulate(a, first_row, b, first_column, depth, sums);
  if (!split) {
    __syncthreads();  // the epilogue overwrites the tiles
    return finish_warp_tile<shape>(p, work.batch, sums, first_row, first_column);
  }
  float* const partial =
      call.partial + std::int64_t{number - call.raster.whole} * (shape.rows * shape.columns);
#pragma unroll
  for (int i = 0; i < shape.thread_rows; ++i) {
#pragma unroll
    for (int j = 0; j < shape.thread_columns; j += Tile::group) {
      Pack<float, Tile::group> four;
#pragma unroll
      for (int lane = 0; lane < Tile::group; ++lane) four[lane] = sums[i][j + lane];
      store_wide(partial + Tile::row(i) * shape.columns + Tile::column(j), four);
    }
  }
}

/// Combines the slices of 256 / Shares groups of four adjacent elements of a tile per block. Each
/// thread adds every Shares-th slice, then the threads' sums are added in order.
template <int Shape, int Shares>
__global__ void __launch_bounds__(sum_threads) gemm_split_k_sum(SplitKCall call) {
  constexpr TileShape shape = shapes[Shape];
  constexpr int groups = sum_threads / Shares;
  constexpr int elements = shape.rows * shape.columns;
  constexpr int blocks = elements / 4 / groups;  // per tile
  struct Sums {
    alignas(16) float share[Shares][groups][4];
  };
  start_dependent();
  auto& sums = shared<Sums>().share;
  const int tile = static_cast<int>(blockIdx.x) / blocks;
  const auto group = static_cast<int>(threadIdx.x);
  const auto share = static_cast<int>(threadIdx.y);
  const int at = (static_cast<int>(blockIdx.x) % blocks * groups + group) * 4;
  const TileWork work = call.raster.at(call.raster.whole + tile);
  const std::int64_t apart = std::int64_t{call.split_tiles()} * elements;
  const float* const partial = call.partial + std::int64_t{tile} * elements + at;
  Pack<float, 4> sum{};
#pragma unroll 4
  for (int slice = share; slice < call.raster.slices; slice += Shares) {
    const Pack<float, 4> more = load_wide<4>(partial + slice * apart);
#pragma unroll
    for (int i = 0; i < 4; ++i) sum[i] += more[i];
  }
  if constexpr (Shares > 1) {
    store_wide(sums[share][group], sum);
    __syncthreads();
    if (share != 0) return;
#pragma unroll
    for (int other = 1; other < Shares; ++other) {
      const Pack<float, 4> more = load_wide<4>(&sums[other][group][0]);
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[i] += more[i];
    }
  }
  finish_group(call.p, takes_wide_stores<4>(call.p), work.batch,
               std::int64_t{work.row} * shape.rows + at / shape.columns,
               std::int64_t{work.column} * shape.columns + at % shape.columns, sum);
}

struct SplitKPlan {
  int shape = 0;
  std::int64_t whole = 0;  // tiles that are not split
  std::int64_t tiles = 0;
  std::int64_t slices = 1;  // of the others
  std::int64_t slice_depth = 0;
  double seconds = 0;
  [[nodiscard]] std::int64_t blocks() const { return whole + (tiles - whole) * slices; }
  [[nodiscard]] std::int64_t partial_elements() const {
    return slices == 1 ? 0 : (tiles - whole) * slices * shapes[shape].rows * shapes[shape].columns;
  }
};

/// Returns the plan for a shape with `slices` slices of the tiles from `whole` on.
SplitKPlan split_plan(const Gemm::Args& args, int shape, std::int64_t slices, std::int64_t whole) {
  const TileShape& tile = shapes[shape];
  const std::int64_t k = larger<std::int64_t>(args.k(), 1);
  const std::int64_t depth = tiles_of(tiles_of(k, slices), tile.steps) * tile.steps;
  const Product32 p = with_contiguous_c(product<float, float>(args));  // as run() multiplies
  const std::int64_t tiles =
      tiles_of(p.m(), tile.rows) * tiles_of(p.n(), tile.columns) * args.batch();
  const std::int64_t real_slices = slices == 1 ? 1 : tiles_of(k, depth);
  return {shape, real_slices == 1 ? tiles : whole, tiles, real_slices, depth};
}

SplitKPlan plan_split_k(const Gemm::Args& args, const Context& context) {
  const std::int64_t sms = context.info().sms;
  const double bandwidth = nominal_rates(context).bytes_per_second;
  SplitKPlan best;
  for (int shape = 0; shape < static_cast<int>(shapes.size()); ++shape) {
    for (const std::int64_t slices : {1, 2, 3, 4, 5, 6, 8, 11, 16, 22, 32, 44, 64, 88, 128}) {
      if (slices > 1 && (args.alpha == 0 || args.k() < shortest_slice * slices)) break;
      SplitKPlan plan = split_plan(args, shape, slices, 0);
      // All tiles are split, or those behind the last full wave.
      for (const std::int64_t whole : {std::int64_t{0}, plan.tiles / sms * sms}) {
        if (whole > 0 && (slices == 1 || whole == plan.tiles)) continue;
        plan = split_plan(args, shape, slices, whole);
        const auto bytes = static_cast<double>(plan.partial_elements()) * sizeof(float);
        if (bytes > static_cast<double>(workspace_limit)) continue;
        if (plan.slices > 1 && plan.blocks() > 0x7fffffff) continue;  // they take one launch
        plan.seconds =
            tile_seconds(shapes[shape], fractions[shape], args, context, plan.slices, plan.whole);
        if (plan.slices > 1) plan.seconds += launch_seconds + 2 * bytes / bandwidth;
        if (best.seconds == 0 || plan.seconds < best.seconds) best = plan;
      }
    }
  }
  return best;
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (const Support short_strides = require_short_strides(args, context); !short_strides) {
    return short_strides;
  }
  const double tiles =
      static_cast<double>(tiles_of(args.m(), 64)) * static_cast<double>(tiles_of(args.n(), 64));
  return tiles <= 0x1p24 ? supported : unsupported("more than 2^24 tiles of C");
}

/// Returns the work. Split tiles take a slice's share of the rounds and steps of a whole one.
Work work(const Gemm::Args& args, const Context& context) {
  const SplitKPlan plan = plan_split_k(args, context);
  Work work = tile_work(args, context, facts_of(shapes[plan.shape]));
  work.path = copies_path(args);
  if (plan.slices == 1) return work;
  const auto sms = static_cast<double>(context.info().sms);
  const auto tiles = static_cast<double>(plan.tiles);
  const double turns = turns_of(plan.tiles, context, plan.slices, plan.whole);
  const double of_block = tiles / static_cast<double>(plan.blocks());
  const double whole_turns = std::ceil(tiles / sms);
  work.operations = work.operations * turns / whole_turns;
  work.bytes = work.bytes + 2.0 * sizeof(float) * static_cast<double>(plan.partial_elements());
  work.launches = 2;
  work.blocks = static_cast<double>(plan.blocks());
  work.rounds = work.rounds * of_block;
  work.steps =
      work.steps * of_block *
      (tiles > sms ? turns / whole_turns : unevenness(static_cast<double>(plan.blocks()), context));
  return work;
}

template <int Shape>
void sum_slices(Context& context, const SplitKCall& call) {
  const std::int64_t groups =
      std::int64_t{call.split_tiles()} * (shapes[Shape].rows * shapes[Shape].columns / 4);
  const auto with_shares = [&]<int Shares>() {
    launch(context,
           {.grid = groups * Shares / sum_threads,
            .block = {sum_threads / Shares, Shares},
            .shared_bytes = sizeof(float) * 4 * sum_threads,
            .dependent = can_depend(context)},
           gemm_split_k_sum<Shape, Shares>, call);
  };
  groups >= many_groups ? with_shares.template operator()<1>()
                        : with_shares.template operator()<sum_shares>();
}

template <int Shape>
void multiply(Context& context, const SplitKCall& call) {
  with_access(call.p, [&]<TileAccess access_a, TileAccess access_b>() {
    launch(context,
           {.grid = call.raster.total(),
            .block = shapes[Shape].threads(),
            .shared_bytes = tiling_of<shapes[Shape], access_a, access_b>.shared_bytes},
           gemm_split_k<Shape, access_a, access_b>, call);
  });
  if (call.raster.slices > 1) sum_slices<Shape>(context, call);
}

void run(const Gemm::Args& args, Context& context) {
  const SplitKPlan plan = plan_split_k(args, context);
  const TileShape& shape = shapes[plan.shape];
  const Product32 all = with_contiguous_c(product<float, float>(args));
  const std::int64_t down = tiles_of(all.m(), shape.rows);
  const std::int64_t along = tiles_of(all.n(), shape.columns);
  float* partial = nullptr;
  if (plan.slices > 1) {
    partial = static_cast<float*>(
        context.workspace(static_cast<std::size_t>(plan.partial_elements()) * sizeof(float)));
  }
  // A grid has fewer than 2^31 blocks: larger batches, which are not split, take several launches.
  const std::int64_t at_once =
      plan.slices > 1 ? all.c.shape[0] : 0x7fffffff / larger<std::int64_t>(down * along, 1);
  for (std::int64_t first = 0; first < all.c.shape[0]; first += at_once) {
    const Product32 p = slice(all, 0, first, smaller(at_once, all.c.shape[0] - first));
    SplitKCall call{.p = p,
                    .raster = {.down = static_cast<int>(down),
                               .along = static_cast<int>(along),
                               .batch = static_cast<int>(p.c.shape[0]),
                               .slices = static_cast<int>(plan.slices),
                               .band = raster_band(std::int64_t{shape.blocks} * context.info().sms,
                                                   shape.rows, shape.columns)},
                    .slice_depth = plan.slice_depth,
                    .partial = partial};
    call.raster.whole = plan.slices > 1 ? static_cast<int>(plan.whole) : call.raster.tiles();
    plan.shape == 0 ? multiply<0>(context, call) : multiply<1>(context, call);
  }
}

const Rung<Gemm> self{{.name = "split_k",
                       .after = "simt_top",
                       .backend = device_backend,
                       .supports = supports,
                       .tile = {.rows = shapes[0].rows, .columns = shapes[0].columns},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
