// SPDX-License-Identifier: Apache-2.0
// A gathered layer by tiles of pixels times channels, for channels last: eight pixels by one to
// four vectors of filters are summed in registers over all terms. A pixel's taps of one row of the
// filter are contiguous, channels of all of them, once the padding stands around a copy of a band;
// without padding the image itself is read.
#if defined(RUNG_OPS_CONV_CPU_PIXELS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_CONV_CPU_PIXELS_INL_HPP_
#undef RUNG_OPS_CONV_CPU_PIXELS_INL_HPP_
#else
#define RUNG_OPS_CONV_CPU_PIXELS_INL_HPP_
#endif

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "rung/core/integer.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/conv/shared/cpu/gather-inl.hpp"
#include "rung/ops/conv/shared/cpu/pixel_bands-inl.hpp"
#include "rung/ops/conv/shared/cpu/pixel_tile-inl.hpp"
#include "rung/ops/conv/shared/cpu/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T, class In>
class PixelRows {
 public:
  PixelRows(const Gathered& g, int threads) : g_(g), bands_(g, threads) {
    const bool contiguous = bands_.taps_contiguous();
    runs_across_ = contiguous ? 1 : g.axis[2].kernel;
    length_ = contiguous ? g.axis[2].kernel * g.q : g.q;
    vectors_ = std::max<std::int64_t>(1, ceil_div(g.m, std::int64_t{lanes}));
    block_ = ceil_div(vectors_, ceil_div(vectors_, std::int64_t{panel_vectors}));
    blocks_ = ceil_div(vectors_, block_);
    chunk_ = std::max<std::int64_t>(
        1, panel_bytes / std::max<std::int64_t>(
                             1, length_ * block_ * lanes * static_cast<std::int64_t>(sizeof(T))));
    // A band's copy is shared by all filters, unless there are too few bands for the team.
    splits_ = threads > 1 && bands_.count() < 2 * threads ? blocks_ : 1;
  }

  [[nodiscard]] std::size_t weight_bytes() const {
    return conv_layer::bytes_of<T>({g_.groups, (g_.terms() + 1) * vectors_ * lanes});
  }
  [[nodiscard]] std::size_t thread_bytes() const {
    return conv_layer::bytes_of<T>({round_up(bands_.length(), 64) + strip * block_ * lanes}) +
           static_cast<std::size_t>(round_up(runs(), 64)) * sizeof(TermRun);
  }

  void run(const cpu::Team& team, std::byte* memory) const {
    T* packed = reinterpret_cast<T*>(memory);
    const cpu::Range packing = team.share(g_.groups * blocks_);
    for (std::int64_t i = packing.begin; i < packing.end; ++i)
      pack(i / blocks_, i % blocks_, packed);
    auto* runs = reinterpret_cast<TermRun*>(memory + weight_bytes() +
                                            static_cast<std::size_t>(team.rank()) * thread_bytes());
    T* sums = reinterpret_cast<T*>(runs + round_up(this->runs(), 64));
    T* copied = sums + strip * block_ * lanes;
    team.wait();
    const cpu::Range share = team.share(bands_.count() * splits_);
    std::int64_t last = -1;
    for (std::int64_t task = share.begin; task < share.end; ++task) {
      const Band band = bands_.band_of(task / splits_);
      if (task / splits_ != last) bands_.copy(band, copied);
      last = task / splits_;
      const cpu::Range blocks =
          splits_ == 1 ? cpu::Range{0, blocks_} : cpu::Range{task % splits_, task % splits_ + 1};
      make(band, blocks, packed, copied, runs, sums);
    }
  }

 private:
  using Band = typename PixelBands<T, In>::Band;
  static constexpr int lanes = lanes_of<T>;
  static constexpr std::int64_t strip = 48;  // pixels whose sums stay in L1
  static constexpr std::int64_t panel_bytes = 24576;

