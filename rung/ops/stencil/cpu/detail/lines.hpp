// SPDX-License-Identifier: Apache-2.0
// Lines: rows of x in the type S of the sums (f32, f64), with values for positions outside the
// array filled in, so that kernels never test for edges. A line begins with the leftmost neighbor
// of a segment's first column. A row that needs no conversion and no edges is read in place; other
// rows are converted into a buffer.
//
// A tile is a band of rows, one panel of columns wide, of one plane, or of several planes if the
// mask has several. The caller owns the buffers, `length` elements each. Lines may be read up to
// line_slack elements beyond their content; nothing is written beyond the end of a row of y.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "rung/core/integer.hpp"
#include "rung/cpu/lines.hpp"
#include "rung/cpu/team.hpp"
#include "rung/cpu/tiles.hpp"
#include "rung/ops/stencil/op/edge.hpp"
#include "rung/ops/stencil/op/stencil.hpp"

namespace rung::stencil_cpu {

using Args = Stencil::Args;

/// Elements that may be read beyond a line: four vectors of 64 bytes of f32.
inline constexpr std::int64_t line_slack = 64;
/// Rows of results computed together: each line under their masks is loaded once for all of them.
inline constexpr int block_rows = 4;
/// Columns per panel; half as many under windows of more than 3 rows, whose lines then mostly stay
/// in L2. 16 KiB of f32 are four pages, long enough for the hardware prefetchers: 4096 x 4096 f32,
/// 3 x 3, one thread of a 2-core Zen 5 vCPU, no row in place: 11.2 ms with 1024 columns, 8.0 with
/// 4096, 7.8 with 8192.
inline constexpr std::int64_t max_panel = 4096, high_window_panel = 2048;
inline constexpr std::int64_t max_band = 128, max_band_of_planes = 32;
/// Planes of y per tile under a mask of several planes.
inline constexpr std::int64_t chunk_of_planes = 32;
/// Least number of columns for which a row is split into edge segments and an interior segment.
inline constexpr std::int64_t worth_segments = 512;

inline std::int64_t panel_of(const Args& args) {
  const bool high = args.weights == Stencil::Weights::ones && args.rows().taps > 3;
  return high ? high_window_panel : max_panel;
}
inline std::int64_t chunk_of(const Args& args) {
  return args.depth().taps > 1 ? chunk_of_planes : 1;
}
/// Returns the rows per band. Under a mask of several planes, the lines of all planes of the mask
/// stay within 512 KiB, in L2, as far as the limits of a band allow.
template <class S>
std::int64_t band_of(const Args& args) {
  if (args.depth().taps == 1) return max_band;
  const std::int64_t row = std::min(max_panel, args.columns().extent + args.columns().taps);
  const std::int64_t lines = (512 << 10) / (row * static_cast<std::int64_t>(sizeof(S)));
  return std::clamp<std::int64_t>(lines / args.depth().taps - (args.rows().taps - 1), block_rows,
                                  max_band_of_planes);
}
/// Returns the tiles of a pass. They depend on the shape alone, not on the number of threads, so
/// that the order of summation is fixed.
template <class S>
cpu::Tiles tiles_of(const Args& args) {
  return {.arrays = args.arrays() * ceil_div(args.depth().extent, chunk_of(args)),
          .rows = args.rows().extent,
          .columns = args.columns().extent,
          .band = band_of<S>(args),
          .panel = panel_of(args)};
}

template <class S>
class Lines {
 public:
  /// Uses `scratch` of the caller, which has room for buffers() lines.
  Lines(const Args& args, S* scratch)
      : length(length_of(args)),
        streams(is_direct(args) && worth_streaming(args)),
        args_(args),
        tiles_(tiles_of<S>(args)),
        in_place_(args.x.dtype == dtype_of<S> && args.columns().x == 1 &&
                  args.columns().extent >= worth_segments),
        direct_(is_direct(args)),
        zeros_(scratch),
        out_(scratch + length) {
    std::fill_n(zeros_, length, S(0));
  }
  static constexpr int buffers() { return 1 + block_rows; }
  /// Returns the elements per buffer; never a multiple of 4 KiB, which would map all lines to the
  /// same L1 sets (4K aliasing).
  static std::int64_t length_of(const Args& args) {
    const std::int64_t columns = std::min(panel_of(args), args.columns().extent);
    return round_up<std::int64_t>(columns + args.columns().taps + line_slack, 32) + 16;
  }

