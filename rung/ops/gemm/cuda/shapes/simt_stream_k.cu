// SPDX-License-Identifier: Apache-2.0
// gemm / simt stream k
//
// Idea     the tiles of C that do not fill a wave of blocks are divided along k into equal parts,
//          one per block that the device holds at once; a part may end within a tile. A second
//          kernel adds the pieces of a tile in a fixed order (stream-K).
// Changes  against split_k: parts are equal for any number of tiles, not only for multiples of it;
//          128 x 128 tiles of 16 x 8 elements per thread, and copies spread over the steps of k.
//          Against simt_packed: an unaligned operand is copied 4 bytes at a time, the other one 16.
// Cost     per part or streamed tile, one tile of sums is written and read once, within L2. 16 x 8
//          elements take 96 cycles of shared-memory loads per 128 of multiply-adds, 8 x 8 take all
//          of them, so that copies of single elements delay only the latter.
// Limits   a second launch if tiles are streamed; at most 64 MiB of partial sums.
// Source   Osama et al. 2023, "Stream-K: work-centric parallel decomposition".
#include <array>
#include <type_traits>

#include "rung/device/collectives.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/tile/raster.hpp"
#include "rung/ops/gemm/cuda/detail/async.hpp"
#include "rung/ops/gemm/cuda/detail/warp_epilogue.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

// 128 x 128 tiles; 64 x 128, with more loads per multiply-add, where 128 would pad the rows or give
// too few tiles.
constexpr std::array<TileShape, 2> shapes{{{.rows = 128,
                                            .columns = 128,
                                            .steps = 8,
                                            .warp_rows = 64,
                                            .warp_columns = 64,
                                            .thread_rows = 16,
                                            .thread_columns = 8,
                                            .stages = 5,
                                            .blocks = 2},
                                           {.rows = 64,
                                            .columns = 128,
                                            .steps = 8,
                                            .warp_rows = 64,
                                            .warp_columns = 64,
                                            .thread_rows = 16,
                                            .thread_columns = 8,
                                            .stages = 5,
                                            .blocks = 4}}};
constexpr std::int64_t workspace_limit = std::int64_t{64} << 20;
constexpr int shortest_part = 64;  // steps of k; below, filling the pipeline dominates
constexpr int sum_threads = 256;
// Threads that share the pieces of four adjacent elements, unless there are many such groups: one
// thread would serialize its loads.
constexpr int sum_shares = 8;
constexpr std::int64_t many_groups = 32768;

/// Kernel arguments. Tiles from raster.whole on are streamed: their tiles of k form one sequence,
/// which `parts` blocks divide evenly.
struct SimtStream {
  Product32 p;
  Raster raster;
  int parts;
  int k_tiles;     // per tile of C
  float* partial;  // [part + streamed tile][row][column]

  [[nodiscard]] RUNG_HD int streamed() const { return raster.tiles() - raster.whole; }
  [[nodiscard]] RUNG_HD std::int64_t units() const { return std::int64_t{streamed()} * k_tiles; }
  [[nodiscard]] RUNG_HD std::int64_t first_unit(int part) const { return part * units() / parts; }
  /// Returns the part that contains a unit: the last one that does not begin behind it.
  [[nodiscard]] RUNG_HD int part_of(std::int64_t unit) const {
    return static_cast<int>(((unit + 1) * parts - 1) / units());
  }
};

/// Two adjacent tiles: AsyncTile copies at most one outer position per thread.
template <class Half, int Extent>
class AsyncTilePair {
  Half first_, second_;

 public:
  static constexpr int pitch = Half::pitch;
  static constexpr int elements = 2 * Half::elements;
  /// Returns the index of an outer position in a stage, at the first step.
  static __device__ __forceinline__ int at(int outer) {
    return outer / Extent * Half::elements + outer % Extent;
  }

