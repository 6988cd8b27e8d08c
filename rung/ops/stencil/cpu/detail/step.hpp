// SPDX-License-Identifier: Apache-2.0
// One iteration of one call on a CPU. A unit of work is a band of rows of one plane, a panel of
// columns wide. The rows under the mask are kept as lines (kernels.hpp) in a ring, so that each row
// is converted, and has its edges resolved, once per band; of a separable mask, lines hold the sums
// along the row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "rung/core/integer.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/stencil/cpu/detail/kernels.hpp"
#include "rung/ops/stencil/op/edge.hpp"

namespace rung::stencil_cpu {

using Args = Stencil::Args;

/// Columns: 16 KiB of f32, four pages, so that the prefetchers run on. 4096 x 4096 f32, 3 x 3, one
/// thread of a 2-core Zen 5 vCPU: 11.2 ms with 1024, 8.0 with 4096, 7.8 with 8192. A line is no
/// multiple of 4 KiB long, which would let lines compete for one set of L1.
inline constexpr std::int64_t panel = 4096;
inline constexpr std::int64_t line_length = panel + Stencil::max_taps + line_slack + 1;
/// Rows of a band: the rows of a mask are found anew for each.
inline constexpr std::int64_t max_band = 128;
/// Under a mask of several planes: rows of a band, whose lines stay in L2 until the last plane has
/// seen them, and planes that a thread makes before it goes on.
inline constexpr std::int64_t max_band_of_planes = 32;
inline constexpr std::int64_t chunk = 32;

/// Columns of rows that are worth being cut into what has edges and what has none.
inline constexpr std::int64_t worth_segments = 512;

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
        panels_(ceil_div(args.columns().extent, panel)),
        scale_(static_cast<S>(args.scale)),
        direct_(args.y.dtype == dtype_of<S> && args.columns().y == 1),
        streams_(direct_ && worth_streaming(args)),
        in_place_(args.x.dtype == dtype_of<S> && args.columns().x == 1 &&
                  args.columns().extent >= worth_segments) {}

  /// Whatever the number of threads, so that sums are made in the same order.
  [[nodiscard]] std::int64_t units() const { return args_.arrays() * chunks_ * bands_ * panels_; }

  /// Elements of S that a thread needs: the ring, the weights, and lines for what is in between.
  static std::int64_t scratch_elements(const Args& args) {
    const std::int64_t ring = args.depth().taps * ring_lines(args);
    return (ring + 4 + block_rows) * line_length + weights_of(args);
  }

