// SPDX-License-Identifier: Apache-2.0
// Rows of x as lines (kernels.hpp): in the type of the sums, with their edges resolved; of a
// separable mask, summed along the row. Where a row is as it is needed, it is read in place.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "rung/core/integer.hpp"
#include "rung/cpu/prefetch.hpp"
#include "rung/ops/stencil/cpu/detail/kernels.hpp"
#include "rung/ops/stencil/op/edge.hpp"

namespace rung::stencil_cpu {

using Args = Stencil::Args;

/// Columns of a unit of work, at most. 16 KiB of f32 are four pages, so that prefetchers run on:
/// 4096 x 4096 f32, 3 x 3, one thread of a 2-core Zen 5 vCPU, all rows through lines: 11.2 ms with
/// 1024, 8.0 with 4096, 7.8 with 8192. Of a high window half as many, for the lines that
/// block_sums() holds to stay in L2 for the most part.
inline constexpr std::int64_t max_panel = 4096;
inline std::int64_t panel_of(const Args& args) {
  return args.weights == Stencil::Weights::ones && args.rows().taps > 3 ? 2048 : max_panel;
}

/// Columns of rows that are worth being cut into what has edges and what has none.
inline constexpr std::int64_t worth_segments = 512;

/// f<T>() for the types of element whose sums are S.
template <class S, class F>
void with_elements(DType type, F&& f) {
  if constexpr (std::is_same_v<S, double>) {
    f.template operator()<double>();
  } else {
    visit<float, f16, bf16, std::uint8_t>(type, f);
  }
}

/// Adjacent columns of an array.
struct Segment {
  std::int64_t first = 0, columns = 0;
  bool is_inside = false;  // all taps are inside the array, and rows of x may be read in place
};

template <class S>
class Lines {
 public:
  explicit Lines(const Args& args)
      : args_(args),
        in_place_(args.x.dtype == dtype_of<S> && args.columns().x == 1 &&
                  args.columns().extent >= worth_segments),
        length_(length_of(args)) {}

  /// Elements from one line to the next: no multiple of 4 KiB, which would let lines compete for
  /// one set of L1.
  static std::int64_t length_of(const Args& args) {
    const std::int64_t columns = std::min(panel_of(args), args.columns().extent);
    return round_up<std::int64_t>(columns + args.columns().taps + line_slack, 32) + 16;
  }
  static std::int64_t scratch_elements(const Args& args) { return 2 * length_of(args); }

  /// `across`: the weights along a row of a separable mask.
  void use(S* scratch, const S* across) {
    spare_ = scratch;
    zeros_ = spare_ + length_;
    across_ = across;
    std::fill_n(zeros_, length_, S(0));
  }

  /// Calls f(segment) for the columns of a panel: those whose taps are all inside the array, as far
  /// as cache lines go, and those left and right of them.
  template <class F>
  void for_each_segment(std::int64_t index, F&& f) const {
    const Stencil::Axis& columns = args_.columns();
    const std::int64_t first = index * panel_of(args_);
    const std::int64_t last = std::min(first + panel_of(args_), columns.extent);
    std::int64_t begin = last;
    std::int64_t end = last;
    if (in_place_) {
      constexpr std::int64_t unit = 64 / sizeof(S);
      const std::int64_t inside =
          std::min(last, columns.extent - (columns.taps - 1 - columns.origin));
      begin = std::min(std::max(first, round_up<std::int64_t>(columns.origin, unit)), last);
      end = begin + std::max<std::int64_t>(0, inside - begin) / unit * unit;
    }
    const std::int64_t ends[] = {first, begin, end, last};
    for (int i = 0; i < 3; ++i) {
      if (ends[i] < ends[i + 1]) f(Segment{ends[i], ends[i + 1] - ends[i], in_place_ && i == 1});
    }
  }

  /// Lines are from now on of these columns of the array that begins with element x.
  void go_to(std::int64_t x, const Segment& segment) {
    x_ = x;
    segment_ = segment;
  }

  /// Row `row` of plane `plane` - both may be outside - in `line` or in place.
  const S* make(std::int64_t plane, std::int64_t row, S* line) const {
    const int taps = args_.columns().taps;
    if (args_.weights == Stencil::Weights::separable) {
      weigh(find(plane, row, spare_), across_, taps, S(1), line);
      return line;
    }
    if (args_.weights == Stencil::Weights::mask || taps == 1) return find(plane, row, line);
    prefetch(plane, row + 2);
    sum_windows(find(plane, row, spare_), taps, line, segment_.columns);
    return line;
  }

  /// A line's sums along itself.
  void weigh(const S* line, const S* weights, int taps, S scale, S* out) const {
    weigh_lines({.lines = &line,
                 .planes = 1,
                 .down = 1,
                 .across = taps,
                 .weights = weights,
                 .scale = scale,
                 .out = &out,
                 .rows = 1,
                 .length = segment_.columns,
                 .streams = false});
  }

 private:
  /// Of short pieces of rows, the next begins before the processor's own prefetching has seen one.
  void prefetch(std::int64_t plane, std::int64_t row) const {
    if (!segment_.is_inside) return;
    const S* const line = find(plane, row, nullptr);
    constexpr std::int64_t step = 64 / sizeof(S);
    for (std::int64_t i = 0; i < segment_.columns; i += step) cpu::ask_for_line(line + i, true);
  }

  /// A row before any sums.
  const S* find(std::int64_t plane, std::int64_t row, S* line) const {
    const std::int64_t length = segment_.columns + args_.columns().taps - 1;
    const auto from_plane = stencil_detail::edge_index(plane, args_.depth().extent, args_.edge);
    const auto from_row = stencil_detail::edge_index(row, args_.rows().extent, args_.edge);
    if (from_plane < 0 || from_row < 0) return zeros_;
    const std::int64_t at = x_ + from_plane * args_.depth().x + from_row * args_.rows().x;
    const std::int64_t first = segment_.first - args_.columns().origin;
    if (segment_.is_inside) return static_cast<const S*>(args_.x.data) + at + first;
    load(at, first, length, line);
    return line;
  }

  /// Columns from `first` on, some of them outside, of the row that begins with element `at`.
  void load(std::int64_t at, std::int64_t first, std::int64_t length, S* line) const {
    const Stencil::Axis& columns = args_.columns();
    const std::int64_t begin = std::clamp<std::int64_t>(-first, 0, length);
    const std::int64_t end = std::clamp<std::int64_t>(columns.extent - first, begin, length);
    with_elements<S>(args_.x.dtype, [&]<class T>() {
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

  const Args& args_;
  bool in_place_;
  std::int64_t length_;
  std::int64_t x_ = 0;
  Segment segment_;
  S* spare_ = nullptr;
  S* zeros_ = nullptr;
  const S* across_ = nullptr;
};

}  // namespace rung::stencil_cpu
