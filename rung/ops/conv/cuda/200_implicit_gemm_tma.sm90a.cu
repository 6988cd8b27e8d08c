// SPDX-License-Identifier: Apache-2.0
// conv / implicit GEMM by TMA
//
// Idea     The TMA unrolls the image: in im2col mode it iterates over 128 pixels through rows and
//          images, adds a tap's offset to each, fills positions outside the image with zeros, and
//          stores 64 channels of each pixel to shared memory in the layout that wgmma reads. The
//          product is gemm's persistent kernel: warp specialization, a ring of stages, one block
//          per SM that loops over tiles, split-K if there are few tiles, bias and activation in the
//          epilogue.
// Changes  Against tensor_cores: one thread computes one address per 16 KiB, instead of every
//          thread one per 16 bytes; wgmma of 64 x 256 x 16, with operands in shared memory.
// Cost     A tile of 128 pixels x 256 filters reads 48 KiB from L2 per 64 terms, for 4.2 million
//          operations. Each tap reads its pixels again: x is read from memory once, from L2 kh kw
//          times.
// Limits   f16 and bf16, channels last, two dimensions at most; channels and filters of a group
//          aligned to 16 bytes, strides up to 8, paddings up to 127, filters that span up to 128.
//          Channels are padded to a multiple of 64: with 8 channels seven eighths are zeros.
// Source   PTX ISA, "Tensor: im2col mode"; CUTLASS, "Convolution on Hopper".
#include "rung/device/collectives.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/ptx/im2col.hpp"
#include "rung/device/tile/roles.hpp"
#include "rung/ops/conv/shared/cuda/im2col_tensor.hpp"
#include "rung/ops/conv/shared/cuda/tile_sums.hpp"
#include "rung/ops/gemm/shared/cuda/tensor_cost.hpp"

