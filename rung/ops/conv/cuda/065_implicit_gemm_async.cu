// SPDX-License-Identifier: Apache-2.0
// conv / implicit GEMM, asynchronous
//
// Idea     The product of implicit_gemm with the pipeline of gemm's simt_top: cp.async copies tiles
//          of eight terms to shared memory, four tiles ahead, and a thread computes up to 16 x 8
//          elements. A first kernel packs the filters by terms, so that they are copied 16 bytes at
//          a time; terms are ordered so that the eight of a tile are channels of one tap.
// Changes  Against implicit_gemm: 128 multiply-adds for 6 wide loads from shared memory instead of
//          64 for 4. Instead of a table of terms, a tap changes one offset, and one mask bit per
//          tap marks it as inside the image. Copies to shared memory bypass the registers.
// Cost     A tile of 128 filters x 256 pixels and eight terms: per thread 1024 multiply-adds, 48
//          wide loads from shared memory, 8 copies of x and one of w; with 64 filters 16 copies of
//          x. 83 % of the instructions that nvcc emits for the loop with 64 filters are
//          multiply-adds.
// Limits   f32, up to 32 taps. Channels are padded to a multiple of eight: with three channels five
//          eighths are zeros. With channels last, a warp's copies of x touch one cache line per
//          pixel.
// Source   gemm / simt_top; CUTLASS, "Implicit GEMM convolution": predicates as bits of a mask.
#include "rung/ops/conv/shared/cuda/async_tiles.hpp"
#include "rung/ops/conv/shared/layer.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

template <int Shape>
__global__ void __launch_bounds__(async_shapes[Shape].threads(), async_shapes[Shape].blocks)
    conv_implicit_gemm_async(const __grid_constant__ Gathered g, PackedFilters packed) {
  constexpr TileShape shape = async_shapes[Shape];
  using Tile = RegisterTile<shape>;
  using Ring = AsyncRing<shape>;
  constexpr int steps = async_steps;
  auto& ring = shared<Ring>();
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
    // A thread copies the same pixels of x in all tiles: eight channels of a tap if the tap is
    // inside the image, else zeros.
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

__global__ void __launch_bounds__(block_threads)
    conv_implicit_gemm_async_pack(Gathered g, PackedFilters packed) {
  pack_filters(g, packed);
}

Support supports(const Conv::Args& args, const Context&) {
  return supports_async(conv_layer::forward(args));
}

Work work(const Conv::Args& args, const Context& context) {
  const Gathered g = conv_layer::forward(args);
  const Cost cost = Conv::cost(args);
  return async_facts({&g, 1}, cost, plan_async<Conv>({&g, 1}, cost, context));
}

void run(const Conv::Args& args, Context& context) {
  const Gathered g = conv_layer::forward(args);
  const PackedFilters packed = make_packed(g, context);
  launch(context, pack_grid(g, packed), conv_implicit_gemm_async_pack, g, packed);
  with_async_shape(plan_async<Conv>({&g, 1}, Conv::cost(args), context), [&]<int Shape>() {
    launch(context, async_grid<Shape>(g), conv_implicit_gemm_async<Shape>, g, packed);
  });
}

const Rung<Conv> self{{.name = "implicit_gemm_async",
                       .step = 65,
                       .after = "implicit_gemm",
                       .backend = device_backend,
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
