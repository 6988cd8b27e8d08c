// SPDX-License-Identifier: Apache-2.0
// gemm / split k
//
// Idea     if C has fewer tiles than the device has SMs, k is split into slices that are computed
//          in parallel; a second kernel combines them in a fixed order.
// Changes  against warp_tile: a small C with a long k fills the device. With enough tiles, or a
//          short k, there is one slice, and the sums go straight to C.
// Cost     the partial sums are written and read once: 8 bytes per element of C and slice.
// Limits   a second launch, and at most 32 MiB of partial sums.
// Source   CUTLASS, "Parallelized reductions: split K".
#include <array>

#include "rung/device/tile/epilogue.hpp"
#include "rung/ops/gemm/cuda/detail/async.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr std::array<TileShape, 2> shapes{{{.rows = 128,
                                            .columns = 128,
                                            .steps = 8,
                                            .warp_rows = 64,
                                            .warp_columns = 32,
                                            .thread_rows = 8,
                                            .thread_columns = 8,
                                            .stages = 4,
                                            .blocks = 2},
                                           {.rows = 64,
                                            .columns = 64,
                                            .steps = 16,
                                            .warp_rows = 32,
                                            .warp_columns = 64,
                                            .thread_rows = 8,
                                            .thread_columns = 8,
                                            .stages = 4,
                                            .blocks = 6}}};
constexpr std::array<double, 2> fractions{0.7, 0.66};  // of the peak, for a large C
constexpr std::int64_t workspace_limit = std::int64_t{32} << 20;
constexpr int max_slices = 128;
constexpr int shortest_slice = 64;  // steps of k; below, filling the pipeline dominates
constexpr int sum_threads = 256;

/// Computes C or partial sums. If slice_depth is not 0, the batch axis of p counts slices: slice z
/// covers the steps from z * slice_depth on, of `depth` in all.
template <int Shape, TileAccess access_a, TileAccess access_b>
__global__ void __launch_bounds__(shapes[Shape].threads(), shapes[Shape].blocks)
    gemm_split_k(Product32 p, std::int64_t slice_depth, std::int64_t depth) {
  constexpr TileShape shape = shapes[Shape];
  using Tile = Pipeline<shape, access_a, access_b>;
  const int slice = static_cast<int>(blockIdx.z);
  const int first_row = static_cast<int>(blockIdx.y) * shape.rows;
  const int first_column = static_cast<int>(blockIdx.x) * shape.columns;
  // Only the last slice can be shorter; a plain batch (slice_depth 0) has no shorter one.
  const std::int64_t left = depth - slice * slice_depth;
  typename Tile::Sums sums = {};
  Tile::accumulate(operand_a(p, slice), first_row, operand_b(p, slice), first_column,
                   left < p.k() ? left : p.k(), sums);
  finish_tile<Tile::group>(
      p, slice, sums, [&](int i) { return first_row + Tile::row(i); },
      [&](int j) { return first_column + Tile::column(j); });
}

/// Combines partial sums [slice][row][column] into C, one thread per element.
__global__ void __launch_bounds__(sum_threads)
    gemm_split_k_sum(Product32 p, const float* partial, int slices) {
  const int elements = static_cast<int>(p.m() * p.n());
  const int at = static_cast<int>(blockIdx.x) * sum_threads + static_cast<int>(threadIdx.x);
  if (at >= elements) return;
  float sum = 0;
  for (int slice = 0; slice < slices; ++slice) sum += partial[std::int64_t{slice} * elements + at];
  finish(p, 0, at / p.n(), at % p.n(), sum);
}

struct SplitKPlan {
  int shape = 0;
  int slices = 1;
  double seconds = 0;
};
SplitKPlan plan_split_k(const Gemm::Args& args, const Context& context) {
  const std::int64_t elements = args.m() * args.n();
  SplitKPlan best;
  for (int shape = 0; shape < static_cast<int>(shapes.size()); ++shape) {
    const TileShape& tile = shapes[shape];
    for (int slices = 1; slices <= max_slices; slices *= 2) {
      if (slices > 1 && (args.alpha == 0 || args.k() / slices < shortest_slice ||
                         elements > workspace_limit / 4 / slices)) {
        break;
      }
      double seconds = tile_seconds(tile, fractions[shape], args, context, slices);
      if (slices > 1) {  // two launches per matrix of the batch
        const double partial_bytes = 8.0 * slices * static_cast<double>(elements);
        seconds =
            static_cast<double>(args.batch()) *
            (seconds + launch_seconds + partial_bytes / nominal_rates(context).bytes_per_second);
      }
      if (best.seconds == 0 || seconds < best.seconds) best = {shape, slices, seconds};
    }
  }
  return best;
}

