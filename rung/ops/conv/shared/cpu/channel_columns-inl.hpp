// SPDX-License-Identifier: Apache-2.0
// A gathered layer by tiles with channels as columns, for channels last: panels hold the weights of
// 64 filters, packed once; the rows are pixels, whose channels are contiguous where they lie. Where
// there are few of them, or they are of a small type, the terms of 48 pixels are gathered first.
#if defined(RUNG_OPS_CONV_CPU_CHANNEL_COLUMNS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_CONV_CPU_CHANNEL_COLUMNS_INL_HPP_
#undef RUNG_OPS_CONV_CPU_CHANNEL_COLUMNS_INL_HPP_
#else
#define RUNG_OPS_CONV_CPU_CHANNEL_COLUMNS_INL_HPP_
#endif

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "rung/core/integer.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/conv/shared/cpu/gather-inl.hpp"
#include "rung/ops/conv/shared/cpu/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Terms of a panel: 32 KiB of them, which L1 holds beside the rows.
template <class T>
constexpr std::int64_t chunk_terms = 32768 /
                                     static_cast<std::int64_t>(panel_columns<T> * sizeof(T));
/// Rows of sums that stay in L2 beside that: filters, or pixels.
constexpr std::int64_t max_filters = 512;
constexpr std::int64_t strip_pixels = 48;
/// Fewer channels than this are gathered, for pointers would change too often.
constexpr std::int64_t few_channels = 8;

inline std::int64_t even_chunk(std::int64_t count, std::int64_t max) {
  return count == 0 ? 1 : ceil_div(count, ceil_div(count, max));
}

template <class T, class In>
class ChannelColumns {
 public:
  explicit ChannelColumns(const Gathered& g, int)
      : g_(g),
        direct_(std::is_same_v<T, In> && g.x_strides[1] == 1 && g.q >= few_channels),
        chunk_(direct_ ? even_chunk(g.q, chunk_terms<T>) : even_chunk(g.terms(), chunk_terms<T>)),
        strips_(ceil_div(g.pixels(), strip_pixels)),
        blocks_(ceil_div(g.m, std::int64_t{columns})),
        inside_{inside(g.axis[0]), inside(g.axis[1]), inside(g.axis[2])} {}

  [[nodiscard]] std::size_t weight_bytes() const {
    return conv_layer::bytes_of<T>({g_.groups, blocks_, g_.terms(), columns});
  }
  [[nodiscard]] std::size_t thread_bytes() const {
    const std::int64_t rows = direct_ ? chunk_ : strip_pixels * chunk_;
    return static_cast<std::size_t>(round_up(rows, 64) + strip_pixels * columns) * sizeof(T) +
           static_cast<std::size_t>(round_up(places(), 64)) * sizeof(std::int64_t);
  }

  void run(const cpu::Team& team, std::byte* memory) const {
    T* packed = reinterpret_cast<T*>(memory);
    const cpu::Range panels = team.share(g_.groups * blocks_);
    for (std::int64_t i = panels.begin; i < panels.end; ++i) pack(i, packed);
    T* rows = reinterpret_cast<T*>(memory + weight_bytes() +
                                   static_cast<std::size_t>(team.rank()) * thread_bytes());
    T* sums = rows + (direct_ ? round_up(chunk_, 64) : round_up(strip_pixels * chunk_, 64));
    auto* const places = reinterpret_cast<std::int64_t*>(sums + strip_pixels * columns);
    if (this->places() != 0) set_places(places);
    if (direct_) std::memset(rows, 0, static_cast<std::size_t>(chunk_) * sizeof(T));
    team.wait();
    const cpu::Range share = team.share(g_.groups * strips_ * blocks_);
    for (std::int64_t task = share.begin; task < share.end; ++task) {
      const std::int64_t block = task % blocks_;
      const std::int64_t group = task / blocks_ / strips_;
      make(group, block, task / blocks_ % strips_ * strip_pixels,
           packed + (group * blocks_ + block) * g_.terms() * columns, places, rows, sums);
    }
  }

 private:
  static constexpr int columns = panel_columns<T>;

  /// [tap][channel][filter], zeros beyond the last filter.
  void pack(std::int64_t index, T* packed) const {
    const std::int64_t first = index % blocks_ * columns;
    const int count = static_cast<int>(std::min<std::int64_t>(columns, g_.m - first));
    const In* from =
        static_cast<const In*>(g_.w) + index / blocks_ * g_.w_group + first * g_.w_strides[0];
    T* to = packed + index * g_.terms() * columns;
    for (std::int64_t t0 = 0; t0 < g_.axis[0].kernel; ++t0) {
      for (std::int64_t t1 = 0; t1 < g_.axis[1].kernel; ++t1) {
        for (std::int64_t t2 = 0; t2 < g_.axis[2].kernel; ++t2) {
          const In* tap = from + t0 * g_.w_strides[2] + t1 * g_.w_strides[3] + t2 * g_.w_strides[4];
          pack_tap(tap, count, to);
          to += g_.q * columns;
        }
      }
    }
  }

