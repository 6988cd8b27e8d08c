// SPDX-License-Identifier: Apache-2.0
// conv / padded pixels
//
// Idea     With channels last, the taps of a filter row, with all their channels, are contiguous in
//          a copy of x with padding around it: a pixel's terms are a few runs, at offsets that all
//          pixels share. Eight pixels by one to three vectors of filters, or six by four, are
//          summed in registers over all terms in one pass.
// Changes  Against padded_planes: pixels are rows, filters columns; x is copied in its own layout,
//          and sums are stored to y directly. Against direct_simd: one call per tile instead of one
//          per tap, and eight independent chains of additions with only 16 filters.
// Cost     Per term, a load of weights per vector and a broadcast per pixel; the copy, if there is
//          padding or a small type to widen.
// Limits   Channels contiguous in x and y; filters that do not span millions of positions. Filters
//          are rounded up to whole vectors. One thread.
// Source   J. Zhang, F. Franchetti & T. Low, High performance zero-memory overhead direct
//          convolutions, 2018.
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <type_traits>

#include "rung/ops/conv/op/conv.hpp"
#include "rung/ops/conv/shared/cpu/call.hpp"
#include "rung/ops/conv/shared/cpu/pixel_bands-inl.hpp"
#include "rung/ops/conv/shared/layer.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {
namespace {

/// Contiguous terms: their offset from a pixel's first element, and their number.
struct TermRun {
  std::int64_t offset;
  std::int64_t term;
};

/// Arguments of a tile: runs of terms, each `length` long, and their weights; the initial values of
/// its sums; and their destination: rows of c or, for final sums, y's pixels from filter `first`
/// on, with `last` elements in the last vector.
template <class T>
struct TileSums {
  const TermRun* run;
  const TermRun* end;
  std::int64_t length;
  const T* weights;
  const T* start;
  std::int64_t start_pitch;
  T* c;
  T* const* to;  // null: sums go to c
  std::int64_t first;
  int last;
};

/// Computes c[i][j] = start[i start_pitch + j] + sum over terms of pixel[i][term] weights[term][j].
/// A zero sum becomes +0: a sum may underflow to -0, and products of the padding, whose number
/// depends on a band's rows, would turn it into +0. Pixels beyond the eighth are addressed as
/// `apart` elements after the first eight: registers do not suffice for their pointers.
template <int Rows, int Vectors, class T>
HWY_NOINLINE void sum_pixels(const T* const* pixel, std::int64_t apart, const TileSums<T>& sums) {
  constexpr int lanes = lanes_of<T>, pointers = std::min(Rows, 8);
  const hn::ScalableTag<T> d;
  RegisterTile<Rows, Vectors, T> tile;
  tile.load(sums.start, sums.start_pitch);
  const T* from[pointers];
#pragma GCC unroll 8
  for (int i = 0; i < pointers; ++i) from[i] = pixel[i];
  for (const TermRun* run = sums.run; run != sums.end; ++run) {
    const T* panel = sums.weights + run->term * Vectors * lanes;
    const std::int64_t end = run->offset + sums.length;
    for (std::int64_t k = run->offset; k < end; ++k, panel += Vectors * lanes) {
      tile.add(panel, [&](int i) { return i < 8 ? from[i][k] : from[i - 8][k + apart]; });
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    T* const c = sums.to == nullptr ? sums.c + i * Vectors * lanes : sums.to[i] + sums.first;
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const auto sum = hn::Add(tile.sum[i][v], hn::Zero(d));
      if (v < Vectors - 1) {
        hn::StoreU(sum, d, c + v * lanes);
      } else {
        store_as_n(sum, d, c + v * lanes, static_cast<std::size_t>(sums.last));
      }
    }
  }
}

/// Returns the number of pixels of a tile of `vectors` vectors: the most that leave registers for
/// weights. With 32 registers, tiles of one vector take twice as many.
constexpr int rows_of(int vectors) { return vectors == tile_vectors ? 6 : 8; }

template <class T, class In>
class PaddedPixels {
 public:
  PaddedPixels(const Gathered& g, int threads) : g_(g), bands_(g, threads) {
    const bool contiguous = bands_.taps_contiguous();
    runs_across_ = contiguous ? 1 : g.axis[2].kernel;
    length_ = contiguous ? g.axis[2].kernel * g.q : g.q;
    vectors_ = std::max<std::int64_t>(1, ceil_div(g.m, std::int64_t{lanes}));
    block_ = ceil_div(vectors_, ceil_div(vectors_, std::int64_t{tile_vectors}));
    blocks_ = ceil_div(vectors_, block_);
    constexpr std::int64_t panel_bytes = 24576;
    chunk_ = std::max<std::int64_t>(
        1, panel_bytes / std::max<std::int64_t>(
                             1, length_ * block_ * lanes * static_cast<std::int64_t>(sizeof(T))));
    // All filters share a band's copy, unless there are fewer than two bands per thread.
    splits_ = threads > 1 && g.groups * bands_.per_group() < 2 * threads ? blocks_ : 1;
  }