namespace rung {
namespace {

using namespace conv_cuda;
using gemm_cuda::TensorJob;
using gemm_cuda::TensorPlan;
using gemm_cuda::TensorTile;

// gemm's tiles; their rates are measured with taps that read the same pixels again. Tiles of 320
// and 192 filters leave less padding at other multiples of 64; their rates are interpolated.
constexpr int tile_pixels = 64 * consumer_groups;
constexpr TensorTile tiles[] = {{.rows = tile_pixels, .columns = 320, .reach = 0.83},
                                {.rows = tile_pixels, .columns = 256, .reach = 0.82},
                                {.rows = tile_pixels, .columns = 192, .reach = 0.79},
                                {.rows = tile_pixels, .columns = 128, .reach = 0.74},
                                {.rows = tile_pixels, .columns = 64, .reach = 0.55}};

template <class T>
using PixelTile = WgmmaTile<T, tile_pixels, true>;
/// A TMA box has at most 256 lines: tiles of 320 filters are loaded in two parts.
constexpr int filter_parts(int filters) { return filters > 256 ? 2 : 1; }
template <class T, int Filters>
using FilterTile = WgmmaTile<T, Filters, true, filter_parts(Filters)>;

/// Shared memory of a block: up to 192 KiB of stages, and two boxes of y per warp.
template <int Filters>
struct TileRing {
  using Stage = TileStage<tile_pixels, Filters>;
  static constexpr int stage_count = (192 << 10) / static_cast<int>(sizeof(Stage));
  Stage stages[stage_count];
  StripBoxes strips[consumer_warps];
  StageRing<stage_count> ring;
};

/// Product whose A is x, unrolled by the TMA, and whose k iterates over taps and then channels.
template <class T>
struct ConvJob {
  TensorJob<T> gemm;
  int out_height, out_width;
  int step_height, step_width;
  int start_height, start_width;  // position of the first pixel's first tap
  int between_height, between_width;
  int taps_across;
  int channel_tiles;  // per tap
  // True if y's pixels have no common stride: warps then store them without TMA.
  bool scattered;
  bool in_eights;  // each group of eight filters of a pixel is 16 aligned bytes
  std::int64_t y_image, y_row, y_pixel;
};

/// Stores a warp's 16 pixels by Filters sums, without reading y and without an epilogue.
template <int Filters, class T, class Sums>
__device__ __forceinline__ void scatter_strip(const ConvJob<T>& conv, StripStage& box,
                                              int first_pixel, int first_filter, const Sums& sums) {
  constexpr int width = 64;       // filters per line of a box, 128 bytes
  constexpr int lines_apart = 4;  // eight lanes store one line
  constexpr int lines = StripStage::rows / lines_apart;
  const auto& p = conv.gemm.finish.p;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int chunk = lane % 8;
  T* line[lines];
#pragma unroll
  for (int i = 0; i < lines; ++i) {
    const int pixel = first_pixel + lane / 8 + i * lines_apart;
    const int row = pixel / conv.out_width;
    const int image = row / conv.out_height;
    line[i] = pixel < p.m() ? reinterpret_cast<T*>(p.c.data) + image * conv.y_image +
                                  (row - image * conv.out_height) * conv.y_row +
                                  (pixel - row * conv.out_width) * conv.y_pixel
                            : nullptr;
  }
#pragma unroll
  for (int piece = 0; piece < Filters / width; ++piece) {
    const std::int64_t filter = first_filter + piece * width + chunk * 8;
    __syncwarp();  // the previous piece has been read
    fill_box<T>(box, 1.0F, [&](int i) { return sums(piece * (width / 2) + i); });
    __syncwarp();
#pragma unroll
    for (int i = 0; i < lines; ++i) {
      const int row = lane / 8 + i * lines_apart;
      const auto eight = load_raw<8>(reinterpret_cast<const T*>(
          box.bytes + swizzled<Swizzle::bytes_128>(row * 128 + chunk * 16)));
      if (line[i] == nullptr || filter >= p.n()) continue;
      if (conv.in_eights && filter + 8 <= p.n()) {
        store_raw(line[i] + filter, eight);
        continue;
      }
      const auto* const each = reinterpret_cast<const T*>(&eight);
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        if (filter + k < p.n()) line[i][filter + k] = each[k];
      }
    }
  }
}

template <class T, int Filters>
__global__ void __launch_bounds__(role_threads, 1)
    conv_implicit_gemm_tma(const __grid_constant__ ConvJob<T> conv) {
  using TileA = PixelTile<T>;
  using TileB = FilterTile<T, Filters>;
  using Layout = TileRing<Filters>;
  const TensorJob<T>& job = conv.gemm;
  auto& layout = shared<Layout>();
  start_dependent();  // conv_backward_data's preceding grid writes the filters
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
      // The tile's first pixel in TMA coordinates: the position of its first tap.
      const int pixel = work.row * tile_pixels;
      const int row = pixel / conv.out_width;
      const int image = row / conv.out_height;
      const int h = (row - image * conv.out_height) * conv.step_height + conv.start_height;
      const int w = (pixel - row * conv.out_width) * conv.step_width + conv.start_width;
      const int tile_count = job.tiles_of_slice(work.slice);
      int tap = work.slice * job.slice_tiles / conv.channel_tiles;
      int channel = work.slice * job.slice_tiles - tap * conv.channel_tiles;
      int down = tap / conv.taps_across;
      int across = tap - down * conv.taps_across;
      for (int tile = 0; tile < tile_count; ++tile, at.advance()) {
        auto& stage = layout.stages[at.stage];
        auto& full = layout.ring.full[at.stage];
        layout.ring.await_empty(at);
        layout.ring.expect(at, TileA::bytes + TileB::bytes);
        ptx::im2col_load(stage.a, job.a, {image, h, w, channel * TileA::depth},
                         {down * conv.between_height, across * conv.between_width}, full);
#pragma unroll
        for (int filter = 0; filter < Filters; filter += TileB::part_lines) {
          TileB::load(stage.b + filter * TileB::line, job.b, tap, work.column * Filters + filter,
                      channel * TileB::depth, full);
        }
        if (++channel < conv.channel_tiles) continue;
        channel = 0;
        ++tap;
        if (++across < conv.taps_across) continue;
        across = 0;
        ++down;
      }
    }
    return;
  }

  ptx::claim_registers<consumer_registers>();
  const int warp = static_cast<int>(threadIdx.x - producer_threads) / 32;
  int turn = 0;
  for (int number = first; number < works; number += blocks) {
    const TileWork work = job.raster.at(number);
    TileSums<Filters> sums;
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
    if (conv.scattered) {
      scatter_strip<Filters>(conv, layout.strips[warp].box[0], work.row * tile_pixels + 16 * warp,
                             work.column * Filters, [&](int i) { return sums(i); });
      continue;
    }
    gemm_cuda::write_strip<Filters, T>(job, layout.strips[warp], turn, work.slice,
                                       work.row * tile_pixels + 16 * warp, work.column * Filters,
                                       [&](int i) { return sums(i); });
  }
  if (threadIdx.x % 32 == 0) StripBoxes::drain();
}

