// SPDX-License-Identifier: Apache-2.0
// Lines: rows of a tile of a picture with their border filled in, so that kernels never test for
// edges. A line begins with the leftmost neighbor of the tile's first element; the right neighbor
// of an element is `group` elements further. A tile is a band of rows, one panel of elements wide,
// of one picture, or of one channel of a planar picture.
//
// The caller owns the buffers, line_length elements each. Kernels may read and write line_slack
// elements beyond a line's content. Cost per line: none if a row is read in place, else one copy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "rung/core/integer.hpp"
#include "rung/cpu/lines.hpp"
#include "rung/cpu/team.hpp"
#include "rung/cpu/tiles.hpp"
#include "rung/ops/image/op/image.hpp"

namespace rung::image_cpu {

/// Elements accessible beyond a line: four vectors of 64 bytes of f32, or one of u8.
inline constexpr std::int64_t line_slack = 64;
/// Elements per panel: multiples of 1, 2, 3 and 4 channels. Lines under a small window stay in L1
/// (3000 x 4000 x 3 u8, radius 2, one thread of a 2-core Zen 5 vCPU: 4.6 ms, with the larger panel
/// 6.5). Under a large window they do not, and longer panels are faster (radius 6: 14 ms instead of
/// 24).
inline constexpr std::int64_t small_panel = 2040, large_panel = 4092;
inline constexpr int max_radius_of_small_panel = 3;
inline constexpr std::int64_t line_length =
    round_up(large_panel + 2 * 4 * Image::max_radius + line_slack, 64);
inline constexpr int max_taps = 2 * Image::max_radius + 1;
/// Minimum bytes of results for non-temporal stores; fewer may stay in a cache.
inline constexpr std::int64_t worth_streaming = 8 << 20;

inline int reach_of(const Image::Args& args) {
  return args.filter() == ImageFilter::sobel ? 1 : args.radius;
}
inline int planes_of(const Image::Args& args) {
  return args.from.column == 1 && args.to.column == 1 ? args.channels : 1;
}
/// Returns the tiles of a picture, in bands of 128 rows. The rows just outside a band are loaded
/// again by its neighbors.
inline cpu::Tiles tiles_of(const Image::Args& args) {
  const int planes = planes_of(args);
  return {.arrays = args.pictures.size() * planes,
          .rows = args.rows,
          .columns = args.columns * (args.channels / planes),
          .band = 128,
          .panel = reach_of(args) <= max_radius_of_small_panel ? small_panel : large_panel};
}

/// Allocates a thread's line buffers from its scratch memory, one after another.
class Scratch {
 public:
  /// Returns the bytes of a ring of lines plus five more lines, of elements of up to 4 bytes.
  static std::int64_t bytes(const Image::Args& args) {
    return (std::max(args.taps(), 3) + 1 + 5) * line_length * 4;
  }
  static std::byte* memory(const Image::Args& args, Context& context, int threads = 1) {
    return static_cast<std::byte*>(
        context.workspace(static_cast<std::size_t>(threads * bytes(args))));
  }
  explicit Scratch(std::byte* memory) : next_(memory) {}
  template <class E>
  E* take(int lines) {
    return reinterpret_cast<E*>(std::exchange(next_, next_ + lines * line_length * sizeof(E)));
  }

 private:
  std::byte* next_;
};

template <class T>
class Lines {
 public:
  explicit Lines(const Image::Args& args)
      : group(args.channels / planes_of(args)),
        reach(reach_of(args)),
        args_(args),
        tiles_(tiles_of(args)),
        loads_directly_(is_contiguous(args.from)),
        stores_directly_(is_contiguous(args.to)),
        streams_(bytes_of(args.y.size()) >= worth_streaming) {}

  int group;                             // channels per pixel of a line
  int reach;                             // radius of the window, in rows and in pixels
  std::int64_t first_row = 0, rows = 0;  // the tile
  std::int64_t count = 0;                // elements per row of the tile

  void go_to(std::int64_t index) {
    const cpu::ArrayTile tile = tiles_[index];
    const int planes = planes_of(args_);
    std::int64_t picture[2];
    args_.pictures.offsets(tile.array / planes, picture);
    plane_ = planes > 1 ? static_cast<int>(tile.array % planes) : -1;
    const int plane = std::max(plane_, 0);
    x_ = static_cast<const T*>(args_.x.data) + picture[0] + plane * args_.from.channel;
    y_ = static_cast<T*>(args_.y.data) + picture[1] + plane * args_.to.channel;
    first_row = tile.first_row;
    rows = tile.rows;
    first_ = tile.first_column;
    count = tile.columns;
  }

