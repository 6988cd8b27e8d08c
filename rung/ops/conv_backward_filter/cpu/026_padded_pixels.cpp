// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / padded pixels
//
// Idea     with channels last a pixel's filters are contiguous in dy and its terms, once the
//          padding stands around a copy of x, in that copy: nothing is gathered. Up to eight terms
//          are broadcast, each from the pixel's place moved by its offset, by one to four vectors
//          of filters that are read where they lie.
// Changes  against padded_planes: x is copied as it lies instead of channel by channel, dy not at
//          all (small types are widened), and tiles are as narrow as the filters are few.
// Cost     a load of dy per vector and a broadcast per term for each pixel.
// Limits   channels contiguous in x and dy; filters that do not span millions of places. Slices as
//          terms_by_filters, of bands.
// Tried    -
// Source   -
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "rung/cpu/isa.hpp"
#include "rung/cpu/worth.hpp"
#include "rung/ops/conv/shared/cpu/pixel_bands-inl.hpp"
#include "rung/ops/conv/shared/cpu/pixels.hpp"
#include "rung/ops/conv_backward_filter/cpu/detail/call.hpp"
#include "rung/ops/conv_backward_filter/op/layer.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_backward_filter_cpu::HWY_NAMESPACE {
using namespace conv_cpu::HWY_NAMESPACE;  // NOLINT: the bands
using conv_layer::Gathered;
namespace {

/// Some rows of pixels, and how far apart they and their rows are in x and dy.
template <class T>
struct PixelBlock {
  std::int64_t rows, width;
  std::int64_t x_pixel, x_row;
  const T* dy;
  std::int64_t dy_pixel, dy_row;
  int last;  // filters of the last vector
};

/// c[i][j] += sum over pixels of term[i] by filter j.
template <int Rows, int Vectors, class T>
HWY_NOINLINE void term_tile(const T* const* term, const PixelBlock<T>& block, T* c) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int lanes = lanes_of<T>;
  V sums[Rows][Vectors];
  const T* from[Rows];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
    from[i] = term[i];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      sums[i][v] = hn::LoadU(d, c + (i * Vectors + v) * lanes);
    }
  }
  const auto last = static_cast<std::size_t>(block.last);
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const T* dy = block.dy + r * block.dy_row;
    std::int64_t at = r * block.x_row;
    for (std::int64_t k = 0; k < block.width; ++k, at += block.x_pixel, dy += block.dy_pixel) {
      V right[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors - 1; ++v) right[v] = hn::LoadU(d, dy + v * lanes);
      right[Vectors - 1] = cpu::HWY_NAMESPACE::load_as_n(d, dy + (Vectors - 1) * lanes, last);
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i) {
        const V left = hn::Set(d, from[i][at]);
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) sums[i][v] = hn::MulAdd(left, right[v], sums[i][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      hn::StoreU(sums[i][v], d, c + (i * Vectors + v) * lanes);
    }
  }
}

template <class T>
using TermTile = void (*)(const T* const*, const PixelBlock<T>&, T*);

template <int Vectors, class T>
constexpr TermTile<T> term_tiles[] = {term_tile<1, Vectors, T>, term_tile<2, Vectors, T>,
                                      term_tile<3, Vectors, T>, term_tile<4, Vectors, T>,
                                      term_tile<5, Vectors, T>, term_tile<6, Vectors, T>,
                                      term_tile<7, Vectors, T>, term_tile<8, Vectors, T>};

/// Rows of the tallest tile of so many vectors: what the registers hold.
constexpr int max_rows(int vectors) {
  return panel_vectors == 4 ? (vectors == 4 ? 6 : 8) : (vectors == 2 ? 6 : 8);
}

template <class T>
TermTile<T> term_tile_for(int rows, int vectors) {
  if (vectors == 1) return term_tiles<1, T>[rows - 1];
  if constexpr (panel_vectors == 4) {
    if (vectors == 3) return term_tiles<3, T>[rows - 1];
    if (vectors == 4) return term_tiles<4, T>[rows - 1];
  }
  return term_tiles<2, T>[rows - 1];
}

template <class T, class In>
class PixelsByFilters {
 public:
  explicit PixelsByFilters(const Gathered& g)
      : g_(g),
        bands_(g, 1),
        vectors_(std::max<std::int64_t>(1, ceil_div(g.m, std::int64_t{lanes}))),
        block_(ceil_div(vectors_, ceil_div(vectors_, std::int64_t{panel_vectors}))),
        slices_(slices_of(g, g.groups, bands_.count() / std::max<std::int64_t>(1, g.groups))) {}