  [[nodiscard]] std::int64_t runs() const {
    return g_.q == 0 ? 0 : g_.axis[0].kernel * g_.axis[1].kernel * runs_across_;
  }
  /// Weights of block `block` of a group, and behind the terms the biases: a block before the last
  /// has block_ vectors.
  [[nodiscard]] std::int64_t panel_of(std::int64_t group, std::int64_t block) const {
    return (group * vectors_ + block * block_) * (g_.terms() + 1) * lanes;
  }
  [[nodiscard]] int vectors_of(std::int64_t block) const {
    return static_cast<int>(std::min(block_, vectors_ - block * block_));
  }

  /// Taps of the depth and of rows.
  struct Taps {
    cpu::Range deep, down;
  };
  /// Taps, in the order of memory, of places [first, last] of an axis that are within the image for
  /// one of them at least.
  static cpu::Range taps_of(const SourceAxis& axis, std::int64_t first, std::int64_t last) {
    const std::int64_t between = std::abs(axis.between);
    const std::int64_t origin = axis.start + conv_cpu::first_tap(axis);
    const std::int64_t low = last * axis.step + origin;
    const std::int64_t high = axis.extent - 1 - first * axis.step - origin;
    const auto steps = [&](std::int64_t x) { return between == 1 ? x : x / between; };
    const std::int64_t begin = low >= 0 ? 0 : steps(-low + between - 1);
    const std::int64_t end = high < 0 ? 0 : steps(high) + 1;
    const std::int64_t stop = std::clamp<std::int64_t>(end, 0, axis.kernel);
    return {std::min(begin, stop), stop};
  }

  /// The runs of these taps, in the order of memory.
  TermRun* set_runs(const Taps& taps, TermRun* to) const {
    if (g_.q == 0) return to;
    for (std::int64_t t0 = taps.deep.begin; t0 < taps.deep.end; ++t0) {
      for (std::int64_t t1 = taps.down.begin; t1 < taps.down.end; ++t1) {
        const std::int64_t first = (t0 * g_.axis[1].kernel + t1) * runs_across_;
        for (std::int64_t i = 0; i < runs_across_; ++i) {
          *to++ = {bands_.offset(t0, t1, i), (first + i) * length_};
        }
      }
    }
    return to;
  }

  /// [term][filter], terms in the order that the runs have, zeros beyond the last filter; then the
  /// biases.
  void pack(std::int64_t group, std::int64_t block, T* packed) const {
    const std::int64_t first = block * block_ * lanes;
    const std::int64_t pitch = std::int64_t{vectors_of(block)} * lanes;
    const int count = static_cast<int>(std::min(pitch, g_.m - first));
    T* to = packed + panel_of(group, block);
    if (count < pitch) {
      std::memset(to, 0, static_cast<std::size_t>(g_.terms() * pitch) * sizeof(T));
    }
    const In* from = static_cast<const In*>(g_.w) + group * g_.w_group + first * g_.w_strides[0];
    const auto taps_in_line = [&](int axis) {
      return g_.axis[axis].kernel == 1 || g_.axis[axis].between > 0;
    };
    std::int64_t line = g_.q;
    bool in_line = g_.w_strides[1] == 1;
    for (int axis = 2; axis >= 0 && in_line; --axis) {
      in_line = taps_in_line(axis) && (g_.axis[axis].kernel == 1 || g_.w_strides[2 + axis] == line);
      line *= g_.axis[axis].kernel;
    }
    if (in_line) {  // as the terms are
      pack_terms(from, g_.terms(), count, pitch, to);
    } else {
      for (std::int64_t i0 = 0; i0 < g_.axis[0].kernel; ++i0) {
        for (std::int64_t i1 = 0; i1 < g_.axis[1].kernel; ++i1) {
          for (std::int64_t i2 = 0; i2 < g_.axis[2].kernel; ++i2) {
            const In* tap = from + tap_at(g_.axis[0], i0) * g_.w_strides[2] +
                            tap_at(g_.axis[1], i1) * g_.w_strides[3] +
                            tap_at(g_.axis[2], i2) * g_.w_strides[4];
            pack_terms(tap, g_.q, count, pitch, to);
            to += g_.q * pitch;
          }
        }
      }
    }
    T* bias = packed + panel_of(group, block) + g_.terms() * pitch;
    std::memset(bias, 0, static_cast<std::size_t>(pitch) * sizeof(T));
    if (g_.bias != nullptr) copy_bias<T, In>(g_, group * g_.m + first, count, bias);
  }