  std::int64_t length;  // stride between buffers, in elements
  bool streams;         // non-temporal stores; rows of y then begin at cache lines
  std::int64_t first_plane = 0, planes = 0, first_row = 0, rows = 0;  // the tile
  std::int64_t columns = 0;                                           // the segment
  bool is_inside = false;  // all taps of the segment are inside: rows of x are read in place

  /// Calls f() for each segment of a tile: the interior columns, all of whose taps are inside the
  /// array, rounded to cache lines, and the columns left and right of them.
  template <class F>
  void for_each_segment(std::int64_t index, F&& f) {
    const cpu::ArrayTile tile = tiles_[index];
    const std::int64_t chunks = ceil_div(args_.depth().extent, chunk_of(args_));
    args_.batch.offsets(tile.array / chunks, at_);
    first_plane = tile.array % chunks * chunk_of(args_);
    planes = std::min(chunk_of(args_), args_.depth().extent - first_plane);
    first_row = tile.first_row;
    rows = tile.rows;
    const Stencil::Axis& axis = args_.columns();
    const std::int64_t last = tile.first_column + tile.columns;
    std::int64_t begin = last;
    std::int64_t end = last;
    if (in_place_) {
      constexpr std::int64_t unit = 64 / sizeof(S);
      const std::int64_t inside = std::min(last, axis.extent - (axis.taps - 1 - axis.origin));
      begin =
          std::min(std::max(tile.first_column, round_up<std::int64_t>(axis.origin, unit)), last);
      end = begin + std::max<std::int64_t>(0, inside - begin) / unit * unit;
    }
    const std::int64_t ends[] = {tile.first_column, begin, end, last};
    for (int i = 0; i < 3; ++i) {
      if (ends[i] >= ends[i + 1]) continue;
      first_ = ends[i];
      columns = ends[i + 1] - ends[i];
      is_inside = in_place_ && i == 1;
      f();
    }
  }

  /// Returns the line of row `row` of plane `plane`, either of which may be outside the array: a
  /// pointer into x, to zeros, or to `line`, filled.
  const S* load(std::int64_t plane, std::int64_t row, S* line) const {
    const auto from_plane = stencil_detail::edge_index(plane, args_.depth().extent, args_.edge);
    const auto from_row = stencil_detail::edge_index(row, args_.rows().extent, args_.edge);
    if (from_plane < 0 || from_row < 0) return zeros_;
    const std::int64_t at = at_[0] + from_plane * args_.depth().x + from_row * args_.rows().x;
    const std::int64_t first = first_ - args_.columns().origin;
    if (is_inside) return static_cast<const S*>(args_.x.data) + at + first;
    convert(at, first, line);
    return line;
  }

  /// Returns the destination for row `row` of y, the q-th of a block: in y if y has the type of the
  /// sums and contiguous columns, else a buffer, which store() then converts.
  S* result(std::int64_t plane, std::int64_t row, int q = 0) const {
    if (!direct_) return out_ + q * length;
    return static_cast<S*>(args_.y.data) + place(plane, row);
  }
  void store(std::int64_t plane, std::int64_t row, int q = 0) const {
    if (direct_) return;
    const S* const out = out_ + q * length;
    const std::int64_t step = args_.columns().y;
    with_elements(args_.y.dtype, [&]<class T>() {
      T* const y = static_cast<T*>(args_.y.data) + place(plane, row);
      if constexpr (std::is_same_v<S, float>) {
        if (step == 1) return cpu::narrow_line(out, dtype_of<T>, y, columns);
        T narrow[max_panel];
        cpu::narrow_line(out, dtype_of<T>, narrow, columns);
        for (std::int64_t i = 0; i < columns; ++i) y[i * step] = narrow[i];
      } else {
        for (std::int64_t i = 0; i < columns; ++i) y[i * step] = out[i];
      }
    });
  }
  /// Orders the non-temporal stores before the thread's later stores.
  void finish() const {
    if (streams) cpu::end_streams();
  }

