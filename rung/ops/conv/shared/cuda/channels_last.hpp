// SPDX-License-Identifier: Apache-2.0
// Copies of flat tensors (N x C x 1 x H x W, any strides) with channels last, for layers that the
// TMA unrolls: pixels are `pitch` elements apart, C rounded up to 16 bytes.
//
//   const ChannelsLast x_copy(args.x);                   // memory: x_copy.bytes() bytes
//   launch(context, x_copy.launch_shape<T>(), kernel, args.x.view<const T, 5>(), memory,
//          x_copy.pitch());                               // copy_to_last() for every block
//   layer.x = x_copy.tensor(args.x, memory);
//
// Cost     one load and one store of every element; shared memory holds tiles of 64 channels x 64
//          pixels, so that loads run along pixels and stores along channels.
#pragma once

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/device/collectives.hpp"
#include "rung/device/launch.hpp"
#include "rung/device/take_axis.hpp"
#include "rung/ops/conv/shared/cuda/layer.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

inline constexpr int layout_tile = 64;  // channels, and pixels
inline constexpr int layout_threads = 256;

/// Tile of elements as [channel][pixel]; the pitch of 33 words avoids bank conflicts along either.
template <class T>
struct LayoutTile {
  static_assert(sizeof(T) == 2);
  T of[layout_tile][layout_tile + 2];
};

/// Position of a block's tile: its image, first channel and first pixel.
struct LayoutPlace {
  std::int64_t image, channel, pixel;
  __device__ __forceinline__ LayoutPlace(std::int64_t channels, std::int64_t pixels) {
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
/// Calls f(row) for the thread's rows of a tile, of which a block's warps have every eighth.
template <class F>
__device__ __forceinline__ void for_each_tile_row(F&& f) {
#pragma unroll 4
  for (int row = static_cast<int>(threadIdx.x) / warp_size; row < layout_tile;
       row += layout_threads / warp_size) {
    f(row);
  }
}

/// Copies one tile of `from` to `to`, dense with channels last.
template <class T>
__device__ __forceinline__ void copy_to_last(const View<const T, 5>& from, T* to,
                                             std::int64_t pitch) {
  auto& tile = shared<LayoutTile<T>>().of;
  const std::int64_t channels = from.shape[1];
  const std::int64_t width = from.shape[4];
  const std::int64_t pixels = from.shape[3] * width;
  const LayoutPlace at(channels, pixels);
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

/// Copies one tile of `from`, dense with channels last, to `to`.
template <class T>
__device__ __forceinline__ void copy_from_last(const T* from, std::int64_t pitch,
                                               const View<T, 5>& to) {
  auto& tile = shared<LayoutTile<T>>().of;
  const std::int64_t channels = to.shape[1];
  const std::int64_t width = to.shape[4];
  const std::int64_t pixels = to.shape[3] * width;
  const LayoutPlace at(channels, pixels);
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

// --- on the host ---------------------------------------------------------------------------------

/// Shape of a copy with channels last.
class ChannelsLast {
 public:
  explicit ChannelsLast(const ConstTensorRef& tensor)
      : shape_(tensor.shape),
        element_(static_cast<std::int64_t>(size_of(tensor.dtype))),
        pitch_(round_up(tensor.shape[1], 16 / element_)) {}

  [[nodiscard]] std::int64_t pitch() const { return pitch_; }
  /// Returns the size of the copy, a multiple of 256 bytes. Throws if it exceeds 2^63.
  [[nodiscard]] std::int64_t bytes() const {
    return round_up(Extents{shape_[0], shape_[3], shape_[4], pitch_, element_}.product(),
                    std::int64_t{256});
  }
  /// Returns the copy at `memory` as a tensor.
  [[nodiscard]] TensorRef tensor(const ConstTensorRef& like, void* memory) const {
    const std::int64_t row = shape_[4] * pitch_;
    return {memory, like.dtype, shape_, Extents{shape_[3] * row, 1, shape_[3] * row, row, pitch_},
            like.device};
  }
  /// Returns the number of tiles, one per block.
  [[nodiscard]] std::int64_t tiles() const {
    return shape_[0] * ceil_div(shape_[1], std::int64_t{layout_tile}) *
           ceil_div(shape_[3] * shape_[4], std::int64_t{layout_tile});
  }
  template <class T>
  [[nodiscard]] LaunchShape launch_shape() const {
    return {.grid = tiles(), .block = layout_threads, .shared_bytes = sizeof(LayoutTile<T>)};
  }
  [[nodiscard]] bool fits_a_grid() const { return tiles() <= 0x7fffffff; }

 private:
  Extents shape_;
  std::int64_t element_;
  std::int64_t pitch_;
};

/// Returns the layout of copies in a workspace, one after another.
class LayoutMemory {
 public:
  /// Returns the offset of the next `bytes` bytes.
  std::int64_t add(std::int64_t bytes) {
    const std::int64_t at = total_;
    total_ += round_up(bytes, std::int64_t{4096});
    return at;
  }
  [[nodiscard]] std::size_t total() const { return static_cast<std::size_t>(total_); }

 private:
  std::int64_t total_ = 0;
};

}  // namespace rung::conv_cuda::inline RUNG_TARGET
