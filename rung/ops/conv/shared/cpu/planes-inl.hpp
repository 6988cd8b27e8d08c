// SPDX-License-Identifier: Apache-2.0
// A gathered layer by tiles of filters times pixels, from padded planes: what a band of rows needs
// of an image is copied once, with the padding around it, and each tap of each pixel is then an
// unaligned vector of that copy, at an offset that depends on the tap alone.
//
// With a stride of s, a plane is stored as s x s planes of every s-th place, so that neighboring
// pixels still are beside each other. Pixels are counted through the rows of a band as they are in
// the planes: what a row has more there than pixels is multiplied for nothing.
#if defined(RUNG_OPS_CONV_CPU_PLANES_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_CONV_CPU_PLANES_INL_HPP_
#undef RUNG_OPS_CONV_CPU_PLANES_INL_HPP_
#else
#define RUNG_OPS_CONV_CPU_PLANES_INL_HPP_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <type_traits>

#include "rung/core/integer.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/conv/shared/cpu/gather-inl.hpp"
#include "rung/ops/conv/shared/cpu/planes.hpp"
#include "rung/ops/conv/shared/cpu/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// c[i][j] += sum over planes q and taps t of weights[q][t][i] planes[q plane + offset[t] + j].
template <int Rows, int Vectors, class T>
HWY_NOINLINE void plane_tile(const T* weights, const T* planes, std::int64_t count,
                             std::int64_t plane, const std::int32_t* offset, int taps, T* c,
                             bool add) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int lanes = lanes_of<T>;
  constexpr int columns = panel_columns<T>;
  V sums[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      sums[i][v] = add ? hn::LoadU(d, c + i * columns + v * lanes) : hn::Zero(d);
    }
  }
  for (std::int64_t q = 0; q < count; ++q, planes += plane) {
    for (int t = 0; t < taps; ++t, weights += Rows) {
      const T* from = planes + offset[t];
      V right[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) right[v] = hn::LoadU(d, from + v * lanes);
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i) {
        const V left = hn::Set(d, weights[i]);
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) sums[i][v] = hn::MulAdd(left, right[v], sums[i][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) hn::StoreU(sums[i][v], d, c + i * columns + v * lanes);
  }
}

template <class T>
using PlaneTile = void (*)(const T*, const T*, std::int64_t, std::int64_t, const std::int32_t*, int,
                           T*, bool);

template <class T>
PlaneTile<T> plane_tile_for(int rows, int columns) {
  constexpr PlaneTile<T> narrow[] = {plane_tile<1, 1, T>, plane_tile<2, 1, T>, plane_tile<3, 1, T>,
                                     plane_tile<4, 1, T>, plane_tile<5, 1, T>, plane_tile<6, 1, T>};
  constexpr PlaneTile<T> half[] = {plane_tile<1, 2, T>, plane_tile<2, 2, T>, plane_tile<3, 2, T>,
                                   plane_tile<4, 2, T>, plane_tile<5, 2, T>, plane_tile<6, 2, T>};
  if (columns <= lanes_of<T>) return narrow[rows - 1];
  if (columns <= 2 * lanes_of<T>) return half[rows - 1];
  if constexpr (panel_vectors == 4) {
    constexpr PlaneTile<T> full[] = {plane_tile<1, 4, T>, plane_tile<2, 4, T>, plane_tile<3, 4, T>,
                                     plane_tile<4, 4, T>, plane_tile<5, 4, T>, plane_tile<6, 4, T>};
    return full[rows - 1];
  }
  return half[rows - 1];
}

/// Bands of rows of all images, whose planes L2 holds for so many channels at a time.
template <class T, class In>
class PlaneBands {
 public:
  PlaneBands(const Gathered& g, std::int64_t channels, int threads, bool in_place = false) : g_(g) {
    Gathered some = g;
    some.q = channels;
    shape_ = conv_cpu::plane_shape(some, sizeof(T), threads);
    if (in_place) {
      const bool one_row = g.axis[1].places == 1 && g.axis[1].kernel == 1;
      shape_.pitch = one_row ? shape_.columns : g.x_strides[3];
      shape_.plane = g.x_strides[1];
    }
    down_ = ceil_div(g.axis[1].places, shape_.rows);
    across_ = ceil_div(g.axis[2].places, shape_.columns);
  }

