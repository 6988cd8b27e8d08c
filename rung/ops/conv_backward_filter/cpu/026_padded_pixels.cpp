// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / padded pixels
//
// Idea     With channels last a pixel's filters are contiguous in dy, and its terms are contiguous
//          in a padded copy of x: nothing is gathered. Up to eight terms are broadcast, each from
//          the pixel's position plus its offset, and multiplied by one to four vectors of filters,
//          read in place.
// Changes  Against padded_planes: x is copied in its own layout instead of channel by channel, dy
//          is not copied (except to widen small types), and tiles are narrow if filters are few.
// Cost     A load of dy per vector and a broadcast per term for each pixel.
// Limits   Channels contiguous in x and dy; filters that do not span millions of positions. Slices
//          of bands, as in terms_by_filters.
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "rung/ops/conv/shared/cpu/call.hpp"
#include "rung/ops/conv/shared/cpu/pixel_bands-inl.hpp"
#include "rung/ops/conv_backward_filter/cpu/detail/call.hpp"
#include "rung/ops/conv_backward_filter/op/layer.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_backward_filter_cpu::HWY_NAMESPACE {
using namespace conv_cpu;                 // NOLINT: bands
using namespace conv_cpu::HWY_NAMESPACE;  // NOLINT: the bands
using conv_layer::Gathered;
namespace {

/// Rows of pixels, and the distances of pixels and rows in x and dy, in elements.
template <class T>
struct PixelBlock : BandPixels {
  std::int64_t x_pixel, x_row;
  const T* dy;
  std::int64_t dy_pixel, dy_row;
  int last;  // filters in the last vector
};

/// Computes c[i][j] += sum over pixels of term[i] times filter j.
template <int Rows, int Vectors, class T>
HWY_NOINLINE void sum_terms(const T* const* term, const PixelBlock<T>& block, T* c) {
  const hn::ScalableTag<T> d;
  constexpr int lanes = lanes_of<T>;
  RegisterTile<Rows, Vectors, T> tile;
  tile.load(c, Vectors * lanes);
  const T* from[Rows];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) from[i] = term[i];
  const auto last = static_cast<std::size_t>(block.last);
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const T* dy = block.dy + r * block.dy_row;
    std::int64_t at = r * block.x_row;
    for (std::int64_t k = 0; k < block.width; ++k, at += block.x_pixel, dy += block.dy_pixel) {
      hn::Vec<decltype(d)> right[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors - 1; ++v) right[v] = hn::LoadU(d, dy + v * lanes);
      right[Vectors - 1] = load_as_n(d, dy + (Vectors - 1) * lanes, last);
      tile.add(right, [&](int i) { return from[i][at]; });
    }
  }
  tile.store(c, Vectors * lanes);
}

/// Returns the rows of the tallest tile of `vectors` vectors that fits in registers.
constexpr int max_rows(int vectors) { return vectors == tile_vectors ? 6 : 8; }

template <class T, class In>
class PixelsByFilters {
 public:
  explicit PixelsByFilters(const Gathered& g)
      : g_(g),
        bands_(g, 1),
        vectors_(std::max<std::int64_t>(1, ceil_div(g.m, std::int64_t{lanes}))),
        block_(ceil_div(vectors_, ceil_div(vectors_, std::int64_t{tile_vectors}))),
        slices_(slices_of(g, g.groups, bands_.per_group())) {}

  [[nodiscard]] std::size_t shared_bytes() const {
    return conv_layer::bytes_of<T>({slices_, g_.groups, group_sums()});
  }
  [[nodiscard]] std::size_t thread_bytes() const {
    return conv_layer::bytes_of<T>({round_up(bands_.length(), 64) + panel_length()}) +
           conv_layer::bytes_of<std::int64_t>({round_up(g_.terms(), 64)});
  }