  [[nodiscard]] std::size_t slice_bytes() const {
    return conv_layer::bytes_of<T>({slices_, g_.groups, group_sums()});
  }
  [[nodiscard]] std::size_t thread_bytes() const {
    return conv_layer::bytes_of<T>({round_up(bands_.length(), 64) + panel_length()}) +
           conv_layer::bytes_of<std::int64_t>({round_up(g_.terms(), 64)});
  }

  void run(const cpu::Team& team, std::byte* memory) const {
    T* const all = reinterpret_cast<T*>(memory);
    std::byte* own =
        memory + slice_bytes() + static_cast<std::size_t>(team.rank()) * thread_bytes();
    auto* const offsets = reinterpret_cast<std::int64_t*>(own);
    set_offsets(offsets);
    T* const panel = reinterpret_cast<T*>(offsets + round_up(g_.terms(), 64));
    T* const copied = panel + panel_length();
    const cpu::Range share = team.share(slices_ * g_.groups);
    for (std::int64_t task = share.begin; task < share.end; ++task) {
      sum_slice(task % g_.groups, static_cast<int>(task / g_.groups), offsets, panel, copied,
                all + task * group_sums());
    }
    team.wait();
    const cpu::Range finished = team.share(g_.groups);
    for (std::int64_t group = finished.begin; group < finished.end; ++group) {
      write(group, all + group * group_sums());
    }
  }

 private:
  using Bands = PixelBands<T, In>;
  static constexpr int lanes = lanes_of<T>;
  static constexpr std::int64_t block_pixels = 128;  // whose filters L1 holds beside the terms

  [[nodiscard]] std::int64_t group_sums() const { return g_.terms() * vectors_ * lanes; }
  /// Small types' filters, widened.
  [[nodiscard]] std::int64_t panel_length() const {
    return std::is_same_v<T, In> ? 0 : block_pixels * vectors_ * lanes;
  }

  /// Of terms in the order t0 t1 t2 q, taps in the order of memory.
  void set_offsets(std::int64_t* to) const {
    for (std::int64_t t0 = 0; t0 < g_.axis[0].kernel; ++t0) {
      for (std::int64_t t1 = 0; t1 < g_.axis[1].kernel; ++t1) {
        for (std::int64_t t2 = 0; t2 < g_.axis[2].kernel; ++t2) {
          for (std::int64_t q = 0; q < g_.q; ++q) *to++ = bands_.offset(t0, t1, t2) + q;
        }
      }
    }
  }

  void sum_slice(std::int64_t group, int slice, const std::int64_t* offsets, T* panel, T* copied,
                 T* sums) const {
    std::memset(sums, 0, static_cast<std::size_t>(group_sums()) * sizeof(T));
    // Bands count images, then groups, then what is within an image.
    const std::int64_t within = bands_.count() / std::max<std::int64_t>(1, g_.images * g_.groups);
    const cpu::Range share = cpu::part_of(g_.images * within, slice, static_cast<int>(slices_));
    for (std::int64_t i = share.begin; i < share.end; ++i) {
      const auto band = bands_.band_of((i / within * g_.groups + group) * within + i % within);
      bands_.copy(band, copied);
      const T* x = bands_.origin(band, copied);
      const std::int64_t width = std::min(band.columns, block_pixels);
      const std::int64_t height = std::max<std::int64_t>(1, block_pixels / width);
      for (std::int64_t row = 0; row < band.rows; row += height) {
        for (std::int64_t column = 0; column < band.columns; column += width) {
          PixelBlock<T> block{};
          block.rows = std::min(height, band.rows - row);
          block.width = std::min(width, band.columns - column);
          block.x_pixel = bands_.across();
          block.x_row = bands_.down();
          const In* dy = static_cast<const In*>(g_.y) + band.n * g_.y_strides[0] +
                         group * g_.m * g_.y_strides[1] + band.o[0] * g_.y_strides[2] +
                         (band.o[1] + row) * g_.y_strides[3] +
                         (band.o[2] + column) * g_.y_strides[4];
          set_filters(dy, panel, block);
          add_pixels(band.o[0], x + row * bands_.down() + column * bands_.across(), block, offsets,
                     sums);
        }
      }
    }
  }

