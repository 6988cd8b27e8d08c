// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / implicit GEMM by TMA
//
// Idea     For each tap dw is a product of two matrices with one row per pixel: dy transposed,
//          times x as the TMA unrolls it for this tap. Neither is transposed in memory: wgmma reads
//          operands whose k, the pixels, is not contiguous, in panels of 64 filters or channels by
//          64 pixels. The rest is gemm's persistent kernel: warp specialization, a ring of stages,
//          split-K.
// Changes  Against tensor_cores: no thread computes an address per 16 bytes; wgmma (64 x 256 x 16)
//          reads operands from shared memory.
// Cost     A tile of 128 filters x 256 channels of a tap reads 48 KiB from L2 per 64 pixels; each
//          tap reads dy and x again, from L2. The partial sums of slices are written to memory and
//          read back.
// Limits   f16 and bf16, channels last, two dimensions at most; channels and filters aligned to 16
//          bytes, dy's pixels with one common stride, strides up to 8. Filters fill tiles of 128,
//          channels of 64.
// Source   PTX ISA, "Tensor: im2col mode"; CUTLASS, "Convolution on Hopper": weight gradient.
#include "rung/device/collectives.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/tile/roles.hpp"
#include "rung/ops/conv/shared/cuda/im2col_tensor.hpp"
#include "rung/ops/conv/shared/cuda/tile_sums.hpp"
#include "rung/ops/conv_backward_filter/cuda/detail/im2col_gradient.hpp"
#include "rung/ops/gemm/shared/cuda/tensor_cost.hpp"

namespace rung {
namespace {

using namespace conv_cuda;
using gemm_cuda::TensorJob;
using gemm_cuda::TensorPlan;
using gemm_cuda::TensorTile;

constexpr int tile_filters = 64 * consumer_groups;
// Tiles of 320 and 192 channels leave less padding; their rates are interpolated.
constexpr TensorTile tiles[] = {{.rows = tile_filters, .columns = 320, .reach = 0.81},
                                {.rows = tile_filters, .columns = 256, .reach = 0.8},
                                {.rows = tile_filters, .columns = 192, .reach = 0.77},
                                {.rows = tile_filters, .columns = 128, .reach = 0.72},
                                {.rows = tile_filters, .columns = 64, .reach = 0.5}};

/// Shared memory of a block: up to 192 KiB of stages, and two boxes of dw per warp.
template <int Channels>
struct TileRing {
  using Stage = TileStage<tile_filters, Channels>;
  static constexpr int stage_count = (192 << 10) / static_cast<int>(sizeof(Stage));
  Stage stages[stage_count];
  StripBoxes strips[consumer_warps];
  StageRing<stage_count> ring;
};

/// Product whose rows are filters, columns channels, k pixels, and batch the taps.
template <class T>
struct GradientJob {
  TensorJob<T> gemm;
  int out_height, out_width;
  int step_height, step_width;
  int start_height, start_width;  // the first pixel's first tap
  int between_height, between_width;
  int taps_across;
};

template <class T, int Channels>
__global__ void __launch_bounds__(role_threads, 1)
    conv_backward_filter_implicit_gemm_tma(const __grid_constant__ GradientJob<T> gradient) {
  using TileA = WgmmaTile<T, tile_filters, false>;
  using TileB = WgmmaTile<T, Channels, false>;
  using Layout = TileRing<Channels>;
  const TensorJob<T>& job = gradient.gemm;
  auto& layout = shared<Layout>();
  start_dependent();  // and lets the grid that adds the slices be set up
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
      const int down = work.batch / gradient.taps_across;
      const int offsets[2] = {down * gradient.between_height,
                              (work.batch - down * gradient.taps_across) * gradient.between_width};
      const int tile_count = job.tiles_of_slice(work.slice);
      int pixel = work.slice * job.slice_tiles * TileA::depth;
      for (int tile = 0; tile < tile_count; ++tile, pixel += TileA::depth, at.advance()) {
        const int row = pixel / gradient.out_width;
        const int image = row / gradient.out_height;
        const int h = (row - image * gradient.out_height) * gradient.step_height;
        const int w = (pixel - row * gradient.out_width) * gradient.step_width;
        auto& stage = layout.stages[at.stage];
        auto& full = layout.ring.full[at.stage];
        layout.ring.await_empty(at);
        layout.ring.expect(at, TileA::bytes + TileB::bytes);
        TileA::load(stage.a, job.a, 0, work.row * tile_filters, pixel, full);
#pragma unroll
        for (int panel = 0; panel < TileB::boxes; ++panel) {
          const int channel = work.column * Channels + panel * TileB::panel_rows;
          ptx::im2col_load(stage.b + panel * TileB::panel_bytes, job.b,
                           {image, h + gradient.start_height, w + gradient.start_width, channel},
                           offsets, full);
        }
      }
    }
    return;
  }