  [[nodiscard]] std::size_t shared_bytes() const {
    return conv_layer::bytes_of<T>({g_.groups, (g_.terms() + 1) * vectors_ * lanes});
  }
  [[nodiscard]] std::size_t thread_bytes() const {
    return conv_layer::bytes_of<T>({round_up(bands_.length(), 64) + strip * block_ * lanes}) +
           static_cast<std::size_t>(round_up(runs(), 64)) * sizeof(TermRun);
  }

  void run(const cpu::Team& team, std::byte* shared, std::byte* own) const {
    T* const packed = reinterpret_cast<T*>(shared);
    const cpu::Range packing = team.share(g_.groups * blocks_);
    for (std::int64_t i = packing.begin; i < packing.end; ++i) {
      pack(i / blocks_, i % blocks_, packed + panel_of(i / blocks_, i % blocks_));
    }
    auto* const runs = reinterpret_cast<TermRun*>(own);
    T* const sums = reinterpret_cast<T*>(runs + round_up(this->runs(), 64));
    T* const copied = sums + strip * block_ * lanes;
    team.wait();
    // Groups of an image are consecutive: they share its cache lines.
    const std::int64_t within = bands_.per_image();
    const cpu::Range share = team.share(g_.groups * bands_.per_group() * splits_);
    std::int64_t last = -1;
    for (std::int64_t task = share.begin; task < share.end; ++task) {
      const std::int64_t index = task / splits_, image = index / within / g_.groups;
      const Band band = bands_.band_of(index / within % g_.groups, image * within + index % within);
      if (index != last) bands_.copy(band, copied);
      last = index;
      const std::int64_t block = task % splits_;
      make(band, splits_ == 1 ? cpu::Range{0, blocks_} : cpu::Range{block, block + 1}, packed,
           bands_.origin(band, copied), runs, sums);
    }
  }

 private:
  static constexpr int lanes = lanes_of<T>;
  static constexpr std::int64_t strip = 48;  // pixels per strip, whose sums stay in L1

  [[nodiscard]] std::int64_t runs() const {
    return g_.q == 0 ? 0 : g_.axis[0].kernel * g_.axis[1].kernel * runs_across_;
  }
  /// Returns the offset of the weights of block `block` of a group; the biases follow the terms.
  /// All blocks but the last have block_ vectors.
  [[nodiscard]] std::int64_t panel_of(std::int64_t group, std::int64_t block) const {
    return (group * vectors_ + block * block_) * (g_.terms() + 1) * lanes;
  }
  [[nodiscard]] int vectors_of(std::int64_t block) const {
    return static_cast<int>(std::min(block_, vectors_ - block * block_));
  }
  /// Returns whether tiles store to y directly: no conversion and no activation follows.
  [[nodiscard]] bool stores_sums() const {
    return std::is_same_v<T, In> && g_.activation == Activation::none;
  }