template <int Shape>
void multiply(Context& context, const Product32& p, std::int64_t slice_depth, std::int64_t depth) {
  with_access(p, [&]<TileAccess access_a, TileAccess access_b>() {
    launch_tiles(context, tiling_of<shapes[Shape], access_a, access_b>,
                 gemm_split_k<Shape, access_a, access_b>, p, slice_depth, depth);
  });
}

void multiply(Context& context, int shape, const Product32& p, std::int64_t slice_depth,
              std::int64_t depth) {
  shape == 0 ? multiply<0>(context, p, slice_depth, depth)
             : multiply<1>(context, p, slice_depth, depth);
}

/// Returns the product as a batch of its slices along k, whose C is the workspace.
Product32 slices_of(const Product32& p, float* partial, std::int64_t slice_depth) {
  Product32 slices = p;
  const std::int64_t count = tiles_of(p.k(), slice_depth);
  slices.a.shape[0] = slices.b.shape[0] = slices.c.shape[0] = count;
  slices.a.shape[2] = slices.b.shape[1] = slice_depth;
  slices.a.strides[0] = slice_depth * p.a.strides[2];
  slices.b.strides[0] = slice_depth * p.b.strides[1];
  slices.c.data = partial;
  slices.c.strides[0] = p.m() * p.n();
  slices.c.strides[1] = p.n();
  slices.c.strides[2] = 1;
  slices.bias.data = nullptr;
  slices.residual.data = nullptr;
  slices.alpha = 1;
  slices.beta = 0;
  slices.activation = Activation::none;
  return slices;
}

Work work(const Gemm::Args& args, const Context& context) {
  const SplitKPlan chosen = plan_split_k(args, context);
  const std::int64_t k = std::max<std::int64_t>(args.k(), 1);
  const std::int64_t steps = shapes[chosen.shape].steps;
  const TileFacts facts = facts_of(
      shapes[chosen.shape], tiles_of(k, tiles_of(tiles_of(k, chosen.slices), steps) * steps));
  Work work = tile_work(args, context, facts);
  // Two launches per matrix of the batch.
  if (chosen.slices > 1) {
    work.launches = 2 * args.batch();
    work.blocks = work.blocks / static_cast<double>(args.batch());
    work.rounds = work.rounds * static_cast<double>(args.batch());
    work.steps = work.steps * static_cast<double>(args.batch());
  }
  work.path = copies_path(args);
  return work;
}

void run(const Gemm::Args& args, Context& context) {
  const Product32 all = with_contiguous_c(product<float, float>(args));
  const SplitKPlan chosen = plan_split_k(args, context);
  if (chosen.slices == 1) return multiply(context, chosen.shape, all, 0, all.k());
  const std::int64_t steps = shapes[chosen.shape].steps;
  const std::int64_t slice_depth = tiles_of(tiles_of(all.k(), chosen.slices), steps) * steps;
  const std::int64_t slices = tiles_of(all.k(), slice_depth);
  const std::int64_t elements = all.m() * all.n();
  auto* partial = static_cast<float*>(
      context.workspace(static_cast<std::size_t>(slices * elements) * sizeof(float)));
  // Matrices use the same workspace in turn: the stream serializes them.
  for (std::int64_t batch = 0; batch < all.c.shape[0]; ++batch) {
    const Product32 p = slice(all, 0, batch, 1);
    multiply(context, chosen.shape, slices_of(p, partial, slice_depth), slice_depth, p.k());
    launch(context, {.grid = tiles_of(elements, sum_threads), .block = sum_threads},
           gemm_split_k_sum, p, partial, static_cast<int>(slices));
  }
}

const Rung<Gemm> self{{.name = "split_k",
                       .after = "warp_tile",
                       .backend = device_backend,
                       .supports = require_short_strides,
                       .tile = {.rows = shapes[0].rows, .columns = shapes[0].columns},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