  ptx::claim_registers<consumer_registers>();
  const int warp = static_cast<int>(threadIdx.x - producer_threads) / 32;
  int turn = 0;
  for (int number = first; number < works; number += blocks) {
    const TileWork work = job.raster.at(number);
    TileSums<Channels> sums;
    const int tile_count = job.tiles_of_slice(work.slice);
    int stage_before = 0;
    for (int tile = 0; tile < tile_count; ++tile, at.advance()) {
      layout.ring.await_full(at);
      const auto& stage = layout.stages[at.stage];
      sums.template multiply<TileA, TileB>(stage.a, warp / 4 * 64, stage.b, tile > 0);
      sums.template wait<1>();
      if (tile > 0 && lane_of_thread() == 0) layout.ring.release(stage_before);
      stage_before = at.stage;
    }
    sums.template wait<0>();
    if (lane_of_thread() == 0) layout.ring.release(stage_before);
    gemm_cuda::write_strip<Channels, T>(job, layout.strips[warp], turn,
                                        work.slice * job.raster.batch + work.batch,
                                        work.row * tile_filters + 16 * warp, work.column * Channels,
                                        [&](int i) { return sums(i); });
  }
  if (threadIdx.x % 32 == 0) StripBoxes::drain();
}

// --- on the host ---------------------------------------------------------------------------------

template <class T>
using PixelPanel = WgmmaTile<T, 64, false>;

/// Returns a group's gradient as a batch of products, one per tap. b has the strides of a dense x,
/// as placeholders: its data are never read as a matrix.
Gemm::Args product_of(const ConvBackwardFilter::Args& args, std::int64_t group) {
  const ConvGeometry& g = args.geometry;
  const std::int64_t pixels = g.images * g.results();
  const std::int64_t filters = g.group_filters();
  const std::int64_t channels = g.group_channels();
  const std::int64_t taps = g.taps();
  const auto element = static_cast<std::int64_t>(size_of(args.dw.dtype));
  const ConstTensorRef& dy = args.dy;
  const TensorRef& dw = args.dw;
  const std::int64_t along = dw.shape[4] > 1 ? dw.strides[4] : dw.strides[3];
  Gemm::Args made;
  made.a = {static_cast<const void*>(static_cast<const std::byte*>(dy.data) +
                                     group * filters * dy.strides[1] * element),
            dy.dtype, Extents{taps, filters, pixels}, Extents{0, 1, pixel_stride(dy)}, dy.device};
  made.b = {args.x.data, args.x.dtype, Extents{taps, pixels, channels}, Extents{0, g.channels, 1},
            args.x.device};
  made.c = {static_cast<void*>(static_cast<std::byte*>(dw.data) +
                               group * filters * dw.strides[0] * element),
            dw.dtype, Extents{taps, filters, channels}, Extents{along, dw.strides[0], 1},
            dw.device};
  return made;
}

/// Returns dy of a group: one matrix of pixels x filters.
template <class T>
View<const T, 3> results_of(const Gemm::Args& product) {
  return {static_cast<const T*>(product.a.data),
          {1, product.a.shape[2], product.a.shape[1]},
          {0, product.a.strides[2], 1}};
}