  [[nodiscard]] const PlaneShape& shape() const { return shape_; }
  /// Of a group.
  [[nodiscard]] std::int64_t count() const {
    return g_.images * g_.axis[0].places * down_ * across_;
  }

  /// Pixels [o, o + rows) x [o, o + columns) of one image and depth.
  struct Band {
    std::int64_t group, n, o[3], rows, columns;
  };
  [[nodiscard]] Band band_of(std::int64_t index) const {
    Band band{};
    band.o[2] = index % across_ * shape_.columns;
    index /= across_;
    band.o[1] = index % down_ * shape_.rows;
    index /= down_;
    band.o[0] = index % g_.axis[0].places;
    index /= g_.axis[0].places;
    band.n = index % g_.images;
    band.group = index / g_.images;
    band.rows = std::min(shape_.rows, g_.axis[1].places - band.o[1]);
    band.columns = std::min(shape_.columns, g_.axis[2].places - band.o[2]);
    return band;
  }

  /// Where taps (t1, t2) are in a plane.
  void set_offsets(std::int32_t* to) const {
    const auto place = [&](int axis, std::int64_t t) {
      return t * g_.axis[axis].between - conv_cpu::first_tap(g_.axis[axis]);
    };
    for (std::int64_t t1 = 0; t1 < g_.axis[1].kernel; ++t1) {
      for (std::int64_t t2 = 0; t2 < g_.axis[2].kernel; ++t2) {
        const std::int64_t h = place(1, t1);
        const std::int64_t w = place(2, t2);
        const std::int64_t phase = h % g_.axis[1].step * shape_.phases[1] + w % g_.axis[2].step;
        *to++ = static_cast<std::int32_t>(phase * shape_.height * shape_.pitch +
                                          h / g_.axis[1].step * shape_.pitch + w / g_.axis[2].step);
      }
    }
  }

  /// Where the first taps of a band's pixels are in the image.
  [[nodiscard]] const In* origin(const Band& band) const {
    const In* at = static_cast<const In*>(g_.x) + band.group * g_.q * g_.x_strides[1] +
                   band.n * g_.x_strides[0];
    for (int axis = 0; axis < 3; ++axis) {
      const SourceAxis& a = g_.axis[axis];
      at += (band.o[axis] * a.step + a.start + conv_cpu::first_tap(a)) * g_.x_strides[2 + axis];
    }
    return at;
  }

  /// Channels [first, first + count) of a band's group.
  void copy(const Band& band, std::int64_t first, std::int64_t count, T* to) const {
    const In* image = static_cast<const In*>(g_.x) + (band.group * g_.q + first) * g_.x_strides[1] +
                      band.n * g_.x_strides[0];
    SourceAxis across = g_.axis[2];
    for (std::int64_t q = 0; q < count; ++q, image += g_.x_strides[1]) {
      for (std::int64_t t0 = 0; t0 < g_.axis[0].kernel; ++t0, to += shape_.plane) {
        const std::int64_t depth = g_.axis[0].source(band.o[0], t0);
        T* row = to;
        for (std::int64_t r1 = 0; r1 < shape_.phases[0]; ++r1) {
          for (std::int64_t r2 = 0; r2 < shape_.phases[1]; ++r2) {
            across.start = g_.axis[2].start + conv_cpu::first_tap(g_.axis[2]) + r2;
            for (std::int64_t i = 0; i < shape_.height; ++i, row += shape_.pitch) {
              const std::int64_t h = (band.o[1] + i) * g_.axis[1].step + g_.axis[1].start +
                                     conv_cpu::first_tap(g_.axis[1]) + r1;
              const bool inside = depth >= 0 && h >= 0 && h < g_.axis[1].extent;
              const In* line =
                  inside ? image + depth * g_.x_strides[2] + h * g_.x_strides[3] : nullptr;
              gather_run(across, line, g_.x_strides[4], band.o[2], 0,
                         static_cast<int>(shape_.pitch), row);
            }
          }
        }
        // Behind the rows, where panels read what they do not need, are numbers too.
        std::fill(row, to + shape_.plane, T{0});
      }
    }
  }

 private:
  const Gathered& g_;
  PlaneShape shape_;
  std::int64_t down_ = 1;
  std::int64_t across_ = 1;
};