  /// Terms that are w_strides[1] apart.
  void pack_terms(const In* from, std::int64_t terms, int count, std::int64_t pitch, T* to) const {
    const std::int64_t filter = g_.w_strides[0];
    const std::int64_t channel = g_.w_strides[1];
    if (filter == 1) {
      for (std::int64_t k = 0; k < terms; ++k) {
        copy_strided(to + k * pitch, from + k * channel, 1, count);
      }
      return;
    }
    int j = 0;
    if (channel == 1 && terms >= lanes / 2) {
      for (; j + 4 <= count; j += 4)
        transpose_four(from + j * filter, filter, terms, to + j, pitch);
    }
    for (; j < count; ++j) {
      for (std::int64_t k = 0; k < terms; ++k) {
        to[k * pitch + j] = static_cast<T>(from[k * channel + j * filter]);
      }
    }
  }

  void make(const Band& band, cpu::Range blocks, const T* packed, const T* copied, TermRun* runs,
            T* sums) const {
    const T* const origin = bands_.origin(band, copied);
    In* const y = static_cast<In*>(g_.y) + band.n * g_.y_strides[0] +
                  band.group * g_.m * g_.y_strides[1] + band.o[0] * g_.y_strides[2] +
                  band.o[1] * g_.y_strides[3] + band.o[2] * g_.y_strides[4];
    const std::int64_t pixels = band.rows * band.columns;
    const std::int64_t x_step = bands_.across();
    Strip part;
    std::int64_t row = 0;
    std::int64_t column = 0;
    for (std::int64_t first = 0; first < pixels; first += strip) {
      part.count = static_cast<int>(std::min(strip, pixels - first));
      for (int i = 0; i < part.count;) {
        const T* x_pixel = origin + row * bands_.down() + column * x_step;
        In* y_pixel = y + row * g_.y_strides[3] + column * g_.y_strides[4];
        const auto some =
            static_cast<int>(std::min<std::int64_t>(part.count - i, band.columns - column));
        for (int k = 0; k < some; ++k, ++i, x_pixel += x_step, y_pixel += g_.y_strides[4]) {
          part.from[i] = x_pixel;
          part.to[i] = y_pixel;
          part.row[i] = static_cast<std::int32_t>(row);
        }
        column += some;
        if (column < band.columns) continue;
        column = 0;
        ++row;
      }
      for (std::int64_t block = blocks.begin; block < blocks.end; ++block) {
        multiply(band, part, block, packed + panel_of(band.group, block), runs, sums);
        if (!stores_sums()) write(part, block * block_ * lanes, vectors_of(block), sums);
      }
    }
  }

  /// Pixels of a band that follow each other.
  struct Strip {
    int count;
    const T* from[strip];
    In* to[strip];
    std::int32_t row[strip];
  };

  void multiply(const Band& band, const Strip& part, std::int64_t block, const T* panel,
                TermRun* runs, T* sums) const {
    const int vectors = vectors_of(block);
    const PixelTiles<T> tiles = pixel_tiles<T>(vectors);
    const std::int64_t first = block * block_ * lanes;
    const std::int64_t pitch = std::int64_t{vectors} * lanes;
    const T* start = panel + g_.terms() * pitch;  // the biases
    std::int64_t start_pitch = 0;
    const auto last =
        static_cast<int>(std::min<std::int64_t>(lanes, g_.m - first - (vectors - 1) * lanes));
    TapRuns used{runs, runs};
    if (bands_.all_inside()) used.end = set_runs(every_tap(), runs);
    for (std::int64_t chunk = 0; chunk == 0 || chunk < this->runs(); chunk += chunk_) {
      const bool final = stores_sums() && chunk + chunk_ >= this->runs();
      for (int i = 0; i < part.count;) {
        const std::int64_t apart = part.from[std::min(i + 8, part.count - 1)] - part.from[i];
        const bool twice = tiles.twice != nullptr && is_twice(part, i, apart);
        const int left = part.count - i;
        const int rows = twice                    ? 2 * tiles.rows
                         : left >= tiles.rows     ? tiles.rows
                         : left >= tiles.rows / 2 ? tiles.rows / 2
                                                  : 1;
        const auto tile = twice                ? tiles.twice
                          : rows == tiles.rows ? tiles.full
                          : rows == 1          ? tiles.one
                                               : tiles.half;
        if (!bands_.all_inside()) use_taps(band, part.row[i], part.row[i + rows - 1], used);
        const TermRun* begin = used.begin;
        const TermRun* end = used.end;
        if (chunk_ < this->runs()) {
          const auto before = [&](const TermRun& run, std::int64_t number) {
            return run.term < number * length_;
          };
          begin = std::lower_bound(begin, end, chunk, before);
          end = std::lower_bound(begin, end, chunk + chunk_, before);
        }
        TileResult<T> result{sums + i * pitch, nullptr, 0, lanes};
        if constexpr (std::is_same_v<T, In>) {
          if (final) result = {nullptr, part.to + i, first, last};
        }
        tile(part.from + i, apart, {begin, end - begin, length_}, panel, start + i * start_pitch,
             start_pitch, result);
        i += rows;
      }
      start = sums;
      start_pitch = pitch;
    }
  }

