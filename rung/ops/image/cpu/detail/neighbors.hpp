// SPDX-License-Identifier: Apache-2.0
// Filters with a neighborhood on a CPU. A unit of work is a band of rows, a panel of elements
// wide, of one picture - of one channel of it, where channels are planes. Its rows are lines
// (kernels.hpp), each once per band: as they are in x, or copied or gathered, with the nearest
// pixels of the border, or zeros, around the picture.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "rung/core/integer.hpp"
#include "rung/cpu/lines.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/image/cpu/detail/kernels.hpp"

namespace rung::image_cpu {

/// Elements of a panel: multiples of 1, 2, 3 and 4 channels. The lines under a small window stay in
/// L1 (3000 x 4000 x 3 u8, radius 2, one thread of a 2-core Zen 5 vCPU: 4.6 ms, 6.5 with the larger
/// panel); under a large one they do not, and long runs are better (radius 6: 14 ms, 24).
inline constexpr std::int64_t small_panel = 2040, large_panel = 4092;
inline constexpr int max_radius_of_small_panel = 3;
inline constexpr std::int64_t line_length =
    round_up(large_panel + 2 * 4 * Image::max_radius + line_slack, 64);
/// Rows of a band: those that a window reaches beyond are made again for each.
inline constexpr std::int64_t band = 128;

/// Bytes of y that the caches do not keep anyway.
inline constexpr std::int64_t worth_streaming = 8 << 20;

template <class T>
class Neighbors {
 public:
  static constexpr bool is_u8 = std::is_same_v<T, std::uint8_t>;
  /// What is between the passes of a blur.
  using Sum = std::conditional_t<is_u8, std::int16_t, float>;

  explicit Neighbors(const Image::Args& args)
      : args_(args),
        planar_(args.channels > 1 && args.from.column == 1 && args.to.column == 1),
        group_(planar_ ? 1 : args.channels),
        reach_(args.filter() == ImageFilter::sobel ? 1 : args.radius),
        elements_(args.columns * group_),
        panel_(reach_ <= max_radius_of_small_panel ? small_panel : large_panel),
        bands_(ceil_div(args.rows, band)),
        panels_(ceil_div(elements_, panel_)),
        loads_directly_(lies_beside(args.from)),
        stores_directly_(lies_beside(args.to)),
        streams_(bytes_of(args.y.size()) >= worth_streaming) {
    for (int k = -args.radius; k <= args.radius; ++k)
      weights_[k + args.radius] = args.blur[std::abs(k)];
  }

  [[nodiscard]] std::int64_t units() const {
    return args_.pictures.size() * (planar_ ? args_.channels : 1) * bands_ * panels_;
  }

  /// Bytes that a thread needs: a ring of lines, of x or between the passes, and four more.
  static std::int64_t scratch_bytes(const Image::Args& args) {
    constexpr std::int64_t element = is_u8 ? sizeof(Sum) : sizeof(float);
    return (std::max(args.taps(), 3) + 1 + 4) * line_length * element;
  }

  void work(cpu::Range share, void* scratch) {
    auto* next = static_cast<std::byte*>(scratch);
    const auto take = [&](auto*& lines, std::int64_t count) {
      lines = reinterpret_cast<std::remove_reference_t<decltype(lines)>>(next);
      next += count * line_length * static_cast<std::int64_t>(sizeof(*lines));
    };
    take(sums_, 1);
    take(other_sums_, 1);
    take(line_, 1);
    take(out_, 1);
    ring_ = next;
    for (std::int64_t unit = share.begin; unit < share.end; ++unit) {
      first_ = unit % panels_ * panel_;
      count_ = std::min(panel_, elements_ - first_);
      std::int64_t rest = unit / panels_;
      const std::int64_t first_row = rest % bands_ * band;
      const std::int64_t rows = std::min(band, args_.rows - first_row);
      rest /= bands_;
      plane_ = planar_ ? static_cast<int>(rest % args_.channels) : 0;
      std::int64_t picture[2];
      args_.pictures.offsets(planar_ ? rest / args_.channels : rest, picture);
      x_ = static_cast<const T*>(args_.x.data) + picture[0] + plane_ * args_.from.channel;
      y_ = static_cast<T*>(args_.y.data) + picture[1] + plane_ * args_.to.channel;
      filter(first_row, rows);
    }
    if (streams_) cpu::end_streams();
  }