// --- on the host ---------------------------------------------------------------------------------

/// Returns a group's layer as a product: pixels x terms by terms x filters. A has the
/// strides of a dense x, as placeholders: its data are never read as a matrix.
Gemm::Args product_of(const Conv::Args& args, std::int64_t group) {
  const ConvGeometry& g = args.geometry;
  const std::int64_t pixels = g.images * g.results();
  const std::int64_t filters = g.group_filters();
  const std::int64_t first = group * filters;
  const auto element = static_cast<std::int64_t>(size_of(args.y.dtype));
  Gemm::Args made;
  made.a = {args.x.data, args.x.dtype, Extents{1, pixels, args.terms()}, Extents{0, g.channels, 1},
            args.x.device};
  made.b = {args.w.data, args.w.dtype, Extents{1, args.terms(), filters},
            Extents{0, 1, g.group_channels()}, args.w.device};
  made.c = {static_cast<void*>(static_cast<std::byte*>(args.y.data) + first * element),
            args.y.dtype, Extents{1, pixels, filters}, Extents{0, pixel_stride(args.y), 1},
            args.y.device};
  if (args.has_bias()) {
    const ConstTensorRef& bias = args.options.bias;
    made.bias = {static_cast<const void*>(static_cast<const std::byte*>(bias.data) +
                                          first * bias.strides[0] * element),
                 bias.dtype, Extents{1, pixels, filters}, Extents{0, 0, bias.strides[0]},
                 bias.device};
  }
  made.activation = args.options.activation;
  return made;
}

/// Returns the filters of a group: taps x filters x channels.
template <class T>
View<const T, 3> filters_of(const Conv::Args& args, std::int64_t group) {
  const ConstTensorRef& w = args.w;
  const std::int64_t filters = args.geometry.group_filters();
  const std::int64_t along = w.shape[4] > 1 ? w.strides[4] : w.strides[3];
  return {static_cast<const T*>(w.data) + group * filters * w.strides[0],
          {w.shape[3] * w.shape[4], filters, w.shape[1]},
          {along, w.strides[0], w.strides[1]}};
}

/// Returns the tile's width and the number of slices of k. gemm's model assumes that A is stored in
/// memory; scaling the tiles' memory rate accounts for the smaller x.
TensorPlan plan_of(const Conv::Args& args, const Context& context) {
  const Gemm::Args product = product_of(args, 0);
  TensorTile mine[std::size(tiles)];
  const double read = Gemm::cost(product).bytes * static_cast<double>(args.geometry.groups);
  for (std::size_t i = 0; i < std::size(tiles); ++i) {
    mine[i] = tiles[i];
    mine[i].memory *= read / Conv::cost(args).bytes;
  }
  // k is padded to whole tiles per tap.
  Gemm::Args padded = product;
  const std::int64_t depth = gemm_cuda::tile_depth(product);
  const std::int64_t terms = round_up(args.geometry.group_channels(), depth) * args.geometry.taps();
  padded.a.shape[2] = padded.b.shape[1] = terms;
  return gemm_cuda::plan_tensor(padded, context, mine);
}