  /// Where the filters of a block's pixels are: in dy, or widened in the panel.
  void set_filters(const In* dy, T* panel, PixelBlock<T>& block) const {
    if constexpr (std::is_same_v<T, In>) {
      block.dy = dy;
      block.dy_pixel = g_.y_strides[4];
      block.dy_row = g_.y_strides[3];
    } else {
      block.dy = panel;
      block.dy_pixel = vectors_ * lanes;
      block.dy_row = block.width * block.dy_pixel;
      for (std::int64_t r = 0; r < block.rows; ++r) {
        for (std::int64_t k = 0; k < block.width; ++k, panel += vectors_ * lanes) {
          copy_strided(panel, dy + r * g_.y_strides[3] + k * g_.y_strides[4], 1,
                       static_cast<int>(g_.m));
        }
      }
    }
  }

  /// Sums are [block of filters][term][vectors].
  void add_pixels(std::int64_t o0, const T* x, PixelBlock<T> block, const std::int64_t* offsets,
                  T* sums) const {
    const std::int64_t deep = g_.axis[0].kernel;
    const std::int64_t terms = g_.terms() / deep;  // of a tap of the depth
    const T* const dy = block.dy;
    for (std::int64_t first = 0; first < vectors_; first += block_) {
      const auto vectors = static_cast<int>(std::min(block_, vectors_ - first));
      block.dy = dy + first * lanes;
      block.last =
          static_cast<int>(std::min<std::int64_t>(lanes, g_.m - (first + vectors - 1) * lanes));
      T* const to = sums + first * lanes * g_.terms();
      const std::int64_t tiles = ceil_div(terms, std::int64_t{max_rows(vectors)});
      for (std::int64_t t0 = 0; t0 < deep; ++t0) {
        if (g_.axis[0].source(o0, tap_at(g_.axis[0], t0)) < 0) continue;
        for (std::int64_t i = 0; i < tiles; ++i) {
          // As many terms for each tile.
          const cpu::Range part = cpu::part_of(terms, static_cast<int>(i), static_cast<int>(tiles));
          const auto rows = static_cast<int>(part.size());
          const std::int64_t term = t0 * terms + part.begin;
          const T* from[8];
          for (int k = 0; k < rows; ++k) from[k] = x + offsets[term + k];
          term_tile_for<T>(rows, vectors)(from, block, to + term * vectors * lanes);
        }
      }
    }
  }

  /// The sums of all slices, one after the other, to dw.
  void write(std::int64_t group, T* sums) const {
    const std::int64_t size = group_sums();
    for (std::int64_t slice = 1; slice < slices_; ++slice) {
      const T* other = sums + slice * g_.groups * size;
      for (std::int64_t i = 0; i < size; ++i) sums[i] += other[i];
    }
    // dw is written, though a layer's w is read.
    auto* const dw = static_cast<In*>(const_cast<void*>(g_.w)) + group * g_.w_group;  // NOLINT
    for (std::int64_t first = 0; first < vectors_; first += block_) {
      const std::int64_t pitch = std::min(block_, vectors_ - first) * lanes;
      const std::int64_t filters = std::min(pitch, g_.m - first * lanes);
      const T* from = sums + first * lanes * g_.terms();
      In* const to = dw + first * lanes * g_.w_strides[0];
      for (std::int64_t t0 = 0; t0 < g_.axis[0].kernel; ++t0) {
        for (std::int64_t t1 = 0; t1 < g_.axis[1].kernel; ++t1) {
          for (std::int64_t t2 = 0; t2 < g_.axis[2].kernel; ++t2, from += g_.q * pitch) {
            In* const tap = to + tap_at(g_.axis[0], t0) * g_.w_strides[2] +
                            tap_at(g_.axis[1], t1) * g_.w_strides[3] +
                            tap_at(g_.axis[2], t2) * g_.w_strides[4];
            write_tap(from, pitch, filters, tap);
          }
        }
      }
    }
  }

  /// [channel][filter] of a tap.
  void write_tap(const T* from, std::int64_t pitch, std::int64_t filters, In* to) const {
    std::int64_t q = 0;
    if constexpr (std::is_same_v<T, In>) {
      if (g_.w_strides[1] == 1) {
        for (; q + 4 <= g_.q; q += 4) {
          transpose_four(from + q * pitch, pitch, filters, to + q, g_.w_strides[0]);
        }
      }
    }
    for (; q < g_.q; ++q) {
      for (std::int64_t j = 0; j < filters; ++j) {
        to[j * g_.w_strides[0] + q * g_.w_strides[1]] = static_cast<In>(from[q * pitch + j]);
      }
    }
  }

