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
/// Rows of a band: the rows of a mask are converted anew for each.
inline constexpr std::int64_t band = 128;

/// One iteration of one call; S is the type of the sums.
template <class S>
class Step {
 public:
  explicit Step(const Args& args)
      : args_(args),
        bands_(ceil_div(args.rows().extent, band)),
        panels_(ceil_div(args.columns().extent, panel)),
        scale_(static_cast<S>(args.scale)),
        direct_(args.y.dtype == dtype_of<S> && args.columns().y == 1) {}

  /// Whatever the number of threads, so that sums are made in the same order.
  [[nodiscard]] std::int64_t units() const {
    return args_.arrays() * args_.depth().extent * bands_ * panels_;
  }

  /// Elements of S that a thread needs: the ring, the weights, and lines for what is in between.
  static std::int64_t scratch_elements(const Args& args) {
    const std::int64_t under = args.depth().taps * args.rows().taps;
    const std::int64_t ring = args.weights == Stencil::Weights::ones ? 3 * under : under;
    return (ring + 4) * line_length + weights_of(args);
  }

  void work(cpu::Range share, S* scratch) {
    spare_ = scratch;
    other_ = spare_ + line_length;
    out_ = other_ + line_length;
    begins_ = out_ + line_length;
    ring_ = begins_ + line_length;
    if (share.size() <= 0) return;
    weights_ = scratch + scratch_elements(args_) - weights_of(args_);
    copy_weights();
    for (std::int64_t unit = share.begin; unit < share.end; ++unit) {
      first_column_ = unit % panels_ * panel;
      columns_ = std::min(panel, args_.columns().extent - first_column_);
      std::int64_t rest = unit / panels_;
      const std::int64_t first_row = rest % bands_ * band;
      const std::int64_t rows = std::min(band, args_.rows().extent - first_row);
      rest /= bands_;
      plane_ = rest % args_.depth().extent;
      std::int64_t at[2];
      args_.batch.offsets(rest / args_.depth().extent, at);
      x_ = at[0];
      y_ = at[1] + plane_ * args_.depth().y;
      if (args_.weights == Stencil::Weights::ones && args_.rows().taps > 3) {
        block_sums(first_row, rows);
      } else {
        weigh_rows(first_row, rows);
      }
    }
  }

 private:
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

  /// A line as the ring holds it: of a separable mask, summed along the row.
  void make_line(std::int64_t plane, std::int64_t row, S* line) {
    const int taps = args_.columns().taps;
    if (!args_.is_separable() || taps == 1) {
      load_line(plane, row, line);
      if (args_.is_separable() && args_.across.data != nullptr) {
        const S* one = line;
        weigh_lines(&one, 1, weights_ + args_.rows().taps, 1, S(1), line, columns_);
      }
      return;
    }
    load_line(plane, row, spare_);
    if (args_.weights == Stencil::Weights::separable) {
      const S* one = spare_;
      weigh_lines(&one, 1, weights_ + args_.rows().taps, taps, S(1), line, columns_);
    } else {
      sum_windows(line);
    }
  }

  /// Sums of 1, 2, 4 ... neighbours from spare_, of which those that make up the window's length
  /// are added: at most 8 additions for any window.
  void sum_windows(S* line) {
    int taps = args_.columns().taps;
    std::int64_t length = columns_ + taps - 1;
    S* sums = spare_;
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
      std::swap(sums, next);
    }
  }

  // --- rows of y ---------------------------------------------------------------------------------

  /// Where a row of results is made: in y itself where it can be.
  [[nodiscard]] S* row_of_y(std::int64_t row) const {
    if (!direct_) return out_;
    return static_cast<S*>(args_.y.data) + y_ + row * args_.rows().y + first_column_;
  }
  /// Takes a row that was made elsewhere to y.
  void store_row(std::int64_t row) const {
    if (direct_) return;
    const std::int64_t step = args_.columns().y;
    const std::int64_t at = y_ + row * args_.rows().y + first_column_ * step;
    with_elements(args_.y.dtype, [&]<class T>() {
      T* const y = static_cast<T*>(args_.y.data) + at;
      if constexpr (std::is_same_v<S, float>) {
        if (step == 1) {
          narrow_line(out_, dtype_of<T>, y, columns_);
          return;
        }
        T narrow[panel];
        narrow_line(out_, dtype_of<T>, narrow, columns_);
        for (std::int64_t i = 0; i < columns_; ++i) y[i * step] = narrow[i];
      } else {
        for (std::int64_t i = 0; i < columns_; ++i) y[i * step] = out_[i];
      }
    });
  }

  /// Each row from the lines under the mask.
  void weigh_rows(std::int64_t first_row, std::int64_t rows) {
    const int depth = args_.depth().taps;
    const int taps = args_.rows().taps;
    const S* lines[Stencil::max_taps * Stencil::max_taps];
    for (std::int64_t row = 0; row < rows; ++row) {
      // All lines of the first row, and one of each plane for every further one.
      for (int k = 0; k < depth; ++k) {
        S* const ring = ring_ + k * taps * line_length;
        for (int i = row == 0 ? 0 : taps - 1; i < taps; ++i) {
          make_line(plane_ + k - args_.depth().origin, first_row + row + i - args_.rows().origin,
                    ring + (row + i) % taps * line_length);
        }
        for (int i = 0; i < taps; ++i) {
          lines[k * taps + i] = ring + (row + i) % taps * line_length;
        }
      }
      const int along = args_.is_separable() ? 1 : args_.columns().taps;
      weigh_lines(lines, depth * taps, weights_, along, scale_, row_of_y(first_row + row),
                  columns_);
      store_row(first_row + row);
    }
  }

  /// Windows of rows as blocks from their ends (see 035_block_sums.cpp), whole lines at a time.
  void block_sums(std::int64_t first_row, std::int64_t rows) {
    const std::int64_t taps = args_.rows().taps;
    S* const ends = ring_ + 2 * taps * line_length;
    std::int64_t made = 0;
    const auto line = [&](std::int64_t i) { return ring_ + i % (2 * taps) * line_length; };
    const auto need = [&](std::int64_t count) {
      for (; made < count; ++made) {
        make_line(plane_, first_row + made - args_.rows().origin, line(made));
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
          weigh_lines(&end, 1, &one, 1, scale_, y, columns_);
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
  std::int64_t bands_, panels_;
  S scale_;
  bool direct_;
  S* spare_ = nullptr;
  S* other_ = nullptr;
  S* out_ = nullptr;
  S* begins_ = nullptr;
  S* ring_ = nullptr;
  S* weights_ = nullptr;
  std::int64_t first_column_ = 0, columns_ = 0, plane_ = 0, x_ = 0, y_ = 0;
};

}  // namespace rung::stencil_cpu