  void run(const cpu::Team& team, std::byte* shared, std::byte* own) const {
    T* const all = reinterpret_cast<T*>(shared);
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
  static constexpr int lanes = lanes_of<T>;
  static constexpr std::int64_t block_pixels = 128;  // their dy stays in L1

  [[nodiscard]] std::int64_t group_sums() const { return g_.terms() * vectors_ * lanes; }
  /// Returns the elements of a panel of widened filters; 0 if dy is read in place.
  [[nodiscard]] std::int64_t panel_length() const {
    return std::is_same_v<T, In> ? 0 : block_pixels * vectors_ * lanes;
  }

  /// Sets the offsets of terms in the order t0 t1 t2 q, with taps in the order of memory.
  void set_offsets(std::int64_t* to) const {
    for_each_tap(g_, [&](const auto& t) {
      for (std::int64_t q = 0; q < g_.q; ++q) *to++ = bands_.offset(t[0], t[1], t[2]) + q;
    });
  }

  void sum_slice(std::int64_t group, int slice, const std::int64_t* offsets, T* panel, T* copied,
                 T* sums) const {
    std::memset(sums, 0, static_cast<std::size_t>(group_sums()) * sizeof(T));
    const cpu::Range share = cpu::part_of(bands_.per_group(), slice, static_cast<int>(slices_));
    for (std::int64_t i = share.begin; i < share.end; ++i) {
      const Band band = bands_.band_of(group, i);
      bands_.copy(band, copied);
      const T* x = bands_.origin(band, copied);
      const In* dy = static_cast<const In*>(g_.y) + group * g_.m * g_.y_strides[1] +
                     result_at(g_, band.n, band.o);
      for_each_part(band, block_pixels, [&](const BandPixels& pixels) {
        PixelBlock<T> block{pixels};
        block.x_pixel = bands_.across();
        block.x_row = bands_.down();
        set_filters(dy + pixels.row * g_.y_strides[3] + pixels.column * g_.y_strides[4], panel,
                    block);
        add_pixels(band.o[0], x + pixels.row * block.x_row + pixels.column * block.x_pixel, block,
                   offsets, sums);
      });
    }
  }

  /// Sets the location of a block's filters: in dy, or widened in the panel.
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

  /// Adds the products of a block of pixels to sums, laid out as [block of filters][term][vectors].
  void add_pixels(std::int64_t o0, const T* x, PixelBlock<T> block, const std::int64_t* offsets,
                  T* sums) const {
    const std::int64_t deep = g_.axis[0].kernel;
    const std::int64_t terms = g_.terms() / deep;  // per depth tap
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
          // Terms are divided evenly among the tiles.
          const cpu::Range part = cpu::part_of(terms, static_cast<int>(i), static_cast<int>(tiles));
          const auto rows = static_cast<int>(part.size());
          const std::int64_t term = t0 * terms + part.begin;
          const T* from[8];
          for (int k = 0; k < rows; ++k) from[k] = x + offsets[term + k];
          with_constant<tile_vectors>(vectors, [&](auto v) {
            with_constant<max_rows(decltype(v)::value)>(
                rows, [&](auto r) { sum_terms<r, v>(from, block, to + term * vectors * lanes); });
          });
        }
      }
    }
  }

  /// Adds the sums of all slices in order, and stores them to dw.
  void write(std::int64_t group, T* sums) const {
    add_slices(sums, group_sums(), slices_, g_.groups * group_sums());
    // dw is written, but Gathered::w is const.
    auto* const dw = static_cast<In*>(const_cast<void*>(g_.w)) + group * g_.w_group;  // NOLINT
    for (std::int64_t first = 0; first < vectors_; first += block_) {
      const std::int64_t pitch = std::min(block_, vectors_ - first) * lanes;
      const std::int64_t filters = std::min(pitch, g_.m - first * lanes);
      const T* from = sums + first * lanes * g_.terms();
      In* const to = dw + first * lanes * g_.w_strides[0];
      for_each_tap(g_, [&](const auto& i) {
        In* const tap = to + weight_at(g_, tap_at(g_, i).t);
        if (g_.w_strides[1] == 1) {
          copy_matrix(from, 1, pitch, filters, g_.q, tap, g_.w_strides[0]);
        } else {
          for (std::int64_t k = 0; k < g_.q * filters; ++k) {
            const std::int64_t q = k / filters, j = k % filters;
            tap[j * g_.w_strides[0] + q * g_.w_strides[1]] = static_cast<In>(from[q * pitch + j]);
          }
        }
        from += g_.q * pitch;
      });
    }
  }

  const Gathered& g_;
  PixelBands<T, In> bands_;
  std::int64_t vectors_;  // vectors of filters per group
  std::int64_t block_;    // vectors per tile
  std::int64_t slices_;
};

}  // namespace

void padded_pixels(const ConvBackwardFilter::Args& args, Context& context, int threads) {
  const Gathered g = conv_layer::of_filters(args);
  visit<float, double, f16, bf16>(g.dtype, [&]<class In>() {
    run_layer(PixelsByFilters<Accumulator<In>, In>(g), context, threads);
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
  // Upper bounds of a vector's lanes, and of the number of bands, from which slices are made.
  constexpr std::int64_t most_lanes = 16, most_bands = std::int64_t{1} << 62;
  const auto sums =
      static_cast<double>(conv_backward_filter_cpu::slices_of(g, g.groups, most_bands) * g.groups) *
      static_cast<double>(round_up(g.m, most_lanes)) * static_cast<double>(g.terms());
  return conv_cpu::takes_pixels(g) && conv_cpu::fits_tensors(g, sums)
             ? supported
             : unsupported("channels last, and filters that span less than a band of rows holds");
}

Work work(const ConvBackwardFilter::Args& args, const Context& context) {
  const conv_layer::Gathered g = conv_layer::of_filters(args);
  return conv_cpu::pixel_facts(g, g.terms() * round_up(g.m, conv_cpu::vector_lanes()), 0,
                               conv_backward_filter_cpu::threads_of(args, context));
}

void run(const ConvBackwardFilter::Args& args, Context& context) {
  conv_backward_filter_cpu::pixels_on(args, context,
                                      conv_backward_filter_cpu::threads_of(args, context));
}

const Rung<ConvBackwardFilter> self{{.name = "padded_pixels",
                                     .step = 26,
                                     .after = "padded_planes",
                                     .supports = supports,
                                     .work = work,
                                     .run = run}};

}  // namespace
}  // namespace rung
#endif
