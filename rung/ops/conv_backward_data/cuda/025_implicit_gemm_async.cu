// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / implicit GEMM, asynchronous
//
// Idea     conv's rung of this name, applied to dy and to w with its axes of channels and filters
//          swapped. A first kernel packs the filters by terms, so w need not be contiguous along
//          the axis of summation.
// Changes  Against implicit_gemm: tiles of up to 128 channels x 256 positions by cp.async, four
//          ahead, 16 x 8 elements per thread.
// Cost     Per thread and tile of eight terms 1024 multiply-adds, 48 wide loads from shared memory,
//          8 or 16 copies of dy and one of w. The phases of a strided layer run in one launch,
//          those with the most taps first.
// Limits   f32, strides that give up to 9 phases, of up to 32 taps each.
// Source   conv / implicit_gemm_async.
#include <algorithm>
#include <cmath>
#include <span>

#include "rung/ops/conv/shared/cuda/async_tiles.hpp"
#include "rung/ops/conv_backward_data/op/layer.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int max_phases = 9;
/// Phases of a strided layer, sorted by descending number of terms; or a layer of stride 1.
template <int Max>
struct Phases {
  Gathered layer[Max];
  PackedFilters packed[Max];
};
static_assert(sizeof(Phases<max_phases>) <= 4096, "parameters of a kernel");

/// Computes the phases, one tile per block; blockIdx.z counts phases.
template <int Shape, int Max>
__global__ void __launch_bounds__(async_shapes[Shape].threads(), async_shapes[Shape].blocks)
    conv_backward_data_implicit_gemm_async(const __grid_constant__ Phases<Max> phases) {
  constexpr TileShape shape = async_shapes[Shape];
  using Tile = RegisterTile<shape>;
  using Ring = AsyncRing<shape>;
  constexpr int steps = async_steps;
  auto& ring = shared<Ring>();
  const Gathered& g = phases.layer[Max == 1 ? 0 : blockIdx.z];
  const PackedFilters& packed = phases.packed[Max == 1 ? 0 : blockIdx.z];
  if (std::int64_t{blockIdx.x} * shape.columns >= g.pixels()) return;
  const auto down = static_cast<unsigned>(ceil_div(g.m, shape.rows));
  const std::int64_t group = blockIdx.y / down;
  const auto first_filter = static_cast<int>(blockIdx.y % down) * shape.rows;
  const std::int64_t first_pixel = std::int64_t{blockIdx.x} * shape.columns;
  typename Tile::Sums sums = {};
  const auto tiles = static_cast<int>(packed.terms / steps);
  if (tiles > 0) {
    typename Ring::Filters filters({.data = packed.data + group * packed.of_group(),
                                    .outer_stride = 1,
                                    .outer_extent = packed.pitch,
                                    .depth_stride = packed.pitch},
                                   first_filter);
    // A thread copies the same positions of dy in all tiles: eight filters of a tap if the tap has
    // a result, else zeros.
    TappedPixel pixel[Ring::pixels];
#pragma unroll
    for (int i = 0; i < Ring::pixels; ++i) {
      pixel[i] = tapped_pixel(g, first_pixel + threadIdx.x + i * shape.threads());
    }
    const float* const x = static_cast<const float*>(g.x) + group * g.q * g.x_strides[1];
    TermWalk walk;
    const auto gather = [&](float* tile) {
      const int left = static_cast<int>(g.q) - walk.channel;
#pragma unroll
      for (int i = 0; i < Ring::pixels; ++i) {
        const bool inside = (pixel[i].inside >> walk.tap & 1) != 0;
        const float* const from = x + (pixel[i].base + walk.offset);
        float* const to = tile + i * shape.threads() + threadIdx.x;
        if (left >= steps) {
          copy_channels<shape.columns, true>(to, from, g.x_strides[1], inside, left);
        } else {
          copy_channels<shape.columns, false>(to, from, g.x_strides[1], inside, left);
        }
      }
      walk.advance(g);
    };

    // Tile copies are issued `stages - 1` tiles ahead. Each tile commits one group of copies, even
    // if empty, so that a wait for all but the last n groups always refers to the same tile.
    filters.copy(ring.filters[0]);
    gather(ring.pixels_of[0]);
    ptx::async_commit();
#pragma unroll
    for (int stage = 1; stage < shape.stages - 1; ++stage) {
      if (stage < tiles) {
        filters.copy(ring.filters[stage]);
        gather(ring.pixels_of[stage]);
      }
      ptx::async_commit();
    }
    // Fragments of a step are loaded while the previous step is multiplied.
    float a[2][shape.thread_rows];
    float b[2][shape.thread_columns];
    const int row = Tile::row(0);
    const int column = Tile::column(0);
    const auto load_step = [&](int stage, int step) {
      load_fragment<shape.thread_rows, shape.lanes_down() * Tile::group>(
          a[step % 2], &ring.filters[stage][step * Ring::Filters::pitch + row]);
      load_fragment<shape.thread_columns, shape.lanes_along() * Tile::group>(
          b[step % 2], &ring.pixels_of[stage][step * shape.columns + column]);
    };
    int reading = 0;
    int writing = shape.stages - 1;
    ptx::async_wait<shape.stages - 2>();
    __syncthreads();
    load_step(reading, 0);
    for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
      for (int step = 0; step < steps; ++step) {
        if (step == steps - 1) {
          // After this wait and barrier the next tile has arrived for all threads, and no thread
          // still reads this tile. The last iteration loads this tile once more, without effect.
          ptx::async_wait<shape.stages - 2>();
          __syncthreads();
          const int next = reading == shape.stages - 1 ? 0 : reading + 1;
          reading = tile + 1 < tiles ? next : reading;
        }
        load_step(reading, (step + 1) % steps);
        // The copies of a tile are issued in two steps: all at once they would stall the
        // multiply-adds.
        const bool more = tile + shape.stages - 1 < tiles;
        if (step == 0 && more) gather(ring.pixels_of[writing]);
        if (step == 1) {
          if (more) filters.copy(ring.filters[writing]);
          ptx::async_commit();
          writing = writing == shape.stages - 1 ? 0 : writing + 1;
        }
        multiply_add<true>(sums, a[step % 2], b[step % 2]);
      }
    }
  }
  store_filters<shape>(g, group, first_filter, first_pixel, sums);
}