template <class T, class In>
class PlaneColumns {
 public:
  PlaneColumns(const Gathered& g, int threads)
      : g_(g),
        in_place_(std::is_same_v<T, In> && conv_cpu::planes_in_place(g)),
        bands_(g, g.q, threads, in_place_),
        shape_(bands_.shape()) {
    tiles_ = ceil_div(g.m, std::int64_t{tile_rows});
    // A band's planes are shared by all filters, unless there are too few bands for the team.
    const std::int64_t bands = std::max<std::int64_t>(1, g.groups * bands_.count());
    const std::int64_t wanted = ceil_div(std::int64_t{threads} * 2, bands);
    std::int64_t blocks = std::max(ceil_div(g.m, max_block), threads > 1 ? wanted : 1);
    blocks = std::clamp<std::int64_t>(blocks, 1, std::max<std::int64_t>(1, tiles_));
    block_ = ceil_div(tiles_, blocks) * tile_rows;
    blocks_ = block_ == 0 ? 0 : ceil_div(g.m, block_);
    taps_ = static_cast<int>(g.axis[1].kernel * g.axis[2].kernel);
    planes_ = g.q * g.axis[0].kernel;
    if (in_place_) {
      reach_ = (g.axis[1].kernel - 1) * std::abs(g.axis[1].between) * shape_.pitch +
               (g.axis[2].kernel - 1) * std::abs(g.axis[2].between);
      tail_ = round_up(columns + reach_, 16) + 16;
    }
    // What a panel reads of some planes stays in L1 beside the weights.
    const std::int64_t read =
        std::min<std::int64_t>(in_place_ ? columns * taps_ : shape_.plane,
                               g.axis[1].kernel * shape_.phases[1] * (columns + shape_.pitch / 8));
    constexpr std::int64_t l1_bytes = 24576;
    chunk_ = std::max<std::int64_t>(
        1, l1_bytes / std::max<std::int64_t>(1, read * static_cast<std::int64_t>(sizeof(T))));
  }

  [[nodiscard]] std::size_t weight_bytes() const {
    return conv_layer::bytes_of<T>({round_up(g_.groups * tiles_ * tile_rows * g_.terms(), 64)});
  }
  [[nodiscard]] std::size_t thread_bytes() const {
    const std::int64_t copied = planes_ * (in_place_ ? tail_ : shape_.plane);
    return conv_layer::bytes_of<T>({round_up(copied + columns, 64)}) +
           static_cast<std::size_t>(block_ * columns) * sizeof(T) +
           static_cast<std::size_t>(round_up(std::int64_t{taps_}, 64)) * sizeof(std::int32_t);
  }

  void run(const cpu::Team& team, std::byte* memory) const {
    T* packed = reinterpret_cast<T*>(memory);
    const cpu::Range tiles = team.share(g_.groups * tiles_);
    for (std::int64_t i = tiles.begin; i < tiles.end; ++i) pack(i, packed);
    auto* offsets = reinterpret_cast<std::int32_t*>(
        memory + weight_bytes() + static_cast<std::size_t>(team.rank()) * thread_bytes());
    bands_.set_offsets(offsets);
    T* sums = reinterpret_cast<T*>(offsets + round_up(std::int64_t{taps_}, 64));
    T* planes = sums + block_ * columns;
    // The last panel reads on behind the last plane.
    T* const behind = planes + planes_ * (in_place_ ? tail_ : shape_.plane);
    std::fill(behind, behind + columns, T{0});
    team.wait();
    const cpu::Range share = team.share(g_.groups * bands_.count() * blocks_);
    std::int64_t last = -1;
    for (std::int64_t task = share.begin; task < share.end; ++task) {
      const std::int64_t band = task / blocks_;
      const std::int64_t first = task % blocks_ * block_;
      const Band at = bands_.band_of(band);
      if (band != last && !in_place_) bands_.copy(at, 0, g_.q, planes);
      last = band;
      multiply_band(at, first, std::min(block_, g_.m - first), packed, planes, offsets, sums);
    }
  }

 private:
  using Band = typename PlaneBands<T, In>::Band;
  static constexpr int columns = panel_columns<T>;
  static constexpr std::int64_t max_block = 510;  // filters whose sums of a panel stay in L2