  __device__ __forceinline__ AsyncTilePair(const TileOperand& operand, int first)
      : first_(operand, first), second_(operand, behind(operand, first)) {}
  __device__ __forceinline__ void copy(float* tile) {
    first_.copy(tile);
    second_.copy(tile + Half::elements);
  }
  __device__ __forceinline__ void copy_part(float* tile, int part, int of) const {
    first_.copy_part(tile, part, of);
    second_.copy_part(tile + Half::elements, part, of);
  }
  __device__ __forceinline__ void advance() {
    first_.advance();
    second_.advance();
  }
  __device__ __forceinline__ void copy_first(float* tile, int steps) {
    first_.copy_first(tile, steps);
    second_.copy_first(tile + Half::elements, steps);
  }

 private:
  /// Returns the second tile's first position, or the first tile's if the matrix ends before it.
  static __device__ __forceinline__ int behind(const TileOperand& operand, int first) {
    return first + Extent < operand.outer_extent ? first + Extent : first;
  }
};

/// Copies of an operand's tiles in a shape.
template <int Shape, int Extent, TileAccess access>
struct SimtCopies {
  static constexpr TileShape shape = shapes[Shape];
  static constexpr bool pair = Extent > shape.threads();
  using Half = AsyncTile<pair ? Extent / 2 : Extent, shape.steps, shape.threads(), access>;
  using Tile = std::conditional_t<pair, AsyncTilePair<Half, Extent / 2>, Half>;
  static __device__ __forceinline__ int at(int outer) {
    if constexpr (pair) return Tile::at(outer);
    return outer;
  }
};

template <int Shape, TileAccess access_a, TileAccess access_b>
struct SimtStages {
  static constexpr TileShape shape = shapes[Shape];
  using CopiesB = SimtCopies<Shape, shape.columns, access_b>;
  using TileA = AsyncTile<shape.rows, shape.steps, shape.threads(), access_a>;
  using TileB = typename CopiesB::Tile;
  alignas(16) float a[shape.stages][TileA::elements];
  alignas(16) float b[shape.stages][TileB::elements];
};