template <int Max>
__global__ void __launch_bounds__(block_threads)
    conv_backward_data_implicit_gemm_async_pack(const __grid_constant__ Phases<Max> phases) {
  pack_filters(phases.layer[blockIdx.y], phases.packed[blockIdx.y]);
}

// --- on the host ---------------------------------------------------------------------------------

/// Sets the phases, sorted by descending number of terms; returns their number, at most max_phases.
std::int64_t phases_of(const ConvBackwardData::Args& args, Phases<max_phases>& phases) {
  const Gathered g = conv_layer::transposed(args);
  const std::int64_t count = conv_layer::phases_of(g);
  for (std::int64_t i = 0; i < count; ++i) {
    phases.layer[i] = conv_layer::phase_layer(g, i, sizeof(float));
  }
  std::stable_sort(phases.layer, phases.layer + count,
                   [](const Gathered& a, const Gathered& b) { return a.terms() > b.terms(); });
  return count;
}

Support supports(const ConvBackwardData::Args& args, const Context&) {
  const Gathered g = conv_layer::transposed(args);
  if (!is_divided(g)) return supports_async(g);
  if (!has_small_places(g)) {
    return unsupported("extents, paddings and taps of up to 2^28, channels of up to 2^31 - 1");
  }
  if (conv_layer::phases_of(g) > max_phases)
    return unsupported("strides that leave up to 9 phases");
  Phases<max_phases> phases;
  const std::int64_t count = phases_of(args, phases);
  for (std::int64_t i = 0; i < count; ++i) {
    const Support one = supports_async(phases.layer[i]);
    if (!one) return one;
  }
  return supported;
}

/// Returns the index of the tile shape with the least predicted time. If its blocks leave SMs idle,
/// returns the shape with the fewest elements per SM instead: rates are of GPUs that are full.
int shape_of(std::span<const Gathered> layers, const Cost& cost, const Context& context) {
  int best = plan_async<ConvBackwardData>(layers, cost, context);
  const double sms = context.info().sms;
  if (async_facts(layers, cost, best).blocks >= sms) return best;
  double least = 0;
  for (int i = 0; i < async_shape_count; ++i) {
    const double blocks = async_facts(layers, cost, i).blocks;
    const double elements =
        std::ceil(blocks / sms) * async_shapes[i].rows * async_shapes[i].columns;
    if (i > 0 && elements >= least) continue;
    least = elements;
    best = i;
  }
  return best;
}

Work work(const ConvBackwardData::Args& args, const Context& context) {
  Phases<max_phases> phases;
  const std::span layers(phases.layer, static_cast<std::size_t>(phases_of(args, phases)));
  const Cost cost = ConvBackwardData::cost(args);
  return async_facts(layers, cost, shape_of(layers, cost, context));
}

/// Launches `count` phases; the first has the most terms.
template <int Max>
void run_phases(const ConvBackwardData::Args& args, Context& context, Phases<Max>& phases,
                int count) {
  std::size_t bytes = 0;
  std::int64_t most = 0;  // maximum elements of a phase's packed filters
  std::int64_t pixels = 0;
  std::size_t first[Max];
  for (int i = 0; i < count; ++i) {
    const Gathered& g = phases.layer[i];
    phases.packed[i] = packed_shape(g);
    first[i] = bytes;
    bytes += packed_bytes(g);
    most = larger(most, g.groups * phases.packed[i].of_group());
    pixels = larger(pixels, g.pixels());
  }
  auto* const memory = static_cast<std::byte*>(context.workspace(bytes));
  for (int i = 0; i < count; ++i) {
    phases.packed[i].data = reinterpret_cast<float*>(memory + first[i]);
  }
  launch(context,
         {.grid = {smaller(ceil_div(most, block_threads), std::int64_t{0x7fffffff}), count},
          .block = block_threads},
         conv_backward_data_implicit_gemm_async_pack<Max>, phases);
  const int best = shape_of({phases.layer, static_cast<std::size_t>(count)},
                            ConvBackwardData::cost(args), context);
  with_async_shape(best, [&]<int Shape>() {
    LaunchShape shape = async_grid<Shape>(phases.layer[0]);
    shape.grid.x = ceil_div(pixels, async_shapes[Shape].columns);
    shape.grid.z = count;
    launch(context, shape, conv_backward_data_implicit_gemm_async<Shape, Max>, phases);
  });
}

void run(const ConvBackwardData::Args& args, Context& context) {
  const Gathered g = conv_layer::transposed(args);
  if (!is_divided(g)) {
    Phases<1> whole{.layer = {g}, .packed = {}};
    return run_phases(args, context, whole, 1);
  }
  Phases<max_phases> phases;
  const auto count = static_cast<int>(phases_of(args, phases));
  run_phases(args, context, phases, count);
}

const Rung<ConvBackwardData> self{{.name = "implicit_gemm_async",
                                   .step = 25,
                                   .after = "implicit_gemm",
                                   .backend = device_backend,
                                   .supports = supports,
                                   .work = work,
                                   .run = run}};

}  // namespace
}  // namespace rung