 private:
  [[nodiscard]] bool lies_beside(const Image::Strides& strides) const {
    return (group_ == 1 || strides.channel == 1) && strides.column == group_;
  }

  static constexpr std::int64_t bytes_of(std::int64_t elements) {
    return elements * static_cast<std::int64_t>(sizeof(T));
  }

  // --- lines -------------------------------------------------------------------------------------

  /// Row `row`, which may be outside, from the window's first element of the panel on: where it
  /// lies, if everything that kernels read is in that row, or made in `buffer`.
  const T* line_at(std::int64_t row, T* buffer) const {
    const std::int64_t halo = std::int64_t{reach_} * group_;
    const std::int64_t length = count_ + 2 * halo;
    const std::int64_t first = first_ - halo;
    const bool is_zero = args_.options.edge == ImageEdge::zero;
    if (is_zero && (row < 0 || row >= args_.rows)) {
      std::fill_n(buffer, length, T{0});
      return buffer;
    }
    const T* const from = x_ + std::clamp<std::int64_t>(row, 0, args_.rows - 1) * args_.from.row;
    if (reads_in_place(first, length)) return from + first;
    const std::int64_t begin = std::max<std::int64_t>(-first, 0);
    const std::int64_t end = std::min(elements_ - first, length);
    if (loads_directly_) {
      const T* const beside = from + first + begin;
      const T* const next = row < args_.rows - 1 ? beside + args_.from.row : nullptr;
      cpu::copy_line(beside, buffer + begin, bytes_of(end - begin), next);
    } else {
      std::int64_t i = begin;
      for (std::int64_t column = (first + begin) / group_; i < end; ++column) {
        const T* const pixel = from + column * args_.from.column;
        for (int c = 0; c < group_; ++c) buffer[i++] = pixel[c * args_.from.channel];
      }
    }
    if (is_zero) {
      std::fill_n(buffer, begin, T{0});
      std::fill(buffer + end, buffer + length, T{0});
    } else {
      for (std::int64_t i = begin - 1; i >= 0; --i) buffer[i] = buffer[i + group_];
      for (std::int64_t i = end; i < length; ++i) buffer[i] = buffer[i - group_];
    }
    return buffer;
  }
  [[nodiscard]] bool reads_in_place(std::int64_t first, std::int64_t length) const {
    return loads_directly_ && first >= 0 && first + length + line_slack <= elements_;
  }
  /// The row after one that is read in place, to be prefetched; null where there is none.
  [[nodiscard]] const T* next_line(const T* line, const T* buffer, std::int64_t row) const {
    return line != buffer && row >= 0 && row < args_.rows - 1 ? line + args_.from.row : nullptr;
  }

  void store_row(std::int64_t row, const T* from) const {
    T* const to = y_ + row * args_.to.row;
    if (stores_directly_) {
      if (streams_) {
        cpu::stream_line(from, to + first_, bytes_of(count_));
      } else {
        cpu::copy_line(from, to + first_, bytes_of(count_));
      }
      return;
    }
    std::int64_t i = 0;
    for (std::int64_t column = first_ / group_; i < count_; ++column) {
      T* const pixel = to + column * args_.to.column;
      for (int c = 0; c < group_; ++c) pixel[c * args_.to.channel] = from[i++];
    }
  }

  /// `x` is the row's line from its first element in the picture on.
  void copy_alpha(const T* x) const {
    const int alpha = args_.copied_alpha();
    if (alpha < 0) return;
    if (!planar_) {
      for (std::int64_t i = alpha; i < count_; i += group_) out_[i] = x[i];
    } else if (plane_ == alpha) {
      std::copy_n(x, count_, out_);
    }
  }

  // --- filters -----------------------------------------------------------------------------------

  void filter(std::int64_t first_row, std::int64_t rows) {
    if (args_.filter() == ImageFilter::sobel) return sobel_rows(first_row, rows);
    if constexpr (is_u8) {
      if (args_.filter() == ImageFilter::box) return box_rows(first_row, rows);
    }
    blur_rows(first_row, rows);
  }