/// Computes a tile of C, or the sums of a part's pieces of up to two streamed tiles.
template <int Shape, TileAccess access_a, TileAccess access_b>
__global__ void __launch_bounds__(shapes[Shape].threads(), shapes[Shape].blocks)
    gemm_simt_stream_k(SimtStream call) {
  constexpr TileShape shape = shapes[Shape];
  constexpr int copy_parts = 4;
  constexpr bool serpentine = goes_there_and_back(access_a, access_b);
  using Tile = RegisterTile<shape>;
  using Stages = SimtStages<Shape, access_a, access_b>;
  using TileA = typename Stages::TileA;
  using TileB = typename Stages::TileB;
  auto& stages = shared<Stages>();
  const auto& p = call.p;
  const auto number = static_cast<int>(blockIdx.x);
  const int part = number - call.raster.whole;  // negative: a whole tile
  std::int64_t unit = part < 0 ? 0 : call.first_unit(part);
  const std::int64_t end = part < 0 ? call.k_tiles : call.first_unit(part + 1);
  do {
    const int streamed = part < 0 ? part : static_cast<int>(unit / call.k_tiles);
    const TileWork work = call.raster.at(call.raster.whole + streamed);
    const int first_row = work.row * shape.rows;
    const int first_column = work.column * shape.columns;
    const int from = part < 0 ? 0 : static_cast<int>(unit - std::int64_t{streamed} * call.k_tiles);
    const auto tiles = static_cast<int>(smaller<std::int64_t>(call.k_tiles - from, end - unit));
    typename Tile::Sums sums = {};
    if (tiles > 0) {
      // The first tile of k holds the remainder of the depth.
      const auto remainder =
          static_cast<int>(p.k() - (call.k_tiles - 1) * std::int64_t{shape.steps});
      const int first_steps = from == 0 ? remainder : shape.steps;
      const std::int64_t first_k =
          from == 0 ? 0 : remainder + (from - 1) * std::int64_t{shape.steps};
      TileOperand operand_of_a = operand_a(p, work.batch);
      TileOperand operand_of_b = operand_b(p, work.batch);
      operand_of_a.data += first_k * operand_of_a.depth_stride;
      operand_of_b.data += first_k * operand_of_b.depth_stride;
      TileA a(operand_of_a, first_row);
      TileB b(operand_of_b, first_column);
      // One commit group per tile of k, empty ones included, so that a wait for all but the last n
      // groups always refers to the same tile.
      a.copy_first(stages.a[0], first_steps);
      b.copy_first(stages.b[0], first_steps);
      ptx::async_commit();
#pragma unroll
      for (int stage = 1; stage < shape.stages - 1; ++stage) {
        if (stage < tiles) {
          a.copy(stages.a[stage]);
          b.copy(stages.b[stage]);
        }
        ptx::async_commit();
      }
      // Fragments of the next step are loaded while the current ones are multiplied.
      float a_values[2][shape.thread_rows];
      float b_values[2][shape.thread_columns];
      const int b_place = Stages::CopiesB::at(Tile::column(0));
      const auto load_step = [&](int stage, int step) {
        load_fragment<shape.thread_rows, shape.lanes_down() * Tile::group>(
            a_values[step % 2], &stages.a[stage][step * TileA::pitch + Tile::row(0)]);
        load_fragment<shape.thread_columns, shape.lanes_along() * Tile::group>(
            b_values[step % 2], &stages.b[stage][step * TileB::pitch + b_place]);
      };
      int reading = 0;
      int writing = shape.stages - 1;
      ptx::async_wait<shape.stages - 2>();
      __syncthreads();
      load_step(reading, 0);
      for (int tile = 0; tile < tiles; ++tile) {
        const bool more = tile + shape.stages - 1 < tiles;
#pragma unroll
        for (int step = 0; step < shape.steps; ++step) {
          if (step == shape.steps - 1) {
            // The next tile has arrived for all threads, and all have finished reading the current
            // one, whose buffer can be refilled.
            ptx::async_wait<shape.stages - 2>();
            __syncthreads();
            // After the last tile, that tile is read again and not used.
            const int next = reading == shape.stages - 1 ? 0 : reading + 1;
            reading = tile + 1 < tiles ? next : reading;
          }
          load_step(reading, (step + 1) % shape.steps);
          if (step < copy_parts && more) {
            b.copy_part(stages.b[writing], step, copy_parts);
            a.copy_part(stages.a[writing], step, copy_parts);
          }
          if (step == copy_parts) {
            a.advance();
            b.advance();
            ptx::async_commit();
            writing = writing == shape.stages - 1 ? 0 : writing + 1;
          }
          multiply_add<serpentine>(sums, a_values[step % 2], b_values[step % 2]);
        }
      }
      __syncthreads();  // the epilogue, or the next piece, overwrites the tiles
    }
    if (part < 0) return finish_warp_tile<shape>(p, work.batch, sums, first_row, first_column);
    float* const piece =
        call.partial + (std::int64_t{part} + streamed) * (shape.rows * shape.columns);
#pragma unroll
    for (int i = 0; i < shape.thread_rows; ++i) {
#pragma unroll
      for (int j = 0; j < shape.thread_columns; j += Tile::group) {
        Pack<float, Tile::group> four;
#pragma unroll
        for (int lane = 0; lane < Tile::group; ++lane) four[lane] = sums[i][j + lane];
        store_wide(piece + Tile::row(i) * shape.columns + Tile::column(j), four);
      }
    }
    unit += tiles;
  } while (unit < end);
}