  /// Returns the line of row `row`, which may be outside the picture: a pointer into x if the row
  /// contains all that kernels read, else `buffer`, filled.
  const T* load(std::int64_t row, T* buffer) const {
    const std::int64_t halo = std::int64_t{reach} * group;
    const std::int64_t length = count + 2 * halo;
    const std::int64_t first = first_ - halo;
    const bool zero_edges = args_.options.edge == ImageEdge::zero;
    if (zero_edges && (row < 0 || row >= args_.rows)) {
      std::fill_n(buffer, length, T{0});
      return buffer;
    }
    const T* const from = x_ + std::clamp<std::int64_t>(row, 0, args_.rows - 1) * args_.from.row;
    if (loads_directly_ && first >= 0 && first + length + line_slack <= tiles_.columns) {
      return from + first;
    }
    const std::int64_t begin = std::max<std::int64_t>(-first, 0);
    const std::int64_t end = std::min(tiles_.columns - first, length);
    if (loads_directly_) {
      const T* const inside = from + first + begin;
      const T* const next = row < args_.rows - 1 ? inside + args_.from.row : nullptr;
      cpu::copy_line(inside, buffer + begin, bytes_of(end - begin), next);
    } else {
      std::int64_t i = begin;
      for (std::int64_t column = (first + begin) / group; i < end; ++column) {
        const T* const pixel = from + column * args_.from.column;
        for (int c = 0; c < group; ++c) buffer[i++] = pixel[c * args_.from.channel];
      }
    }
    if (zero_edges) {
      std::fill_n(buffer, begin, T{0});
      std::fill(buffer + end, buffer + length, T{0});
    } else {
      for (std::int64_t i = begin - 1; i >= 0; --i) buffer[i] = buffer[i + group];
      for (std::int64_t i = end; i < length; ++i) buffer[i] = buffer[i - group];
    }
    return buffer;
  }

  /// Returns the line after `row`, as a prefetch address; null unless `line` points into x.
  const T* next(const T* line, const T* buffer, std::int64_t row) const {
    return line != buffer && row >= 0 && row < args_.rows - 1 ? line + args_.from.row : nullptr;
  }

  /// Stores the results of row `row` in y.
  void store(std::int64_t row, const T* from) const {
    T* const to = y_ + row * args_.to.row;
    if (stores_directly_) {
      if (streams_) {
        cpu::stream_line(from, to + first_, bytes_of(count));
      } else {
        cpu::copy_line(from, to + first_, bytes_of(count));
      }
      return;
    }
    std::int64_t i = 0;
    for (std::int64_t column = first_ / group; i < count; ++column) {
      T* const pixel = to + column * args_.to.column;
      for (int c = 0; c < group; ++c) pixel[c * args_.to.channel] = from[i++];
    }
  }
  /// Orders the non-temporal stores before the thread's later stores.
  void finish() const {
    if (streams_) cpu::end_streams();
  }

  /// Copies alpha if the filter preserves it; `x` is the row's line without its halo.
  void copy_alpha(const T* x, T* out) const {
    const int alpha = args_.copied_alpha();
    if (alpha < 0) return;
    if (plane_ < 0) {
      for (std::int64_t i = alpha; i < count; i += group) out[i] = x[i];
    } else if (plane_ == alpha) {
      std::copy_n(x, count, out);
    }
  }

 private:
  [[nodiscard]] bool is_contiguous(const Image::Strides& strides) const {
    return (group == 1 || strides.channel == 1) && strides.column == group;
  }
  static constexpr std::int64_t bytes_of(std::int64_t elements) {
    return elements * static_cast<std::int64_t>(sizeof(T));
  }

  const Image::Args& args_;
  cpu::Tiles tiles_;
  bool loads_directly_, stores_directly_, streams_;
  int plane_ = -1;  // channel of the tile; -1: all of them
  std::int64_t first_ = 0;
  const T* x_ = nullptr;
  T* y_ = nullptr;
};

}  // namespace rung::image_cpu