/// Returns whether y's pixels have no common stride. Such a layer has no bias, no activation and
/// one slice.
bool is_scattered(const Conv::Args& args) { return pixel_stride(args.y) <= 0; }

/// Returns whether each group of eight filters of a pixel of y is 16 aligned bytes.
bool writes_eights(const TensorRef& y, std::int64_t filters) {
  bool all = filters % 8 == 0 && reinterpret_cast<std::uintptr_t>(y.data) % 16 == 0;
  for (const int axis : {0, 3, 4}) all = all && (y.shape[axis] == 1 || y.strides[axis] % 8 == 0);
  return all;
}

template <class T, int Filters>
void launch_group(const Conv::Args& args, Context& context, std::int64_t group, int slices,
                  const gemm_cuda::Finish<T>& finish, float* partial) {
  const ConvGeometry& g = args.geometry;
  const ConvAxis& height = g.axis[1];
  const ConvAxis& width = g.axis[2];
  const auto channel_tiles =
      static_cast<int>(ceil_div(g.group_channels(), std::int64_t{PixelTile<T>::depth}));
  const auto k_tiles = static_cast<int>(channel_tiles * g.taps());
  const int slice_tiles = ceil_div(k_tiles, slices);
  ConvJob<T> conv{
      .gemm = {.a = make_im2col_map(image_of<T>(args.x, g.group_channels(), group),
                                    window_of(g, tile_pixels, PixelTile<T>::depth),
                                    Swizzle::bytes_128),
               .b = FilterTile<T, Filters>::map(filters_of<T>(args, group)),
               .c = {},
               .finish = slices > 1 ? gemm_cuda::into_partial_sums(finish, partial) : finish,
               .raster = {.down = static_cast<int>(ceil_div(finish.p.m(), tile_pixels)),
                          .along = static_cast<int>(ceil_div(finish.p.n(), Filters)),
                          .batch = 1,
                          .slices = ceil_div(k_tiles, slice_tiles),
                          .band = raster_band(context.info().sms, tile_pixels, Filters)},
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
      .taps_across = static_cast<int>(width.kernel),
      .channel_tiles = channel_tiles,
      .scattered = is_scattered(args),
      .in_eights = writes_eights(args.y, g.group_filters()),
      .y_image = args.y.strides[0],
      .y_row = args.y.strides[3],
      .y_pixel = args.y.strides[4]};
  if (!conv.scattered) map_result(conv.gemm);
  launch(context,
         {.grid = smaller<std::int64_t>(conv.gemm.raster.total(), context.info().sms),
          .block = role_threads,
          .shared_bytes = sizeof(TileRing<Filters>),
          .dependent = can_depend(context)},
         conv_implicit_gemm_tma<T, Filters>, conv);
}

}  // namespace

Support conv_cuda::supports_im2col_tma(const Conv::Args& args, const Context& context) {
  const bool in_line = args.y.shape[1] == 1 || args.y.strides[1] == 1;
  if (!args.y.empty() && (!in_line || is_scattered(args))) {
    return unsupported("y with contiguous channels, and pixels in one line");
  }
  return supports_scattered_tma(args, context);
}

