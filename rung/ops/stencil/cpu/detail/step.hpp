// SPDX-License-Identifier: Apache-2.0
// One iteration of one call on a CPU. A unit of work is a band of rows, a panel of columns wide, of
// one plane, or of several where the mask has several. The lines under the mask (lines.hpp) are
// kept in a ring, so that each is made once per band.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "rung/core/integer.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/stencil/cpu/detail/lines.hpp"

namespace rung::stencil_cpu {

/// Rows of a band: the rows of a mask are found anew for each.
inline constexpr std::int64_t max_band = 128;
/// Under a mask of several planes: rows of a band, whose lines stay in L2 until the last plane has
/// seen them, and planes that a thread makes before it goes on.
inline constexpr std::int64_t max_band_of_planes = 32;
inline constexpr std::int64_t chunk = 32;

/// Non-temporal stores save reading what is overwritten: of results that would not stay in a cache,
/// where every row begins with a line of it.
inline bool worth_streaming(const Args& args) {
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

/// One iteration of one call; S is the type of the sums.
template <class S>
class Step {
 public:
  explicit Step(const Args& args)
      : args_(args),
        band_(band_of(args)),
        bands_(ceil_div(args.rows().extent, band_)),
        chunk_(args.depth().taps > 1 ? chunk : 1),
        chunks_(ceil_div(args.depth().extent, chunk_)),
        panels_(ceil_div(args.columns().extent, panel_of(args))),
        length_(Lines<S>::length_of(args)),
        scale_(static_cast<S>(args.scale)),
        direct_(args.y.dtype == dtype_of<S> && args.columns().y == 1),
        streams_(direct_ && worth_streaming(args)),
        lines_(args) {}

  /// Whatever the number of threads, so that sums are made in the same order.
  [[nodiscard]] std::int64_t units() const { return args_.arrays() * chunks_ * bands_ * panels_; }

  /// Elements of S that a thread needs: the ring, a block of results and the sums of block_sums(),
  /// what lines need, and the weights.
  static std::int64_t scratch_elements(const Args& args) {
    const std::int64_t ring = args.depth().taps * ring_lines(args);
    return (ring + block_rows + 1) * Lines<S>::length_of(args) + Lines<S>::scratch_elements(args) +
           weights_of(args);
  }

  void work(cpu::Range share, S* scratch) {
    if (share.size() <= 0) return;
    out_ = scratch;
    begins_ = out_ + block_rows * length_;
    S* const of_lines = begins_ + length_;
    ring_ = of_lines + Lines<S>::scratch_elements(args_);
    weights_ = scratch + scratch_elements(args_) - weights_of(args_);
    copy_weights();
    lines_.use(of_lines, weights_ + args_.rows().taps);
    for (std::int64_t unit = share.begin; unit < share.end; ++unit) {
      std::int64_t rest = unit / panels_;
      const std::int64_t first_row = rest % bands_ * band_;
      const std::int64_t rows = std::min(band_, args_.rows().extent - first_row);
      rest /= bands_;
      const std::int64_t first_plane = rest % chunks_ * chunk_;
      const std::int64_t planes = std::min(chunk_, args_.depth().extent - first_plane);
      std::int64_t at[2];
      args_.batch.offsets(rest / chunks_, at);
      y_of_array_ = at[1];
      lines_.for_each_segment(unit % panels_, [&](const Segment& segment) {
        segment_ = segment;
        lines_.go_to(at[0], segment);
        go_to(first_plane);
        if (args_.depth().taps > 1) {
          weigh_planes(planes, first_row, rows);
        } else if (args_.weights == Stencil::Weights::ones && args_.rows().taps > 3) {
          block_sums(first_row, rows);
        } else {
          weigh_rows(first_row, rows);
        }
      });
    }
    if (streams_) end_streaming();
  }

 private:
  static std::int64_t band_of(const Args& args) {
    if (args.depth().taps == 1) return max_band;
    constexpr std::int64_t bytes = 512 << 10;
    const std::int64_t row = std::min(max_panel, args.columns().extent + args.columns().taps) *
                             static_cast<std::int64_t>(sizeof(S));
    const std::int64_t rows = bytes / (row * args.depth().taps) - (args.rows().taps - 1);
    return std::clamp<std::int64_t>(rows, block_rows, max_band_of_planes);
  }

  void go_to(std::int64_t plane) {
    plane_ = plane;
    y_ = y_of_array_ + plane * args_.depth().y;
  }

  /// Of each plane: those under the masks of a band or of a block of rows, or what block_sums()
  /// keeps.
  static std::int64_t ring_lines(const Args& args) {
    const std::int64_t taps = args.rows().taps;
    if (args.depth().taps > 1) return band_of(args) + taps - 1;
    return std::max(taps + block_rows - 1, args.weights == Stencil::Weights::ones ? 3 * taps : 0);
  }

  // --- weights -----------------------------------------------------------------------------------

  static std::int64_t weights_of(const Args& args) {
    return std::max(args.taps(), args.rows().taps + args.columns().taps);
  }

  /// Of a mask, its elements in C order; of vectors, those down, then those across.
  void copy_weights() {
    if (args_.weights == Stencil::Weights::mask) {
      const auto mask = args_.mask.view<const S, 3>();
      S* to = weights_;
      for (int k = 0; k < args_.depth().taps; ++k) {
        for (int i = 0; i < args_.rows().taps; ++i) {
          for (int j = 0; j < args_.columns().taps; ++j) *to++ = mask(k, i, j);
        }
      }
      return;
    }
    const auto copy = [](const ConstTensorRef& from, int taps, S* to) {
      const auto* data = static_cast<const S*>(from.data);
      for (int i = 0; i < taps; ++i) to[i] = data == nullptr ? S(1) : data[i * from.strides[0]];
    };
    copy(args_.down, args_.rows().taps, weights_);
    copy(args_.across, args_.columns().taps, weights_ + args_.rows().taps);
    if (args_.through.data != nullptr) {  // of one element, or it would be a step of its own
      const S factor = *static_cast<const S*>(args_.through.data);
      for (int i = 0; i < args_.rows().taps; ++i) weights_[i] *= factor;
    }
  }

  // --- rows of y ---------------------------------------------------------------------------------

  /// Where row q of a block of results is made: in y itself where it can be.
  [[nodiscard]] S* row_of_y(std::int64_t row, int q = 0) const {
    if (!direct_) return out_ + q * length_;
    return static_cast<S*>(args_.y.data) + y_ + row * args_.rows().y + segment_.first;
  }
  /// Takes a row that was made elsewhere to y.
  void store_row(std::int64_t row, int q = 0) const {
    if (direct_) return;
    const S* const out = out_ + q * length_;
    const std::int64_t step = args_.columns().y;
    const std::int64_t at = y_ + row * args_.rows().y + segment_.first * step;
    with_elements<S>(args_.y.dtype, [&]<class T>() {
      T* const y = static_cast<T*>(args_.y.data) + at;
      if constexpr (std::is_same_v<S, float>) {
        if (step == 1) {
          narrow_line(out, dtype_of<T>, y, segment_.columns);
          return;
        }
        T narrow[max_panel];
        narrow_line(out, dtype_of<T>, narrow, segment_.columns);
        for (std::int64_t i = 0; i < segment_.columns; ++i) y[i * step] = narrow[i];
      } else {
        for (std::int64_t i = 0; i < segment_.columns; ++i) y[i * step] = out[i];
      }
    });
  }

  /// A block of rows, `line(k, i)` the lines of plane k under their masks.
  template <class Line>
  void weigh_block(std::int64_t row, int rows, Line&& line) {
    const int depth = args_.depth().taps;
    const int down = args_.rows().taps;
    const int under = down + rows - 1;
    const S* lines[Stencil::max_taps * (Stencil::max_taps + block_rows - 1)];
    for (int k = 0; k < depth; ++k) {
      for (int i = 0; i < under; ++i) lines[k * under + i] = line(k, i);
    }
    S* out[block_rows];
    for (int q = 0; q < rows; ++q) out[q] = row_of_y(row + q, q);
    weigh_lines({.lines = lines,
                 .planes = depth,
                 .down = down,
                 .across = args_.is_separable() ? 1 : args_.columns().taps,
                 .weights = weights_,
                 .scale = scale_,
                 .out = out,
                 .rows = rows,
                 .length = segment_.columns,
                 .streams = streams_});
    for (int q = 0; q < rows; ++q) store_row(row + q, q);
  }
  /// As many of `rows` rows as are made together.
  static int block_of(std::int64_t rows) { return rows >= block_rows ? block_rows : 1; }

  /// Rows of one plane. Each line is made when the first mask comes to be on it.
  void weigh_rows(std::int64_t first_row, std::int64_t rows) {
    const int taps = args_.rows().taps;
    const std::int64_t held = ring_lines(args_);
    std::int64_t made = 0;
    for (std::int64_t row = 0; row < rows; row += block_of(rows - row)) {
      const int block = block_of(rows - row);
      for (; made < row + taps + block - 1; ++made) {
        const std::int64_t at = made % held;
        found_[at] =
            lines_.make(plane_, first_row + made - args_.rows().origin, ring_ + at * length_);
      }
      weigh_block(first_row + row, block, [&](int, int i) { return found_[(row + i) % held]; });
    }
  }

  /// A band of rows of one plane after the other: of each, lines are made once.
  void weigh_planes(std::int64_t planes, std::int64_t first_row, std::int64_t rows) {
    const int depth = args_.depth().taps;
    const std::int64_t under = rows + args_.rows().taps - 1;
    const std::int64_t first_plane = plane_;
    std::int64_t made = 0;
    for (std::int64_t plane = 0; plane < planes; ++plane) {
      for (; made < plane + depth; ++made) {
        for (std::int64_t i = 0; i < under; ++i) {
          const std::int64_t at = made % depth * under + i;
          found_[at] = lines_.make(first_plane + made - args_.depth().origin,
                                   first_row + i - args_.rows().origin, ring_ + at * length_);
        }
      }
      go_to(first_plane + plane);
      for (std::int64_t row = 0; row < rows; row += block_of(rows - row)) {
        weigh_block(first_row + row, block_of(rows - row),
                    [&](int k, int i) { return found_[(plane + k) % depth * under + row + i]; });
      }
    }
  }

  /// Windows of rows as blocks from their ends (see 035_block_sums.cpp), whole lines at a time.
  void block_sums(std::int64_t first_row, std::int64_t rows) {
    const std::int64_t taps = args_.rows().taps;
    S* const ends = ring_ + 2 * taps * length_;
    std::int64_t made = 0;
    const auto line = [&](std::int64_t i) { return found_[i % (2 * taps)]; };
    const auto need = [&](std::int64_t count) {
      for (; made < count; ++made) {
        const std::int64_t at = made % (2 * taps);
        found_[at] =
            lines_.make(plane_, first_row + made - args_.rows().origin, ring_ + at * length_);
      }
    };
    for (std::int64_t block = 0; block < rows; block += taps) {
      need(block + taps);
      const S* end = line(block + taps - 1);
      for (std::int64_t i = taps - 2; i >= 0; --i) {
        S* const sum = ends + i * length_;
        add_lines(line(block + i), end, S(1), sum, segment_.columns, false);
        end = sum;
      }
      const std::int64_t last = std::min(taps, rows - block);
      const S* sum = nullptr;  // of the next block's first lines
      for (std::int64_t i = 0; i < last; ++i) {
        S* const y = row_of_y(first_row + block + i);
        if (i == 0) {
          const S one = 1;
          lines_.weigh(end, &one, 1, scale_, y);
        } else {
          need(block + taps + i);
          const S* const next = line(block + taps + i - 1);
          if (i > 1) add_lines(sum, next, S(1), begins_, segment_.columns, false);
          sum = i > 1 ? begins_ : next;
          const S* const rest = i == taps - 1 ? line(block + i) : ends + i * length_;
          add_lines(rest, sum, scale_, y, segment_.columns, streams_);
        }
        store_row(first_row + block + i);
      }
    }
  }

  static constexpr int max_lines =
      Stencil::max_taps * (Stencil::max_taps + static_cast<int>(max_band_of_planes) - 1);

  const Args& args_;
  std::int64_t band_, bands_, chunk_, chunks_, panels_;
  std::int64_t length_;  // from one line to the next
  S scale_;
  bool direct_;
  bool streams_;
  Lines<S> lines_;
  const S* found_[max_lines];  // lines of the ring, or of x itself in their place
  S* out_ = nullptr;
  S* begins_ = nullptr;
  S* ring_ = nullptr;
  S* weights_ = nullptr;
  Segment segment_;
  std::int64_t plane_ = 0, y_of_array_ = 0, y_ = 0;
};

}  // namespace rung::stencil_cpu