/// Returns the tile's width and the number of slices of the pixels. gemm's model counts dy and x
/// once per tap, but they are read from memory once: scaling the tiles' memory rate corrects for
/// this.
TensorPlan plan_of(const ConvBackwardFilter::Args& args, const Context& context) {
  const Gemm::Args product = product_of(args, 0);
  TensorTile mine[std::size(tiles)];
  const double read = Gemm::cost(product).bytes * static_cast<double>(args.geometry.groups);
  for (std::size_t i = 0; i < std::size(tiles); ++i) {
    mine[i] = tiles[i];
    mine[i].memory *= read / ConvBackwardFilter::cost(args).bytes;
  }
  return gemm_cuda::plan_tensor(product, context, mine);
}

template <class T, int Channels>
void launch_group(const ConvBackwardFilter::Args& args, Context& context, std::int64_t group,
                  int slices, const gemm_cuda::Finish<T>& finish, float* partial) {
  using Panel = PixelPanel<T>;
  const ConvGeometry& g = args.geometry;
  const ConvAxis& height = g.axis[1];
  const ConvAxis& width = g.axis[2];
  const auto k_tiles =
      static_cast<int>(ceil_div(g.images * g.results(), std::int64_t{Panel::depth}));
  const int slice_tiles = ceil_div(k_tiles, slices);
  GradientJob<T> gradient{
      .gemm = {.a = WgmmaTile<T, tile_filters, false>::map(results_of<T>(product_of(args, group))),
               .b = make_im2col_map(image_of<T>(args.x, g.group_channels(), group),
                                    window_of(g, Panel::depth, Panel::line_elements),
                                    Swizzle::bytes_128),
               .c = {},
               .finish = slices > 1 ? gemm_cuda::into_partial_sums(finish, partial) : finish,
               .raster = {.down = static_cast<int>(ceil_div(finish.p.m(), tile_filters)),
                          .along = static_cast<int>(ceil_div(finish.p.n(), Channels)),
                          .batch = static_cast<int>(g.taps()),
                          .slices = ceil_div(k_tiles, slice_tiles),
                          .band = raster_band(context.info().sms, tile_filters, Channels)},
               .a_moves = 0,
               .b_moves = 0,
               .k_tiles = k_tiles,
               .slice_tiles = slice_tiles,
               .boxes_of_c = false},
      .out_height = static_cast<int>(height.out),
      .out_width = static_cast<int>(width.out),
      .step_height = static_cast<int>(height.stride),
      .step_width = static_cast<int>(width.stride),
      .start_height = static_cast<int>(-height.padding),
      .start_width = static_cast<int>(-width.padding),
      .between_height = static_cast<int>(height.dilation),
      .between_width = static_cast<int>(width.dilation),
      .taps_across = static_cast<int>(width.kernel)};
  map_result(gradient.gemm);
  launch(context,
         {.grid = smaller<std::int64_t>(gradient.gemm.raster.total(), context.info().sms),
          .block = role_threads,
          .shared_bytes = sizeof(TileRing<Channels>),
          .dependent = can_depend(context)},
         conv_backward_filter_implicit_gemm_tma<T, Channels>, gradient);
}

}  // namespace