  void work(cpu::Range share, S* scratch) {
    spare_ = scratch;
    other_ = spare_ + line_length;
    out_ = other_ + line_length;
    begins_ = out_ + block_rows * line_length;
    zeros_ = begins_ + line_length;
    ring_ = zeros_ + line_length;
    if (share.size() <= 0) return;
    weights_ = scratch + scratch_elements(args_) - weights_of(args_);
    copy_weights();
    std::fill_n(zeros_, line_length, S(0));
    for (std::int64_t unit = share.begin; unit < share.end; ++unit) {
      std::int64_t rest = unit / panels_;
      const std::int64_t first_row = rest % bands_ * band_;
      const std::int64_t rows = std::min(band_, args_.rows().extent - first_row);
      rest /= bands_;
      const std::int64_t first_plane = rest % chunks_ * chunk_;
      const std::int64_t planes = std::min(chunk_, args_.depth().extent - first_plane);
      std::int64_t at[2];
      args_.batch.offsets(rest / chunks_, at);
      x_ = at[0];
      y_of_array_ = at[1];
      for_each_segment(unit % panels_, [&] {
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
    const std::int64_t row = std::min(panel, args.columns().extent + args.columns().taps) *
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

  /// The columns of a panel: those whose taps are all inside the array, as far as full vectors and
  /// cache lines go, and those left and right of them.
  template <class F>
  void for_each_segment(std::int64_t index, F&& f) {
    const Stencil::Axis& columns = args_.columns();
    const std::int64_t first = index * panel;
    const std::int64_t last = std::min(first + panel, columns.extent);
    std::int64_t begin = last;
    std::int64_t end = last;
    if (in_place_) {
      constexpr auto unit = static_cast<std::int64_t>(64 / sizeof(S));
      const std::int64_t inside =
          std::min(last, columns.extent - (columns.taps - 1 - columns.origin));
      begin = std::min(std::max(first, round_up<std::int64_t>(columns.origin, unit)), last);
      end = begin + std::max<std::int64_t>(0, inside - begin) / unit * unit;
    }
    const std::int64_t ends[] = {first, begin, end, last};
    for (int i = 0; i < 3; ++i) {
      if (ends[i] == ends[i + 1]) continue;
      first_column_ = ends[i];
      columns_ = ends[i + 1] - ends[i];
      is_inside_ = in_place_ && i == 1;
      f();
    }
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

  /// f<T>() for the types of element whose sums are S.
  template <class F>
  static void with_elements(DType type, F&& f) {
    if constexpr (std::is_same_v<S, double>) {
      f.template operator()<double>();
    } else {
      visit<float, f16, bf16, std::uint8_t>(type, f);
    }
  }

  // --- lines -------------------------------------------------------------------------------------

  /// Row `row` of plane `plane` as a line - both may lie outside - with its edges.
  void load_line(std::int64_t plane, std::int64_t row, S* line) const {
    const Stencil::Axis& columns = args_.columns();
    const std::int64_t length = columns_ + columns.taps - 1;
    const auto from_plane = stencil_detail::edge_index(plane, args_.depth().extent, args_.edge);
    const auto from_row = stencil_detail::edge_index(row, args_.rows().extent, args_.edge);
    if (from_plane < 0 || from_row < 0) {
      std::fill(line, line + length, S(0));
      return;
    }
    const std::int64_t at = x_ + from_plane * args_.depth().x + from_row * args_.rows().x;
    const std::int64_t first = first_column_ - columns.origin;
    const std::int64_t begin = std::clamp<std::int64_t>(-first, 0, length);
    const std::int64_t end = std::clamp<std::int64_t>(columns.extent - first, begin, length);
    if (args_.x.dtype == dtype_of<S> && columns.x == 1 && args_.edge == StencilEdge::zero) {
      // The same in fewer steps, for short rows.
      const S* const x = static_cast<const S*>(args_.x.data) + at + first;
      std::fill(line, line + begin, S(0));
      std::copy(x + begin, x + end, line + begin);
      std::fill(line + end, line + length, S(0));
      return;
    }
    with_elements(args_.x.dtype, [&]<class T>() {
      const T* const x = static_cast<const T*>(args_.x.data) + at;
      const auto outside = [&](std::int64_t i) {
        const auto from = stencil_detail::edge_index(first + i, columns.extent, args_.edge);
        line[i] = from < 0 ? S(0) : static_cast<S>(x[from * columns.x]);
      };
      for (std::int64_t i = 0; i < begin; ++i) outside(i);
      if (end > begin) load_inside(x + (first + begin) * columns.x, line + begin, end - begin);
      for (std::int64_t i = end; i < length; ++i) outside(i);
    });
  }

  template <class T>
  void load_inside(const T* from, S* to, std::int64_t count) const {
    if constexpr (std::is_same_v<S, float>) {
      if (args_.columns().x == 1) {
        widen_line(dtype_of<T>, from, to, count);
        return;
      }
    }
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<S>(from[i * args_.columns().x]);
  }

  /// The same where x lies, if it can be read there; otherwise `line`.
  const S* find_line(std::int64_t plane, std::int64_t row, S* line) const {
    if (!is_inside_) {
      load_line(plane, row, line);
      return line;
    }
    const auto from_plane = stencil_detail::edge_index(plane, args_.depth().extent, args_.edge);
    const auto from_row = stencil_detail::edge_index(row, args_.rows().extent, args_.edge);
    if (from_plane < 0 || from_row < 0) return zeros_;
    return static_cast<const S*>(args_.x.data) + x_ + from_plane * args_.depth().x +
           from_row * args_.rows().x + first_column_ - args_.columns().origin;
  }

  /// A line as it lies under the mask: of a separable one, summed along the row, into `line`.
  const S* make_line(std::int64_t plane, std::int64_t row, S* line) {
    const int taps = args_.columns().taps;
    const S* const weights = weights_ + args_.rows().taps;
    const bool weighs =
        args_.weights == Stencil::Weights::separable && args_.across.data != nullptr;
    if (!args_.is_separable() || (taps == 1 && !weighs)) return find_line(plane, row, line);
    const S* const from = find_line(plane, row, spare_);
    if (args_.weights == Stencil::Weights::separable) {
      weigh_line(from, weights, taps, S(1), line);
    } else {
      sum_windows(from, line);
    }
    return line;
  }

  /// Sums of 1, 2, 4 ... neighbours, of which those that make up the window's length are added: at
  /// most 8 additions for any window.
  void sum_windows(const S* sums, S* line) {
    int taps = args_.columns().taps;
    std::int64_t length = columns_ + taps - 1;
    S* next = other_;
    std::int64_t shift = 0;
    bool is_first = true;
    for (int width = 1;; width *= 2) {
      if ((taps & width) != 0) {
        if (is_first) {
          std::copy(sums, sums + columns_, line);
        } else {
          add_lines(line, sums + shift, S(1), line, columns_);
        }
        is_first = false;
        shift += width;
        taps -= width;
      }
      if (taps == 0) return;
      length -= width;
      add_lines(sums, sums + width, S(1), next, length);
      sums = next;
      next = next == other_ ? spare_ : other_;
    }
  }

  // --- rows of y ---------------------------------------------------------------------------------

  /// Where row q of a block of results is made: in y itself where it can be.
  [[nodiscard]] S* row_of_y(std::int64_t row, int q = 0) const {
    if (!direct_) return out_ + q * line_length;
    return static_cast<S*>(args_.y.data) + y_ + row * args_.rows().y + first_column_;
  }
  /// Takes a row that was made elsewhere to y.
  void store_row(std::int64_t row, int q = 0) const {
    if (direct_) return;
    const S* const out = out_ + q * line_length;
    const std::int64_t step = args_.columns().y;
    const std::int64_t at = y_ + row * args_.rows().y + first_column_ * step;
    with_elements(args_.y.dtype, [&]<class T>() {
      T* const y = static_cast<T*>(args_.y.data) + at;
      if constexpr (std::is_same_v<S, float>) {
        if (step == 1) {
          narrow_line(out, dtype_of<T>, y, columns_);
          return;
        }
        T narrow[panel];
        narrow_line(out, dtype_of<T>, narrow, columns_);
        for (std::int64_t i = 0; i < columns_; ++i) y[i * step] = narrow[i];
      } else {
        for (std::int64_t i = 0; i < columns_; ++i) y[i * step] = out[i];
      }
    });
  }

  /// A line's sums along itself.
  void weigh_line(const S* line, const S* weights, int taps, S scale, S* out) const {
    weigh_lines({.lines = &line,
                 .planes = 1,
                 .down = 1,
                 .across = taps,
                 .weights = weights,
                 .scale = scale,
                 .out = &out,
                 .rows = 1,
                 .length = columns_,
                 .streams = false});
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
                 .length = columns_,
                 .streams = streams_});
    for (int q = 0; q < rows; ++q) store_row(row + q, q);
  }
  /// As many of `rows` rows as are made together.
  static int block_of(std::int64_t rows) { return rows >= block_rows ? block_rows : 1; }

  /// Rows of one plane. Each line is made when the first mask comes to lie on it.
  void weigh_rows(std::int64_t first_row, std::int64_t rows) {
    const int taps = args_.rows().taps;
    const std::int64_t held = ring_lines(args_);
    std::int64_t made = 0;
    for (std::int64_t row = 0; row < rows; row += block_of(rows - row)) {
      const int block = block_of(rows - row);
      for (; made < row + taps + block - 1; ++made) {
        const std::int64_t at = made % held;
        found_[at] =
            make_line(plane_, first_row + made - args_.rows().origin, ring_ + at * line_length);
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
          found_[at] = make_line(first_plane + made - args_.depth().origin,
                                 first_row + i - args_.rows().origin, ring_ + at * line_length);
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
    S* const ends = ring_ + 2 * taps * line_length;
    std::int64_t made = 0;
    const auto line = [&](std::int64_t i) { return found_[i % (2 * taps)]; };
    const auto need = [&](std::int64_t count) {
      for (; made < count; ++made) {
        const std::int64_t at = made % (2 * taps);
        found_[at] =
            make_line(plane_, first_row + made - args_.rows().origin, ring_ + at * line_length);
      }
    };
    for (std::int64_t block = 0; block < rows; block += taps) {
      need(block + taps);
      const S* end = line(block + taps - 1);
      for (std::int64_t i = taps - 2; i >= 0; --i) {
        S* const sum = ends + i * line_length;
        add_lines(line(block + i), end, S(1), sum, columns_);
        end = sum;
      }
      const std::int64_t last = std::min(taps, rows - block);
      const S* sum = nullptr;  // of the next block's first lines
      for (std::int64_t i = 0; i < last; ++i) {
        S* const y = row_of_y(first_row + block + i);
        if (i == 0) {
          const S one = 1;
          weigh_line(end, &one, 1, scale_, y);
        } else {
          need(block + taps + i);
          const S* const next = line(block + taps + i - 1);
          if (i > 1) add_lines(sum, next, S(1), begins_, columns_);
          sum = i > 1 ? begins_ : next;
          const S* const rest = i == taps - 1 ? line(block + i) : ends + i * line_length;
          add_lines(rest, sum, scale_, y, columns_);
        }
        store_row(first_row + block + i);
      }
    }
  }

  const Args& args_;
  std::int64_t band_, bands_, chunk_, chunks_, panels_;
  S scale_;
  bool direct_;
  bool streams_;
  bool in_place_;           // rows of x may be read where they lie,
  bool is_inside_ = false;  // and those of this segment can be
  static constexpr int max_lines =
      Stencil::max_taps * (Stencil::max_taps + static_cast<int>(max_band_of_planes) - 1);
  const S* found_[max_lines];  // lines of the ring, or of x itself in their place
  S* zeros_ = nullptr;
  S* spare_ = nullptr;
  S* other_ = nullptr;
  S* out_ = nullptr;
  S* begins_ = nullptr;
  S* ring_ = nullptr;
  S* weights_ = nullptr;
  std::int64_t first_column_ = 0, columns_ = 0, plane_ = 0, x_ = 0, y_ = 0;
  std::int64_t y_of_array_ = 0;
};

}  // namespace rung::stencil_cpu