  /// [channel][filter] of a tap.
  void pack_tap(const In* tap, int count, T* to) const {
    const std::int64_t filter = g_.w_strides[0];
    const std::int64_t channel = g_.w_strides[1];
    if (count < columns) std::memset(to, 0, static_cast<std::size_t>(g_.q * columns) * sizeof(T));
    if (filter == 1) {
      for (std::int64_t q = 0; q < g_.q; ++q) {
        copy_strided(to + q * columns, tap + q * channel, 1, count);
      }
      return;
    }
    int j = 0;
    if (channel == 1 && g_.q >= lanes_of<T>) {
      for (; j + 4 <= count; j += 4)
        transpose_four(tap + j * filter, filter, g_.q, to + j, columns);
    }
    for (; j < count; ++j) {
      for (std::int64_t q = 0; q < g_.q; ++q) {
        to[q * columns + j] = static_cast<T>(tap[q * channel + j * filter]);
      }
    }
  }

  /// A pixel's image, and where it is in it.
  struct Pixel {
    const In* image;
    std::int64_t o[3];
    bool inside;  // as are all of its taps
  };

  [[nodiscard]] const In* tap_of(const Pixel& pixel, const std::int64_t (&t)[3]) const {
    const In* at = pixel.image;
    for (int axis = 0; axis < 3; ++axis) {
      const std::int64_t from = g_.axis[axis].source(pixel.o[axis], t[axis]);
      if (from < 0) return nullptr;
      at += from * g_.x_strides[2 + axis];
    }
    return at;
  }

  void make(std::int64_t group, std::int64_t block, std::int64_t first, const T* panel,
            const std::int64_t* places, T* rows, T* sums) const {
    Pixel pixels[strip_pixels];
    const std::int64_t count = std::min(strip_pixels, g_.pixels() - first);
    const int filters = static_cast<int>(std::min<std::int64_t>(columns, g_.m - block * columns));
    Run run[strip_pixels];
    const int run_count = runs_of(g_, first, static_cast<int>(count), run);
    for (int r = 0; r < run_count; ++r) {
      const In* image = static_cast<const In*>(g_.x) + run[r].n * g_.x_strides[0] +
                        group * g_.q * g_.x_strides[1];
      const auto within = [&](int axis, std::int64_t o) {
        return g_.axis[axis].divisor == 1 && inside_[axis].begin <= o && o < inside_[axis].end;
      };
      const bool rows_within = within(0, run[r].o[0]) && within(1, run[r].o[1]);
      for (int i = 0; i < run[r].count; ++i) {
        const std::int64_t o = run[r].o[2] + i;
        pixels[run[r].column + i] = {
            image, {run[r].o[0], run[r].o[1], o}, rows_within && within(2, o)};
      }
    }
    if (g_.terms() == 0) {
      std::memset(sums, 0, static_cast<std::size_t>(count * columns) * sizeof(T));
    } else if (direct_) {
      multiply_in_place(pixels, count, filters, panel, rows, sums);
    } else {
      multiply_gathered(pixels, count, filters, panel, places, rows, sums);
    }
    finish(group * g_.m + block * columns, filters, count, sums);
    In* y = static_cast<In*>(g_.y) + (group * g_.m + block * columns) * g_.y_strides[1];
    for (int r = 0; r < run_count; ++r) {
      In* to = y + run[r].n * g_.y_strides[0] + run[r].o[0] * g_.y_strides[2] +
               run[r].o[1] * g_.y_strides[3] + run[r].o[2] * g_.y_strides[4];
      for (int i = 0; i < run[r].count; ++i, to += g_.y_strides[4]) {
        store_strided(sums + (run[r].column + i) * columns, to, g_.y_strides[1], filters);
      }
    }
  }

  void multiply_in_place(const Pixel* pixels, std::int64_t count, int filters, const T* panel,
                         const T* zeros, T* sums) const {
    if constexpr (std::is_same_v<T, In>) {
      const T* from[strip_pixels];
      bool add = false;
      std::int64_t t[3];
      for (t[0] = 0; t[0] < g_.axis[0].kernel; ++t[0]) {
        for (t[1] = 0; t[1] < g_.axis[1].kernel; ++t[1]) {
          for (t[2] = 0; t[2] < g_.axis[2].kernel; ++t[2]) {
            for (std::int64_t i = 0; i < count; ++i) from[i] = tap_of(pixels[i], t);
            for (std::int64_t q = 0; q < g_.q; q += chunk_, add = true) {
              const std::int64_t terms = std::min(chunk_, g_.q - q);
              multiply(count, filters, terms, panel, sums, add,
                       [&](std::int64_t i) { return from[i] == nullptr ? zeros : from[i] + q; });
              panel += terms * columns;
            }
          }
        }
      }
    }
  }

