// SPDX-License-Identifier: Apache-2.0
// conv / channels first on tensor cores
//
// Idea     The TMA unrolls only images with channels last. x and w are copied to that layout in the
//          workspace, implicit_gemm_tma computes the layer on the copies, and a last kernel copies
//          y to the caller's layout. Each copy is one pass over memory; tensor cores save far more.
// Changes  Against implicit_gemm: tensor cores. Against implicit_gemm_tma: x, w and y of any
//          strides.
// Cost     x, w and y are read and written once more. Tiles of 64 channels x 64 pixels are
//          transposed in shared memory, so that both loads and stores are coalesced. Three launches
//          more than implicit_gemm_tma.
// Limits   f16 and bf16, two dimensions at most; otherwise those of implicit_gemm_tma, whose
//          channels are padded to a multiple of 64 per tap: with 3 channels, 61 of 64 products are
//          zeros.
#include "rung/device/collectives.hpp"
#include "rung/device/launch.hpp"
#include "rung/ops/conv/shared/cuda/channels_last.hpp"
#include "rung/ops/conv/shared/cuda/im2col_tensor.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int threads = 256;

/// Tile of elements as [channel][pixel]; the pitch of 33 words avoids bank conflicts along either
/// axis.
template <class T>
struct LayoutTile {
  static_assert(sizeof(T) == 2);
  T of[layout_tile][layout_tile + 2];
};

/// Position of a block's tile: its image, first channel and first pixel.
struct TilePosition {
  std::int64_t image, channel, pixel;
  __device__ __forceinline__ TilePosition(std::int64_t channels, std::int64_t pixels) {
    image = blockIdx.x;
    pixel = take_axis(image, ceil_div(pixels, layout_tile)) * layout_tile;
    channel = take_axis(image, ceil_div(channels, layout_tile)) * layout_tile;
  }
};

/// Calls f(column) for the thread's two columns of a tile; adjacent threads have adjacent columns.
template <class F>
__device__ __forceinline__ void for_each_tile_column(F&& f) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  f(lane);
  f(lane + warp_size);
}
/// Calls f(row) for the thread's rows of a tile: each of the eight warps has every eighth row.
template <class F>
__device__ __forceinline__ void for_each_tile_row(F&& f) {
#pragma unroll 4
  for (int row = static_cast<int>(threadIdx.x) / warp_size; row < layout_tile;
       row += threads / warp_size) {
    f(row);
  }
}

/// Copies `from`, whose adjacent pixels are expected to be contiguous, to `to` with channels last,
/// `pitch` elements from pixel to pixel. One tile per block.
template <class T>
__global__ void __launch_bounds__(threads)
    conv_to_channels_last(View<const T, 5> from, T* to, std::int64_t pitch) {
  auto& tile = shared<LayoutTile<T>>().of;
  const std::int64_t channels = from.shape[1];
  const std::int64_t width = from.shape[4];
  const std::int64_t pixels = from.shape[3] * width;
  const TilePosition at(channels, pixels);
  for_each_tile_column([&](int pixel) {
    std::int64_t h = at.pixel + pixel;
    if (h >= pixels) return;
    const std::int64_t w = take_axis(h, width);
    const T* const first = &from(at.image, at.channel, 0, h, w);
    for_each_tile_row([&](int channel) {
      if (at.channel + channel >= channels) return;
      tile[channel][pixel] = first[channel * from.strides[1]];
    });
  });
  __syncthreads();
  for_each_tile_column([&](int channel) {
    if (at.channel + channel >= channels) return;
    for_each_tile_row([&](int pixel) {
      if (at.pixel + pixel >= pixels) return;
      to[(at.image * pixels + at.pixel + pixel) * pitch + at.channel + channel] =
          tile[channel][pixel];
    });
  });
}

