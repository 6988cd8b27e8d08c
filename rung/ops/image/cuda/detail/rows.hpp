// SPDX-License-Identifier: Apache-2.0
// Pictures as planes of rows of elements, for filters with a neighborhood. Interleaved channels
// share a row, in which the neighbor of an element is `group` elements away; other channels are
// separate planes. Kernels need not distinguish interleaved from planar pictures.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/ops/image/cuda/detail/filter.hpp"

namespace rung::image_cuda::inline RUNG_TARGET {

/// Kernel parameter: the rows of x and y, and the filter.
template <class T>
struct Rows {
  const T* x;
  T* y;
  int rows;
  int elements;                                                 // per row
  int group;                                                    // distance between neighbors
  int planes;                                                   // per picture
  std::int64_t x_plane, y_plane, x_row, y_row, x_step, y_step;  // strides; step: of an element
  Collapsed<2> pictures;
  int alpha;  // index of the copied channel; -1: none
  Filter<T> filter;

  /// Clamps an index to the row: returns the same channel of the nearest pixel. `element` may be up
  /// to max_radius pixels before the row, or any number beyond its end.
  [[nodiscard]] __device__ __forceinline__ int inside(int element) const {
    constexpr int in_front = 4 * Image::max_radius;  // a multiple of every group
    if (element < 0) return (element + in_front) % group;
    return element < elements ? element : elements - group + (element - elements) % group;
  }
  [[nodiscard]] __device__ __forceinline__ int inside_row(int row) const {
    return row < 0 ? 0 : row < rows ? row : rows - 1;
  }
  [[nodiscard]] __device__ __forceinline__ bool is_row(int row) const {
    return row >= 0 && row < rows;
  }
  [[nodiscard]] __device__ __forceinline__ bool is_element(int element) const {
    return element >= 0 && element < elements;
  }
  [[nodiscard]] __device__ __forceinline__ bool is_alpha(int plane, int element) const {
    return alpha >= 0 && (group == 1 ? plane : element % group) == alpha;
  }
};

/// First elements of one plane of one picture.
template <class T>
struct Plane {
  const T* x;
  T* y;
  int number;

  __device__ __forceinline__ Plane(const Rows<T>& p, std::int64_t which) {
    const std::int64_t picture = which / p.planes;
    number = static_cast<int>(which - picture * p.planes);
    std::int64_t first[2];
    p.pictures.offsets(picture, first);
    x = p.x + first[0] + number * p.x_plane;
    y = p.y + first[1] + number * p.y_plane;
  }
};

// --- on the host ---------------------------------------------------------------------------------

/// Returns true if channels and pixels are adjacent in x and y.
inline bool is_interleaved(const Image::Args& args) {
  const auto lies_so = [&](const Image::Strides& strides) {
    return (args.channels == 1 || strides.channel == 1) &&
           (args.columns == 1 || strides.column == args.channels);
  };
  return lies_so(args.from) && lies_so(args.to);
}

template <class T>
Rows<T> rows_of(const Image::Args& args) {
  const int group = is_interleaved(args) ? args.channels : 1;
  const bool together = group > 1 || args.channels == 1;
  return {.x = static_cast<const T*>(args.x.data),
          .y = static_cast<T*>(args.y.data),
          .rows = static_cast<int>(args.rows),
          .elements = static_cast<int>(args.columns) * group,
          .group = group,
          .planes = together ? 1 : args.channels,
          .x_plane = args.from.channel,
          .y_plane = args.to.channel,
          .x_row = args.from.row,
          .y_row = args.to.row,
          .x_step = group > 1 ? 1 : args.from.column,
          .y_step = group > 1 ? 1 : args.to.column,
          .pictures = args.pictures,
          .alpha = args.copied_alpha(),
          .filter = filter_of<T>(args)};
}

inline std::int64_t planes_of(const Image::Args& args) {
  return args.pictures.size() * (is_interleaved(args) ? 1 : args.channels);
}

/// Returns the elements per row: all channels if is_interleaved(), else one channel.
inline std::int64_t row_elements(const Image::Args& args) {
  return args.columns * (is_interleaved(args) ? args.channels : 1);
}
/// Returns the number of blocks, one per tile of tile_rows x tile_width elements.
inline std::int64_t tile_blocks(const Image::Args& args, int tile_rows, int tile_width) {
  return ceil_div(row_elements(args), tile_width) * ceil_div(args.rows, tile_rows) *
         planes_of(args);
}

/// Accepts problems for kernels whose blocks compute tiles of `tile_rows` rows.
inline Support supports_tiles(const Image::Args& args, int tile_rows) {
  if (args.filter() == ImageFilter::grey) return unsupported("takes filters with a neighborhood");
  constexpr std::int64_t max_blocks = 65535;  // limit of a grid along y and z
  if (args.rows > max_blocks * tile_rows || planes_of(args) > max_blocks) {
    return unsupported("more rows or planes than a grid has blocks for");
  }
  return args.columns <= std::int64_t{1} << 28 ? supported : unsupported("2^28 columns at most");
}

}  // namespace rung::image_cuda::inline RUNG_TARGET