Support conv_cuda::supports_gradient_tma(const ConvBackwardFilter::Args& args,
                                         const Context& context) {
  if (context.info().compute_capability < 90) {
    return unsupported("wgmma and TMA need compute capability 9.0");
  }
  if (size_of(args.dw.dtype) != 2) return unsupported("f16 and bf16");
  const ConvGeometry& g = args.geometry;
  if (!is_flat(g)) return unsupported("two dimensions at most");
  if (args.dw.empty() || args.dy.empty() || args.x.empty()) {
    return unsupported("there is nothing to multiply");
  }
  if (g.groups > max_groups) return unsupported("up to 16 groups");
  const bool in_line = args.dy.shape[1] == 1 || args.dy.strides[1] == 1;
  if (!in_line || pixel_stride(args.dy) <= 0) {
    return unsupported("dy with contiguous channels, and pixels in one line");
  }
  const ConstTensorRef dw = args.dw;
  const bool rows = dw.shape[1] == 1 || dw.strides[1] == 1;
  if (!rows ||
      (dw.shape[3] > 1 && dw.shape[4] > 1 && dw.strides[3] != dw.shape[4] * dw.strides[4])) {
    return unsupported("dw with contiguous channels, and taps in one line");
  }
  if (g.images * g.results() > gemm_cuda::longest_mapped || g.filters > gemm_cuda::longest_mapped ||
      g.channels > gemm_cuda::longest_mapped ||
      static_cast<double>(ceil_div(g.group_filters(), tile_filters)) *
              static_cast<double>(ceil_div(g.group_channels(), 64)) *
              static_cast<double>(g.taps()) >
          0x1p24) {
    return unsupported("more than 2^30 pixels, or 2^24 tiles of dw");
  }
  for (const ConvAxis* axis : {&g.axis[1], &g.axis[2]}) {
    if ((axis->kernel - 1) * axis->dilation > 128)
      return unsupported("filters that span up to 128");
  }
  return visit<f16, bf16>(args.dw.dtype, [&]<class T>() {
    using Panel = PixelPanel<T>;
    for (const std::int64_t group : {std::int64_t{0}, g.groups - 1}) {
      const Support image = im2col_map_support(
          im2col_map_source(image_of<T>(args.x, g.group_channels(), group),
                            window_of(g, Panel::depth, Panel::line_elements), Swizzle::bytes_128));
      if (!image) return image;
      const Support results = tensor_map_support(results_of<T>(product_of(args, group)), Panel::box,
                                                 Swizzle::bytes_128);
      if (!results) return results;
    }
    const auto bytes = static_cast<std::int64_t>(sizeof(T));
    const bool apart = g.group_channels() * bytes % 16 == 0 && g.group_filters() * bytes % 16 == 0;
    return g.groups == 1 || apart ? supported : unsupported("groups aligned to 16 bytes");
  });
}

Work conv_cuda::gradient_tma_facts(const ConvBackwardFilter::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  const TensorPlan plan = plan_of(args, context);
  const TensorTile& tile = tiles[plan.tile];
  const std::int64_t depth = gemm_cuda::tile_depth(product_of(args, 0));
  return persistent_facts(ConvBackwardFilter::cost(args), tile,
                          g.taps() * ceil_div(g.group_filters(), std::int64_t{tile_filters}) *
                              ceil_div(g.group_channels(), std::int64_t{tile.columns}),
                          ceil_div(g.images * g.results(), depth), depth, plan.slices, g.groups,
                          args.dw.size(), context);
}

std::size_t conv_cuda::gradient_partial_bytes(const ConvBackwardFilter::Args& args,
                                              const Context& context) {
  const TensorPlan plan = plan_of(args, context);
  if (plan.slices == 1) return 0;
  return visit<f16, bf16>(args.dw.dtype, [&]<class T>() {
    return gemm_cuda::partial_bytes(gemm_cuda::finish_of<T>(product_of(args, 0)), plan.slices);
  });
}

void conv_cuda::run_gradient_tma(const ConvBackwardFilter::Args& args, Context& context,
                                 void* partial_sums) {
  const TensorPlan plan = plan_of(args, context);
  visit<f16, bf16>(args.dw.dtype, [&]<class T>() {
    for (std::int64_t group = 0; group < args.geometry.groups; ++group) {
      const auto finish = gemm_cuda::finish_of<T>(product_of(args, group));
      gemm_cuda::with_slices(context, finish, plan.slices, partial_sums, [&](float* partial) {
        const auto with_channels = [&]<int Channels>() {
          if (tiles[plan.tile].columns != Channels) return;
          launch_group<T, Channels>(args, context, group, plan.slices, finish, partial);
        };
        with_channels.template operator()<320>();
        with_channels.template operator()<256>();
        with_channels.template operator()<192>();
        with_channels.template operator()<128>();
        with_channels.template operator()<64>();
      });
    }
  });
}

namespace {

void run(const ConvBackwardFilter::Args& args, Context& context) {
  run_gradient_tma(args, context, nullptr);
}

const Rung<ConvBackwardFilter> self{{.name = "implicit_gemm_tma",
                                     .step = 200,
                                     .after = "tensor_cores",
                                     .backend = device_backend,
                                     .supports = supports_gradient_tma,
                                     .work = gradient_tma_facts,
                                     .run = run}};

}  // namespace
}  // namespace rung