  /// Six filters' weights: [term][filter], terms in the order q t0 t1 t2; of the last, fewer.
  void pack(std::int64_t index, T* packed) const {
    const std::int64_t first = index % tiles_ * tile_rows;
    const int rows = static_cast<int>(std::min<std::int64_t>(tile_rows, g_.m - first));
    const In* from =
        static_cast<const In*>(g_.w) + index / tiles_ * g_.w_group + first * g_.w_strides[0];
    T* to = packed + index * tile_rows * g_.terms();
    for (std::int64_t q = 0; q < g_.q; ++q) {
      for (std::int64_t t0 = 0; t0 < g_.axis[0].kernel; ++t0) {
        for (std::int64_t t1 = 0; t1 < g_.axis[1].kernel; ++t1) {
          const In* line = from + q * g_.w_strides[1] + t0 * g_.w_strides[2] + t1 * g_.w_strides[3];
          for (std::int64_t t2 = 0; t2 < g_.axis[2].kernel; ++t2, to += rows) {
            for (int i = 0; i < rows; ++i) {
              to[i] = static_cast<T>(line[t2 * g_.w_strides[4] + i * g_.w_strides[0]]);
            }
          }
        }
      }
    }
  }

  void multiply_band(const Band& band, std::int64_t first, std::int64_t filters, const T* packed,
                     T* planes, const std::int32_t* offsets, T* sums) const {
    const std::int64_t positions = (band.rows - 1) * shape_.pitch + band.columns;
    const T* weights = packed + (band.group * tiles_ * tile_rows + first) * g_.terms();
    for (std::int64_t at = 0; at < positions; at += columns) {
      const int count = static_cast<int>(std::min<std::int64_t>(columns, positions - at));
      const T* from = planes + at;
      std::int64_t plane = shape_.plane;
      if constexpr (std::is_same_v<T, In>) {
        if (in_place_) from = bands_.origin(band) + at;
        // What a panel has beyond the band may be beyond the tensor.
        if (in_place_ && count < columns) {
          copy_tail(from, count + reach_, planes);
          from = planes;
          plane = tail_;
        }
      }
      for (std::int64_t q = 0; q == 0 || q < planes_; q += chunk_) {
        const std::int64_t some = std::min(chunk_, planes_ - q);
        for (std::int64_t i = 0; i < filters; i += tile_rows) {
          const int rows = static_cast<int>(std::min<std::int64_t>(tile_rows, filters - i));
          plane_tile_for<T>(rows, count)(weights + i * g_.terms() + q * taps_ * rows,
                                         from + q * plane, some, plane, offsets, taps_,
                                         sums + i * columns, q != 0);
        }
      }
      write(band, at, count, first, filters, sums);
    }
  }

  /// So many elements of each channel.
  void copy_tail(const T* from, std::int64_t count, T* to) const {
    for (std::int64_t q = 0; q < planes_; ++q, from += shape_.plane, to += tail_) {
      std::copy(from, from + count, to);
      std::fill(to + count, to + tail_, T{0});
    }
  }

  /// The pixels among `count` places from `at` on.
  void write(const Band& band, std::int64_t at, int count, std::int64_t first, std::int64_t filters,
             T* sums) const {
    Run runs[columns];
    int run_count = 0;
    for (int column = 0; column < count;) {
      const std::int64_t row = (at + column) / shape_.pitch;
      const std::int64_t across = (at + column) % shape_.pitch;
      const auto step =
          static_cast<int>(std::min<std::int64_t>(count - column, shape_.pitch - across));
      const std::int64_t pixels = std::min<std::int64_t>(step, band.columns - across);
      if (pixels > 0) {
        runs[run_count++] = {band.n,
                             {band.o[0], band.o[1] + row, band.o[2] + across},
                             column,
                             static_cast<int>(pixels)};
      }
      column += step;
    }
    write_filters<T, In>(g_, band.group * g_.m + first, filters, runs, run_count, count, sums);
  }

  const Gathered& g_;
  bool in_place_;
  PlaneBands<T, In> bands_;
  PlaneShape shape_;
  std::int64_t reach_ = 0;  // from a pixel's first tap to its last, where planes are in place
  std::int64_t tail_ = 0;   // of a channel's last panel, which is copied
  std::int64_t tiles_ = 0;
  std::int64_t block_ = 1;
  std::int64_t blocks_ = 1;
  std::int64_t planes_ = 0;  // q and depth taps
  std::int64_t chunk_ = 1;   // planes
  int taps_ = 1;             // of a plane
};

}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