Support conv_cuda::supports_scattered_tma(const Conv::Args& args, const Context& context) {
  if (context.info().compute_capability < 90) {
    return unsupported("wgmma and TMA need compute capability 9.0");
  }
  if (size_of(args.x.dtype) != 2) return unsupported("f16 and bf16");
  const ConvGeometry& g = args.geometry;
  if (!is_flat(g)) return unsupported("two dimensions at most");
  if (args.y.empty() || args.terms() == 0) return unsupported("there is nothing to multiply");
  if (g.groups > max_groups) return unsupported("up to 16 groups");
  const std::int64_t pixels = g.images * g.results();
  if (pixels > gemm_cuda::longest_mapped || g.filters > gemm_cuda::longest_mapped ||
      ceil_div(pixels, tile_pixels) * ceil_div(g.group_filters(), 64) > (1 << 24)) {
    return unsupported("more than 2^24 tiles of y");
  }
  if (args.terms() > gemm_cuda::longest_mapped) return unsupported("more than 2^30 terms");
  const ConstTensorRef& w = args.w;
  if (w.shape[3] > 1 && w.shape[4] > 1 && w.strides[3] != w.shape[4] * w.strides[4]) {
    return unsupported("filters whose taps are in one line");
  }
  for (const ConvAxis* axis : {&g.axis[1], &g.axis[2]}) {
    if ((axis->kernel - 1) * axis->dilation > 128)
      return unsupported("filters that span up to 128");
  }
  return visit<f16, bf16>(args.x.dtype, [&]<class T>() {
    constexpr int box[3] = {1, 64, PixelTile<T>::depth};
    for (const std::int64_t group : {std::int64_t{0}, g.groups - 1}) {
      const Support image = im2col_map_support(
          im2col_map_source(image_of<T>(args.x, g.group_channels(), group),
                            window_of(g, tile_pixels, PixelTile<T>::depth), Swizzle::bytes_128));
      if (!image) return image;
      const Support filters =
          tensor_map_support(filters_of<T>(args, group), box, Swizzle::bytes_128);
      if (!filters) return filters;
    }
    // Groups are equidistant: it suffices to check the distance between two.
    const std::int64_t apart = g.group_channels() * static_cast<std::int64_t>(sizeof(T));
    return g.groups == 1 || apart % 16 == 0 ? supported : unsupported("groups aligned to 16 bytes");
  });
}

Work conv_cuda::im2col_tma_facts(const Conv::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  const TensorPlan plan = plan_of(args, context);
  const gemm_cuda::TensorTile& tile = tiles[plan.tile];
  const std::int64_t depth = gemm_cuda::tile_depth(product_of(args, 0));
  return persistent_facts(Conv::cost(args), tile,
                          ceil_div(g.images * g.results(), tile_pixels) *
                              ceil_div(g.group_filters(), std::int64_t{tile.columns}),
                          ceil_div(g.group_channels(), depth) * g.taps(), depth,
                          is_scattered(args) ? 1 : plan.slices, g.groups, args.y.size(), context);
}

std::size_t conv_cuda::im2col_partial_bytes(const Conv::Args& args, const Context& context) {
  const TensorPlan plan = plan_of(args, context);
  if (plan.slices == 1) return 0;
  return visit<f16, bf16>(args.x.dtype, [&]<class T>() {
    return gemm_cuda::partial_bytes(gemm_cuda::finish_of<T>(product_of(args, 0)), plan.slices);
  });
}

void conv_cuda::run_im2col_tma(const Conv::Args& args, Context& context, void* partial_sums) {
  const TensorPlan plan = plan_of(args, context);
  visit<f16, bf16>(args.x.dtype, [&]<class T>() {
    for (std::int64_t group = 0; group < args.geometry.groups; ++group) {
      const auto finish = gemm_cuda::finish_of<T>(product_of(args, group));
      const int slices = is_scattered(args) ? 1 : plan.slices;
      gemm_cuda::with_slices(context, finish, slices, partial_sums, [&](float* partial) {
        const auto with_filters = [&]<int Filters>() {
          if (tiles[plan.tile].columns != Filters) return;
          launch_group<T, Filters>(args, context, group, slices, finish, partial);
        };
        with_filters.template operator()<320>();
        with_filters.template operator()<256>();
        with_filters.template operator()<192>();
        with_filters.template operator()<128>();
        with_filters.template operator()<64>();
      });
    }
  });
}

namespace {

void run(const Conv::Args& args, Context& context) { run_im2col_tma(args, context, nullptr); }

const Rung<Conv> self{{.name = "implicit_gemm_tma",
                       .step = 200,
                       .after = "tensor_cores",
                       .backend = device_backend,
                       .supports = supports_im2col_tma,
                       .work = im2col_tma_facts,
                       .run = run}};

}  // namespace
}  // namespace rung