  /// Along each row once, then down the last 2 radius + 1 of these.
  void blur_rows(std::int64_t first_row, std::int64_t rows) {
    const int taps = args_.taps();
    auto* const ring = reinterpret_cast<Sum*>(ring_);
    const Sum* lines[2 * Image::max_radius + 1];
    const auto slot = [&](std::int64_t row) { return ring + row % taps * line_length; };
    for (std::int64_t row = 0; row < rows; ++row) {
      for (int k = row == 0 ? 0 : taps - 1; k < taps; ++k) {
        const std::int64_t from = first_row + row + k - reach_;
        const T* const line = line_at(from, line_);
        along(line, slot(row + k), next_line(line, line_, from));
      }
      for (int k = 0; k < taps; ++k) lines[k] = slot(row + k);
      down(lines);
      if (args_.filter() == ImageFilter::unsharp) {
        const T* const x = line_at(first_row + row, line_) + std::int64_t{reach_} * group_;
        sharpen(x, out_, args_, out_, count_);
        copy_alpha(x);
      }
      store_row(first_row + row, out_);
    }
  }
  void along(const T* line, Sum* sums, const T* next) const {
    if constexpr (is_u8) {
      weigh_along(line, group_, args_, sums, count_, next);
    } else {
      const float* shifted[2 * Image::max_radius + 1];
      for (int k = 0; k < args_.taps(); ++k) shifted[k] = line + k * group_;
      weigh(shifted, weights_, args_.taps(), 1, sums, count_);
    }
  }
  void down(const Sum* const* lines) const {
    if constexpr (is_u8) {
      weigh_down(lines, args_, out_, count_);
    } else {
      const auto area = static_cast<float>(args_.taps() * args_.taps());
      const float scale = args_.filter() == ImageFilter::box ? 1 / area : 1;
      weigh(lines, weights_, args_.taps(), scale, out_, count_);
    }
  }

  /// Column sums from one row to the next: a row enters, another leaves. Whole numbers lose nothing
  /// by it.
  void box_rows(std::int64_t first_row, std::int64_t rows) {
    const int taps = args_.taps();
    const std::int64_t length = count_ + 2 * std::int64_t{reach_} * group_;
    auto* const ring = reinterpret_cast<T*>(ring_);
    const T* lines[2 * Image::max_radius + 2];
    std::fill_n(sums_, line_length, std::uint16_t{0});
    for (std::int64_t row = 0; row < rows; ++row) {
      for (int k = row == 0 ? 0 : taps - 1; k < taps; ++k) {
        const std::int64_t from = first_row + row + k - reach_;
        const std::int64_t slot = (row + k) % (taps + 1);
        T* const buffer = ring + slot * line_length;
        lines[slot] = line_at(from, buffer);
        slide(sums_, lines[slot], row == 0 ? nullptr : lines[(row - 1) % (taps + 1)], length,
              next_line(lines[slot], buffer, from));
      }
      mean_along(sums_, group_, args_.radius, args_.options.truncate, other_sums_, out_, count_);
      store_row(first_row + row, out_);
    }
  }

  void sobel_rows(std::int64_t first_row, std::int64_t rows) {
    auto* const ring = reinterpret_cast<T*>(ring_);
    const T* lines[3];
    for (std::int64_t row = 0; row < rows; ++row) {
      for (int k = row == 0 ? 0 : 2; k < 3; ++k) {
        lines[(row + k) % 3] = line_at(first_row + row + k - 1, ring + (row + k) % 3 * line_length);
      }
      const T* const middle = lines[(row + 1) % 3];
      const T* const last = lines[(row + 2) % 3];
      const T* const next =
          next_line(last, ring + (row + 2) % 3 * line_length, first_row + row + 1);
      sobel({lines[row % 3], middle, last}, group_, out_, count_, next);
      copy_alpha(middle + group_);
      store_row(first_row + row, out_);
    }
  }

  const Image::Args& args_;
  bool planar_;  // channels are planes; else a line holds them all
  int group_;    // channels of a line
  int reach_;    // of a window
  std::int64_t elements_;
  std::int64_t panel_, bands_, panels_;
  bool loads_directly_, stores_directly_;
  bool streams_;
  float weights_[2 * Image::max_radius + 1];
  std::uint16_t* sums_ = nullptr;
  std::uint16_t* other_sums_ = nullptr;
  T* line_ = nullptr;
  T* out_ = nullptr;
  std::byte* ring_ = nullptr;
  std::int64_t first_ = 0, count_ = 0;
  int plane_ = 0;
  const T* x_ = nullptr;
  T* y_ = nullptr;
};

}  // namespace rung::image_cpu