  const Gathered& g_;
  Bands bands_;
  std::int64_t vectors_;  // of filters of a group
  std::int64_t block_;    // of a tile
  std::int64_t slices_;
};

}  // namespace

void padded_pixels(const ConvBackwardFilter::Args& args, Context& context, int threads) {
  const Gathered g = conv_layer::of_filters(args);
  visit<float, double, f16, bf16>(g.dtype, [&]<class In>() {
    const PixelsByFilters<Accumulator<In>, In> product(g);
    auto* memory = static_cast<std::byte*>(context.workspace(
        product.slice_bytes() + static_cast<std::size_t>(threads) * product.thread_bytes()));
    cpu::run_team(threads, [&](const cpu::Team& team) { product.run(team, memory); });
  });
}

}  // namespace rung::conv_backward_filter_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace conv_backward_filter_cpu {
namespace {
HWY_EXPORT(padded_pixels);
void pixels_on(const ConvBackwardFilter::Args& args, Context& context, int threads) {
  HWY_DYNAMIC_DISPATCH(padded_pixels)(args, context, threads);
}
}  // namespace
}  // namespace conv_backward_filter_cpu

namespace {

Support supports(const ConvBackwardFilter::Args& args, const Context&) {
  const conv_layer::Gathered g = conv_layer::of_filters(args);
  // As many slices as PixelsByFilters may make, of sums of whole vectors.
  constexpr std::int64_t most_lanes = 16, most_bands = std::int64_t{1} << 62;
  const auto sums =
      static_cast<double>(conv_backward_filter_cpu::slices_of(g, g.groups, most_bands) * g.groups) *
      static_cast<double>(round_up(g.m, most_lanes)) * static_cast<double>(g.terms());
  return conv_cpu::takes_pixels(g) && conv_cpu::fits_tensors(g, sums)
             ? supported
             : unsupported("channels last, and filters that span less than a band of rows holds");
}

/// Of one thread.
double pixel_seconds(const ConvBackwardFilter::Args& args) {
  const conv_layer::Gathered g = conv_layer::of_filters(args);
  const bool avx512 = cpu::isa() == cpu::Isa::avx512;
  const double lanes = avx512 ? 16 : 8;
  // Of a vector of a term and pixel, of a pixel of a tile, of a tile, of copying, of a sum.
  constexpr double a_vector = 0.13e-9, a_pixel = 0.3e-9, a_tile = 15e-9, a_copy = 0.06e-9,
                   a_sum = 0.6e-9, a_start = 0.5e-6;
  const auto pixels = static_cast<double>(g.pixels());
  const auto terms = static_cast<double>(g.terms());
  const double vectors = std::ceil(static_cast<double>(g.m) / lanes);
  const conv_cpu::PixelShape shape = conv_cpu::pixel_shape(g, 4, 1);
  const double copied = static_cast<double>(shape.copied_rows * shape.copied_columns) /
                        static_cast<double>(shape.rows * shape.columns) *
                        static_cast<double>(g.q * g.axis[0].kernel);
  const double widened = size_of(g.dtype) == 2 ? static_cast<double>(g.m) * 0.1e-9 + 4e-9 : 0;
  const double tiles = std::ceil(terms / 8) * std::ceil(vectors / 4);
  const double width = static_cast<double>(std::min<std::int64_t>(shape.columns, 128));
  const double height =
      std::max(1.0, std::min(std::floor(128 / width), static_cast<double>(shape.rows)));
  const double work = pixels * (terms * vectors * a_vector + tiles * a_pixel +
                                tiles * a_tile / (width * height) + copied * a_copy + widened) +
                      terms * static_cast<double>(g.m) * a_sum;
  return a_start + static_cast<double>(g.groups) * work;
}

int threads_of(const ConvBackwardFilter::Args& args, const Context& context) {
  if (context.threads() == 1) return 1;
  return cpu::threads_worth(pixel_seconds(args), context.threads());
}

double estimate(const ConvBackwardFilter::Args& args, const Context& context) {
  constexpr double a_thread = 2e-6;
  const int threads = threads_of(args, context);
  return pixel_seconds(args) / threads + (threads > 1 ? a_thread : 0);
}

void run(const ConvBackwardFilter::Args& args, Context& context) {
  conv_backward_filter_cpu::pixels_on(args, context, threads_of(args, context));
}

const Rung<ConvBackwardFilter> self{{.name = "padded_pixels",
                                     .step = 26,
                                     .after = "padded_planes",
                                     .supports = supports,
                                     .estimate = estimate,
                                     .run = run}};

}  // namespace
}  // namespace rung
#endif