/// Copies `from`, with channels last and `pitch` elements from pixel to pixel, to `to`, whose
/// adjacent pixels are expected to be contiguous. One tile per block.
template <class T>
__global__ void __launch_bounds__(threads)
    conv_from_channels_last(const T* from, std::int64_t pitch, View<T, 5> to) {
  auto& tile = shared<LayoutTile<T>>().of;
  const std::int64_t channels = to.shape[1];
  const std::int64_t width = to.shape[4];
  const std::int64_t pixels = to.shape[3] * width;
  const TilePosition at(channels, pixels);
  for_each_tile_column([&](int channel) {
    if (at.channel + channel >= channels) return;
    for_each_tile_row([&](int pixel) {
      if (at.pixel + pixel >= pixels) return;
      tile[channel][pixel] =
          from[(at.image * pixels + at.pixel + pixel) * pitch + at.channel + channel];
    });
  });
  __syncthreads();
  for_each_tile_column([&](int pixel) {
    std::int64_t h = at.pixel + pixel;
    if (h >= pixels) return;
    const std::int64_t w = take_axis(h, width);
    T* const first = &to(at.image, at.channel, 0, h, w);
    for_each_tile_row([&](int channel) {
      if (at.channel + channel >= channels) return;
      first[channel * to.strides[1]] = tile[channel][pixel];
    });
  });
}

template <class T>
LaunchShape shape_of(const ChannelsLast& copy) {
  return {.grid = copy.tiles(), .block = threads, .shared_bytes = sizeof(LayoutTile<T>)};
}

}  // namespace

void conv_cuda::copy_to_channels_last(const ConstTensorRef& from, void* to, Context& context) {
  const ChannelsLast copy(from);
  visit<f16, bf16>(from.dtype, [&]<class T>() {
    launch(context, shape_of<T>(copy), conv_to_channels_last<T>, from.view<const T, 5>(),
           static_cast<T*>(to), copy.pitch());
  });
}
void conv_cuda::copy_from_channels_last(const void* from, const TensorRef& to, Context& context) {
  const ChannelsLast copy(to);
  visit<f16, bf16>(to.dtype, [&]<class T>() {
    launch(context, shape_of<T>(copy), conv_from_channels_last<T>, static_cast<const T*>(from),
           copy.pitch(), to.view<T, 5>());
  });
}

namespace {

ChannelsLastCopies<3> copies_of(const Conv::Args& args) {
  return ChannelsLastCopies<3>({args.x, args.w, args.y});
}

/// Returns the layer on the copies, which begin at `memory`.
Conv::Args layer_on_copies(const Conv::Args& args, std::byte* memory) {
  const auto copies = copies_of(args);
  Conv::Args layer = args;
  layer.x = copies.at(0, memory);
  layer.w = copies.at(1, memory);
  layer.y = copies.at(2, memory);
  return layer;
}

Support supports(const Conv::Args& args, const Context& context) {
  if (!is_flat(args.geometry)) return unsupported("two dimensions at most");
  if (size_of(args.x.dtype) != 2) return unsupported("f16 and bf16");
  if (args.y.empty() || args.terms() == 0) return unsupported("there is nothing to multiply");
  if (supports_im2col_tma(args, context)) return unsupported("implicit_gemm_tma needs no copies");
  if (!copies_of(args).fit_grids()) return unsupported("tensors of fewer than 2^31 tiles");
  return supports_im2col_tma(layer_on_copies(args, unallocated_memory()), context);
}

Work work(const Conv::Args& args, const Context& context) {
  const Conv::Args layer = layer_on_copies(args, unallocated_memory());
  return copies_of(args).with_copies(im2col_tma_facts(layer, context));
}

void run(const Conv::Args& args, Context& context) {
  const auto copies = copies_of(args);
  const std::size_t partial =
      im2col_partial_bytes(layer_on_copies(args, unallocated_memory()), context);
  auto* const memory = static_cast<std::byte*>(context.workspace(copies.bytes() + partial));
  copies.load(0, memory, context);
  copies.load(1, memory, context);
  run_im2col_tma(layer_on_copies(args, memory), context, memory + copies.bytes());
  copy_from_channels_last(copies.at(2, memory).data, args.y, context);
}

const Rung<Conv> self{{.name = "channels_first",
                       .after = "implicit_gemm_tma",
                       .backend = device_backend,
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