  /// Packs weights as [term][filter], terms in the order of the runs, with zeros beyond the last
  /// filter; then the biases.
  void pack(std::int64_t group, std::int64_t block, T* to) const {
    const std::int64_t first = block * block_ * lanes;
    const std::int64_t pitch = std::int64_t{vectors_of(block)} * lanes;
    const std::int64_t count = std::min(pitch, g_.m - first);
    std::fill(to, to + (count < pitch ? g_.terms() * pitch : 0), T{0});
    const In* from = static_cast<const In*>(g_.w) + group * g_.w_group + first * g_.w_strides[0];
    // Terms whose weights are contiguous in the filter too are transposed as one matrix.
    std::int64_t line = g_.q;
    bool in_line = g_.w_strides[1] == 1;
    for (int axis = 2; axis >= 0; --axis) {
      const SourceAxis& a = g_.axis[axis];
      in_line = in_line && (a.kernel == 1 || (a.between > 0 && g_.w_strides[2 + axis] == line));
      line *= a.kernel;
    }
    if (in_line) {
      copy_matrix(from, 1, g_.w_strides[0], g_.terms(), count, to, pitch);
      to += g_.terms() * pitch;
    } else {
      for_each_tap(g_, [&](const auto& i) {
        copy_matrix(from + weight_at(g_, tap_at(g_, i).t), g_.w_strides[1], g_.w_strides[0], g_.q,
                    count, to, pitch);
        to += g_.q * pitch;
      });
    }
    std::fill(to, to + pitch, T{0});
    if (g_.bias != nullptr) {
      copy_bias<T, In>(g_, group * g_.m + first, static_cast<int>(count), to);
    }
  }

  /// Consecutive pixels of a band.
  struct Strip {
    int count;
    const T* from[strip];
    In* to[strip];
    std::int32_t row[strip];
  };

  /// Computes a band, 48 pixels at a time, for some blocks of filters.
  void make(const Band& band, cpu::Range blocks, const T* packed, const T* x, TermRun* runs,
            T* sums) const {
    In* const y = static_cast<In*>(g_.y) + band.group * g_.m * g_.y_strides[1] +
                  result_at(g_, band.n, band.o);
    const std::int64_t pixels = band.rows * band.columns;
    Strip part;
    std::int64_t row = 0, column = 0;
    const T* from = x;
    In* to = y;
    for (std::int64_t first = 0; first < pixels; first += strip) {
      part.count = static_cast<int>(std::min(strip, pixels - first));
      for (int i = 0; i < part.count; ++i, from += bands_.across(), to += g_.y_strides[4]) {
        if (column++ == band.columns) {
          column = 1;
          ++row;
          from = x + row * bands_.down();
          to = y + row * g_.y_strides[3];
        }
        part.from[i] = from;
        part.to[i] = to;
        part.row[i] = static_cast<std::int32_t>(row);
      }
      for (std::int64_t block = blocks.begin; block < blocks.end; ++block) {
        const T* panel = packed + panel_of(band.group, block);
        with_constant<tile_vectors>(vectors_of(block), [&](auto vectors) {
          multiply<vectors>(band, part, block * block_ * lanes, panel, runs, sums);
        });
        if (!stores_sums()) write(part, block * block_ * lanes, vectors_of(block), sums);
      }
    }
  }