  /// Whether the eight pixels from i + 8 on are as far apart as the eight from i on.
  static bool is_twice(const Strip& part, int i, std::int64_t apart) {
    if (part.count - i < 16) return false;
    if (part.row[i] == part.row[i + 15]) return true;
    bool same = true;
    for (int k = 0; k < 8; ++k) same &= part.from[i + 8 + k] - part.from[i + k] == apart;
    return same;
  }

  /// The runs that some rows of a band meet, kept until other rows meet others.
  struct TapRuns {
    TermRun* begin;
    TermRun* end;
    std::int32_t rows[2] = {-1, -1};
    cpu::Range taps{-1, -1};
  };
  void use_taps(const Band& band, std::int32_t first, std::int32_t last, TapRuns& used) const {
    if (used.rows[0] == first && used.rows[1] == last) return;
    used.rows[0] = first;
    used.rows[1] = last;
    const cpu::Range taps = taps_of(g_.axis[1], band.o[1] + first, band.o[1] + last);
    if (used.taps.begin == taps.begin && used.taps.end == taps.end) return;
    used.taps = taps;
    used.end = set_runs({taps_of(g_.axis[0], band.o[0], band.o[0]), taps}, used.begin);
  }
  [[nodiscard]] Taps every_tap() const { return {{0, g_.axis[0].kernel}, {0, g_.axis[1].kernel}}; }

  /// Whether tiles write y: nothing is left to do to a sum.
  [[nodiscard]] bool stores_sums() const {
    return std::is_same_v<T, In> && g_.activation == Activation::none;
  }

  void write(const Strip& part, std::int64_t first, int vectors, T* sums) const {
    const hn::ScalableTag<T> d;
    const int pitch = vectors * lanes;
    const auto filters = static_cast<int>(std::min<std::int64_t>(pitch, g_.m - first));
    activate(g_.activation, sums, part.count * pitch);
    const int whole = (filters - 1) / lanes * lanes;
    const auto rest = static_cast<std::size_t>(filters - whole);
    for (int i = 0; i < part.count; ++i, sums += pitch) {
      In* pixel = part.to[i] + first;
      for (int j = 0; j < whole; j += lanes) {
        cpu::HWY_NAMESPACE::store_as(hn::Load(d, sums + j), d, pixel + j);
      }
      if (rest == lanes) {
        cpu::HWY_NAMESPACE::store_as(hn::Load(d, sums + whole), d, pixel + whole);
      } else {
        cpu::HWY_NAMESPACE::store_as_n(hn::Load(d, sums + whole), d, pixel + whole, rest);
      }
    }
  }

  const Gathered& g_;
  PixelBands<T, In> bands_;
  std::int64_t runs_across_ = 1;
  std::int64_t length_ = 0;
  std::int64_t vectors_ = 1;  // of a group
  std::int64_t block_ = 1;    // vectors
  std::int64_t blocks_ = 1;
  std::int64_t chunk_ = 1;  // runs
  std::int64_t splits_ = 1;
};

}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