 private:
  static bool is_direct(const Args& args) {
    return args.y.dtype == dtype_of<S> && args.columns().y == 1;
  }
  /// Calls f<T>() with the element type T whose sums are of type S.
  template <class F>
  static void with_elements(DType type, F&& f) {
    if constexpr (std::is_same_v<S, double>) {
      f.template operator()<double>();
    } else {
      visit<float, f16, bf16, std::uint8_t>(type, f);
    }
  }
  [[nodiscard]] std::int64_t place(std::int64_t plane, std::int64_t row) const {
    return at_[1] + plane * args_.depth().y + row * args_.rows().y + first_ * args_.columns().y;
  }

  /// Converts columns from `first` on, some of them outside the array, of the row that begins at
  /// element `at`.
  void convert(std::int64_t at, std::int64_t first, S* line) const {
    const Stencil::Axis& axis = args_.columns();
    const std::int64_t count = columns + axis.taps - 1;
    const std::int64_t begin = std::clamp<std::int64_t>(-first, 0, count);
    const std::int64_t end = std::clamp<std::int64_t>(axis.extent - first, begin, count);
    with_elements(args_.x.dtype, [&]<class T>() {
      const T* const x = static_cast<const T*>(args_.x.data) + at;
      const auto outside = [&](std::int64_t i) {
        const auto from = stencil_detail::edge_index(first + i, axis.extent, args_.edge);
        line[i] = from < 0 ? S(0) : static_cast<S>(x[from * axis.x]);
      };
      // Right edge last: by then the hardware prefetcher has fetched the end of the row.
      for (std::int64_t i = 0; i < begin; ++i) outside(i);
      if (end > begin) {
        load_inside(x + (first + begin) * axis.x, axis.x, line + begin, end - begin);
      }
      for (std::int64_t i = end; i < count; ++i) outside(i);
    });
  }

  template <class T>
  static void load_inside(const T* from, std::int64_t step, S* to, std::int64_t count) {
    if constexpr (std::is_same_v<S, float>) {
      if (step == 1) return cpu::widen_line(dtype_of<T>, from, to, count);
    }
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<S>(from[i * step]);
  }

  /// Returns whether non-temporal stores, which avoid the read for ownership, pay off: the results
  /// exceed a cache, and every row of y begins at a cache line.
  static bool worth_streaming(const Args& args) {
    constexpr std::int64_t stays_in_cache = 16 << 20, line = 64;
    const auto size = static_cast<std::int64_t>(size_of(args.y.dtype));
    if (args.elements() * size <= stays_in_cache) return false;
    const auto is_aligned = [&](std::int64_t stride) { return stride * size % line == 0; };
    bool aligned = reinterpret_cast<std::uintptr_t>(args.y.data) % line == 0 &&
                   is_aligned(args.rows().y) && is_aligned(args.depth().y);
    for (int axis = 0; axis < args.batch.rank; ++axis) {
      aligned = aligned && is_aligned(args.batch.strides[1][axis]);
    }
    return aligned;
  }

  const Args& args_;
  cpu::Tiles tiles_;
  bool in_place_, direct_;
  S* zeros_;
  S* out_;
  std::int64_t at_[2] = {};  // offset of the array in x and in y, in elements
  std::int64_t first_ = 0;   // first column of the segment
};

}  // namespace rung::stencil_cpu