  /// Computes a strip for a block of filters from `first` on, one chunk of runs that L1 holds at a
  /// time.
  template <int Vectors>
  void multiply(const Band& band, const Strip& part, std::int64_t first, const T* panel,
                TermRun* runs, T* sums) const {
    constexpr int pitch = Vectors * lanes, rows = rows_of(Vectors);
    constexpr bool wide = Vectors == 1 && tile_vectors == 4;
    TileSums<T> tile{.run = runs,
                     .end = bands_.all_inside() ? every_run(runs) : runs,
                     .length = length_,
                     .weights = panel,
                     .start = panel + g_.terms() * pitch,  // the biases
                     .start_pitch = 0,
                     .c = sums,
                     .to = nullptr,
                     .first = 0,
                     .last = lanes};
    CachedTaps cached{runs, tile.end};
    for (std::int64_t chunk = 0; chunk == 0 || chunk < this->runs(); chunk += chunk_) {
      const bool final = stores_sums() && chunk + chunk_ >= this->runs();
      const T* const start = tile.start;
      for (int i = 0, some = 0; i < part.count; i += some) {
        const int left = part.count - i;
        const std::int64_t apart = part.from[std::min(i + 8, part.count - 1)] - part.from[i];
        const bool twice = wide && is_twice(part, i, apart);
        some = twice ? 2 * rows : left >= rows ? rows : left >= rows / 2 ? rows / 2 : 1;
        if (!bands_.all_inside()) cache_taps(band, part.row[i], part.row[i + some - 1], cached);
        tile.run = cached.runs;
        tile.end = cached.end;
        if (chunk_ < this->runs()) {
          const auto before = [&](const TermRun& run, std::int64_t number) {
            return run.term < number * length_;
          };
          tile.run = std::lower_bound(tile.run, tile.end, chunk, before);
          tile.end = std::lower_bound(tile.run, tile.end, chunk + chunk_, before);
        }
        tile.start = start + i * tile.start_pitch;
        tile.c = sums + i * pitch;
        if constexpr (std::is_same_v<T, In>) {
          if (final) {
            tile.to = part.to + i;
            tile.first = first;
            tile.last =
                static_cast<int>(std::min<std::int64_t>(lanes, g_.m - first - (pitch - lanes)));
          }
        }
        const T* const* from = part.from + i;
        if (wide && twice) {
          sum_pixels<wide ? 2 * rows : rows, Vectors>(from, apart, tile);
        } else if (some == rows) {
          sum_pixels<rows, Vectors>(from, 0, tile);
        } else if (some == 1) {
          sum_pixels<1, Vectors>(from, 0, tile);
        } else {
          sum_pixels<rows / 2, Vectors>(from, 0, tile);
        }
      }
      tile.start = sums;
      tile.start_pitch = pitch;
    }
  }

  /// Returns whether pixels i + 8 to i + 15 are each `apart` elements after pixels i to i + 7.
  static bool is_twice(const Strip& part, int i, std::int64_t apart) {
    if (part.count - i < 16) return false;
    if (part.row[i] == part.row[i + 15]) return true;
    bool same = true;
    for (int k = 0; k < 8; ++k) same &= part.from[i + 8 + k] - part.from[i + k] == apart;
    return same;
  }

  /// Runs of the taps of one row of a band or of several, cached until the range of row taps
  /// changes.
  struct CachedTaps {
    TermRun* runs;
    const TermRun* end;
    std::int32_t rows[2] = {-1, -1};
    cpu::Range down{-1, -1};
  };
  void cache_taps(const Band& band, std::int32_t first, std::int32_t last,
                  CachedTaps& cached) const {
    if (cached.rows[0] == first && cached.rows[1] == last) return;
    cached.rows[0] = first;
    cached.rows[1] = last;
    const cpu::Range down = taps_of(g_.axis[1], band.o[1] + first, band.o[1] + last);
    if (cached.down.begin == down.begin && cached.down.end == down.end) return;
    cached.down = down;
    cached.end = set_runs(taps_of(g_.axis[0], band.o[0], band.o[0]), down, cached.runs);
  }
  TermRun* every_run(TermRun* to) const {
    return set_runs({0, g_.axis[0].kernel}, {0, g_.axis[1].kernel}, to);
  }