/// Combines the pieces of 256 / Shares groups of four adjacent elements of a tile per block. Each
/// thread adds every Shares-th piece, then the threads' sums are added in order.
template <int Shape, int Shares>
__global__ void __launch_bounds__(sum_threads) gemm_simt_stream_k_sum(SimtStream call) {
  constexpr TileShape shape = shapes[Shape];
  constexpr int groups = sum_threads / Shares;
  constexpr int elements = shape.rows * shape.columns;
  constexpr int blocks = elements / 4 / groups;  // per tile
  struct Sums {
    alignas(16) float share[Shares][groups][4];
  };
  start_dependent();
  auto& sums = shared<Sums>().share;
  const int streamed = static_cast<int>(blockIdx.x) / blocks;
  const auto group = static_cast<int>(threadIdx.x);
  const auto share = static_cast<int>(threadIdx.y);
  const int at = (static_cast<int>(blockIdx.x) % blocks * groups + group) * 4;
  const TileWork work = call.raster.at(call.raster.whole + streamed);
  const std::int64_t first_unit = std::int64_t{streamed} * call.k_tiles;
  const int first_part = call.part_of(first_unit);
  const int pieces = call.part_of(first_unit + call.k_tiles - 1) - first_part + 1;
  const float* const partial = call.partial + (std::int64_t{first_part} + streamed) * elements + at;
  Pack<float, 4> sum{};
#pragma unroll 4
  for (int piece = share; piece < pieces; piece += Shares) {
    const Pack<float, 4> more = load_wide<4>(partial + std::int64_t{piece} * elements);
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

struct StreamPlan {
  int shape = 0;
  StreamedTiles tiles;
  double seconds = 0;
  [[nodiscard]] std::int64_t partial_elements() const {
    return tiles.pieces() * shapes[shape].rows * shapes[shape].columns;
  }
};

StreamPlan plan_stream(const Gemm::Args& args, const Context& context) {
  const std::int64_t sms = context.info().sms;
  const Product32 p = with_contiguous_c(product<float, float>(args));
  StreamPlan best;
  for (int shape = 0; shape < static_cast<int>(shapes.size()); ++shape) {
    const TileShape& tile = shapes[shape];
    const std::int64_t slots = sms * tile.blocks;
    const std::int64_t count =
        tiles_of(p.m(), tile.rows) * tiles_of(p.n(), tile.columns) * args.batch();
    const auto consider = [&](std::int64_t whole, std::int64_t parts) {
      const std::int64_t streamed = count - whole;
      if (streamed > 0 && (parts <= streamed || parts * shortest_part > streamed * p.k())) return;
      StreamPlan plan{.shape = shape,
                      .tiles = {.count = count,
                                .whole = whole,
                                .parts = parts,
                                .k_tiles = tiles_of(p.k(), tile.steps)}};
      if (plan.partial_elements() * std::int64_t{sizeof(float)} > workspace_limit) return;
      plan.seconds = streamed_seconds(tile, plan.tiles, args, context);
      if (best.seconds == 0 || plan.seconds < best.seconds) best = plan;
    };
    consider(count, 0);
    // The tiles behind the last full wave are divided among the blocks of one wave, or into slices.
    for (const std::int64_t whole : {count / slots * slots, count / sms * sms}) {
      if (whole == count) continue;
      for (std::int64_t parts = sms; parts <= slots; parts += sms) consider(whole, parts);
      for (std::int64_t slices = 2; slices * (count - whole) <= slots; ++slices) {
        consider(whole, slices * (count - whole));
      }
    }
  }
  return best;
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (const Support short_strides = require_short_strides(args, context); !short_strides) {
    return short_strides;
  }
  const Product32 p = with_contiguous_c(product<float, float>(args));
  if (access_of(p.a, 1, 2) == TileAccess::any || access_of(p.b, 2, 1) == TileAccess::any) {
    return unsupported("A and B must be contiguous along an axis");
  }
  const double tiles = static_cast<double>(tiles_of(args.m(), 64)) *
                       static_cast<double>(tiles_of(args.n(), 64)) *
                       static_cast<double>(args.batch());
  return tiles <= 0x1p24 ? supported : unsupported("more than 2^24 tiles of C");
}

/// Returns the work: operations and steps are those of the SM with the most, rounds the average of
/// the blocks.
Work work(const Gemm::Args& args, const Context& context) {
  const StreamPlan plan = plan_stream(args, context);
  Work work = tile_work(args, context, facts_of(shapes[plan.shape]));
  work.path = copies_path(args);
  if (plan.tiles.streamed() == 0) return work;
  const auto sms = static_cast<double>(context.info().sms);
  const auto tiles = static_cast<double>(plan.tiles.count);
  const auto whole = static_cast<double>(plan.tiles.whole);
  const auto parts = static_cast<double>(plan.tiles.parts);
  const double blocks = whole + parts;
  // Tiles of an SM, as a share of those without parts.
  const double share =
      (whole / sms + (tiles - whole) * std::ceil(parts / sms) / parts) / std::ceil(tiles / sms);
  work.operations = work.operations * share;
  work.bytes = work.bytes + 2.0 * sizeof(float) * static_cast<double>(plan.partial_elements());
  work.launches = 2;
  work.blocks = blocks;
  work.rounds = work.rounds * tiles / blocks;
  work.steps = work.steps * share * tiles / blocks;
  return work;
}

template <int Shape>
void sum_pieces(Context& context, const SimtStream& call) {
  const std::int64_t groups =
      std::int64_t{call.streamed()} * (shapes[Shape].rows * shapes[Shape].columns / 4);
  const auto with_shares = [&]<int Shares>() {
    launch(context,
           {.grid = groups * Shares / sum_threads,
            .block = {sum_threads / Shares, Shares},
            .shared_bytes = sizeof(float) * 4 * sum_threads,
            .dependent = can_depend(context)},
           gemm_simt_stream_k_sum<Shape, Shares>, call);
  };
  groups >= many_groups ? with_shares.template operator()<1>()
                        : with_shares.template operator()<sum_shares>();
}

template <int Shape>
void multiply(Context& context, const SimtStream& call) {
  with_contiguous_access(call.p, [&]<TileAccess access_a, TileAccess access_b>() {
    launch(context,
           {.grid = std::int64_t{call.raster.whole} + call.parts,
            .block = shapes[Shape].threads(),
            .shared_bytes = larger(sizeof(SimtStages<Shape, access_a, access_b>),
                                   sizeof(WarpRows<shapes[Shape]>))},
           gemm_simt_stream_k<Shape, access_a, access_b>, call);
  });
  if (call.parts > 0) sum_pieces<Shape>(context, call);
}

void run(const Gemm::Args& args, Context& context) {
  const StreamPlan plan = plan_stream(args, context);
  const TileShape& tile = shapes[plan.shape];
  const Product32 p = with_contiguous_c(product<float, float>(args));
  SimtStream call{.p = p,
                  .raster = {.down = static_cast<int>(tiles_of(p.m(), tile.rows)),
                             .along = static_cast<int>(tiles_of(p.n(), tile.columns)),
                             .batch = static_cast<int>(p.c.shape[0]),
                             .slices = 1,
                             .band = raster_band(std::int64_t{tile.blocks} * context.info().sms,
                                                 tile.rows, tile.columns),
                             .whole = static_cast<int>(plan.tiles.whole)},
                  .parts = static_cast<int>(plan.tiles.parts),
                  .k_tiles = static_cast<int>(plan.tiles.k_tiles),
                  .partial = nullptr};
  if (plan.tiles.streamed() > 0) {
    call.partial = static_cast<float*>(
        context.workspace(static_cast<std::size_t>(plan.partial_elements()) * sizeof(float)));
  }
  plan.shape == 0 ? multiply<0>(context, call) : multiply<1>(context, call);
}

const Rung<Gemm> self{{.name = "simt_stream_k",
                       .after = "simt_top",
                       .backend = device_backend,
                       .supports = supports,
                       .tile = {.rows = shapes[0].rows, .columns = shapes[0].columns},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