  void multiply_gathered(const Pixel* pixels, std::int64_t count, int filters, const T* panel,
                         const std::int64_t* places, T* rows, T* sums) const {
    for (std::int64_t term = 0; term < g_.terms(); term += chunk_) {
      const std::int64_t terms = std::min(chunk_, g_.terms() - term);
      for (std::int64_t i = 0; i < count; ++i)
        gather_row(pixels[i], term, terms, places, rows + i * chunk_);
      multiply(count, filters, terms, panel, sums, term != 0,
               [&](std::int64_t i) { return rows + i * chunk_; });
      panel += terms * columns;
    }
  }

  /// Terms of a pixel, in the order t0 t1 t2 q.
  void gather_row(const Pixel& pixel, std::int64_t term, std::int64_t terms,
                  const std::int64_t* places, T* to) const {
    if (pixel.inside && this->places() != 0) {
      const In* from = pixel.image;
      for (int axis = 0; axis < 3; ++axis) {
        from += pixel.o[axis] * g_.axis[axis].step * g_.x_strides[2 + axis];
      }
      for (std::int64_t i = 0; i < terms; ++i) to[i] = static_cast<T>(from[places[term + i]]);
      return;
    }
    std::int64_t q = term % g_.q;
    std::int64_t rest = term / g_.q;
    std::int64_t t[3];
    for (int axis = 2; axis >= 0; --axis) {
      t[axis] = rest % g_.axis[axis].kernel;
      rest /= g_.axis[axis].kernel;
    }
    while (terms > 0) {
      const int some = static_cast<int>(std::min(terms, g_.q - q));
      const In* from = tap_of(pixel, t);
      if (from == nullptr) {
        for (int i = 0; i < some; ++i) to[i] = T{0};
      } else if (g_.q < few_channels) {
        for (int i = 0; i < some; ++i) to[i] = static_cast<T>(from[(q + i) * g_.x_strides[1]]);
      } else {
        copy_strided(to, from + q * g_.x_strides[1], g_.x_strides[1], some);
      }
      to += some;
      terms -= some;
      q = 0;
      for (int axis = 2; axis >= 0; --axis) {
        if (++t[axis] < g_.axis[axis].kernel) break;
        t[axis] = 0;
      }
    }
  }

  /// Where terms are, from the element that o step is.
  void set_places(std::int64_t* to) const {
    for (std::int64_t t0 = 0; t0 < g_.axis[0].kernel; ++t0) {
      for (std::int64_t t1 = 0; t1 < g_.axis[1].kernel; ++t1) {
        for (std::int64_t t2 = 0; t2 < g_.axis[2].kernel; ++t2) {
          const std::int64_t t[3] = {t0, t1, t2};
          std::int64_t at = 0;
          for (int axis = 0; axis < 3; ++axis) {
            at += (g_.axis[axis].start + t[axis] * g_.axis[axis].between) * g_.x_strides[2 + axis];
          }
          for (std::int64_t q = 0; q < g_.q; ++q) *to++ = at + q * g_.x_strides[1];
        }
      }
    }
  }

  void finish(std::int64_t filter, int filters, std::int64_t count, T* sums) const {
    const hn::ScalableTag<T> d;
    if (g_.bias == nullptr && g_.activation == Activation::none) return;
    T bias[columns] = {};
    copy_bias<T, In>(g_, filter, filters, bias);
    for (std::int64_t i = 0; i < count; ++i, sums += columns) {
      for (int j = 0; j < filters; j += lanes_of<T>) {
        hn::StoreU(hn::Add(hn::LoadU(d, sums + j), hn::LoadU(d, bias + j)), d, sums + j);
      }
      activate(g_.activation, sums, static_cast<int>(round_up(filters, lanes_of<T>)));
    }
  }

  const Gathered& g_;
  /// Terms whose places are kept; of larger filters none, so that a thread's memory is bounded.
  [[nodiscard]] std::int64_t places() const {
    constexpr std::int64_t max_places = 1 << 14;
    return !direct_ && g_.q < few_channels && g_.terms() <= max_places ? g_.terms() : 0;
  }

  bool direct_;
  std::int64_t chunk_;
  std::int64_t strips_;
  std::int64_t blocks_;
  cpu::Range inside_[3];  // pixels all of whose taps are within the image
};

}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