  /// Returns the taps, in the order of memory, that are within the image for at least one of the
  /// positions [first, last] of an axis.
  static cpu::Range taps_of(const SourceAxis& axis, std::int64_t first, std::int64_t last) {
    const std::int64_t between = std::abs(axis.between), origin = axis.start + first_tap(axis);
    const std::int64_t begin =
        part_inside(last * axis.step + origin, between, axis.extent, axis.kernel).begin;
    const std::int64_t end =
        part_inside(first * axis.step + origin, between, axis.extent, axis.kernel).end;
    return {std::min(begin, end), end};
  }

  /// Writes the runs of depth taps `deep` and row taps `down`, in the order of memory; returns the
  /// end.
  TermRun* set_runs(cpu::Range deep, cpu::Range down, TermRun* to) const {
    for (std::int64_t t0 = deep.begin; t0 < deep.end && g_.q != 0; ++t0) {
      for (std::int64_t t1 = down.begin; t1 < down.end; ++t1) {
        const std::int64_t first = (t0 * g_.axis[1].kernel + t1) * runs_across_;
        for (std::int64_t i = 0; i < runs_across_; ++i) {
          *to++ = {bands_.offset(t0, t1, i), (first + i) * length_};
        }
      }
    }
    return to;
  }

  void write(const Strip& part, std::int64_t first, int vectors, T* sums) const {
    const int pitch = vectors * lanes;
    const auto filters = static_cast<int>(std::min<std::int64_t>(pitch, g_.m - first));
    activate(g_.activation, sums, part.count * pitch);
    for (int i = 0; i < part.count; ++i) {
      store_strided(sums + i * pitch, part.to[i] + first, 1, filters);
    }
  }

  const Gathered& g_;
  PixelBands<T, In> bands_;
  std::int64_t runs_across_;
  std::int64_t length_;   // elements per run
  std::int64_t vectors_;  // vectors per group
  std::int64_t block_;    // vectors per block
  std::int64_t blocks_;
  std::int64_t chunk_;  // runs per chunk
  std::int64_t splits_;
};

}  // namespace

void padded_pixels(const Gathered& g, Context& context, int threads) {
  visit<float, double, f16, bf16>(g.dtype, [&]<class In>() {
    run_layer(PaddedPixels<Accumulator<In>, In>(g, threads), context, threads);
  });
}

}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace conv_cpu {
HWY_EXPORT(padded_pixels);
void pixels_on(const Gathered& g, Context& context, int threads) {
  HWY_DYNAMIC_DISPATCH(padded_pixels)(g, context, threads);
}

/// Returns the work of a layer. Each run's overhead counts as four copied elements per vector of
/// filters.
Work pixels_facts(const Gathered& g, int threads) {
  const std::int64_t lanes = vector_lanes(), vectors = ceil_div(g.m, lanes);
  const bool in_place = size_of(g.dtype) != 2 && all_inside(g);
  const PixelShape shape = pixel_shape(g, 4, 1);
  const double copied =
      static_cast<double>(shape.copied_rows * shape.copied_columns * g.q * g.axis[0].kernel) /
      static_cast<double>(shape.rows * shape.columns);
  return pixel_facts(g, g.terms() * vectors * lanes,
                     4.0 * static_cast<double>(g.axis[0].kernel * g.axis[1].kernel * vectors) +
                         (in_place ? 0 : copied),
                     threads);
}
}  // namespace conv_cpu

namespace {

Support supports(const Conv::Args& args, const Context&) {
  return conv_cpu::takes_pixels(conv_layer::forward(args))
             ? supported
             : unsupported("channels last, and filters that span less than a band of rows holds");
}

Work work(const Conv::Args& args, const Context&) {
  return conv_cpu::pixels_facts(conv_layer::forward(args), 1);
}

void run(const Conv::Args& args, Context& context) {
  conv_cpu::pixels_on(conv_layer::forward(args), context, 1);
}

const Rung<Conv> self{{.name = "padded_pixels",
                       .step = 37,
                       .after = "padded_planes",
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
#endif
