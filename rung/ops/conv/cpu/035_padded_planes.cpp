// SPDX-License-Identifier: Apache-2.0
// conv / padded planes
//
// Idea     The pixels that a tap reads are the image itself, shifted: in a copy with padding around
//          it, no term needs to be gathered. A band of rows that fits in L2 is copied for all
//          channels, and six filters by four vectors of pixels are summed in registers from
//          unaligned loads of the copy. With a stride of s the copy is s x s planes, each of every
//          s-th position.
// Changes  Against direct_simd: x is copied once instead of once per tap; weights are packed in
//          groups of six filters, so that a tile reads one stream of weights.
// Cost     24 multiply-adds per 4 loads, each of two cache lines, and 6 broadcasts. Pixels are
//          numbered through the rows of the copy, whose padding columns are computed and discarded:
//          2 of 58 for 3 x 3 on 56 pixels, but 2 of 9 on 7.
// Limits   The copy must hold all rows that one row of pixels reads: layers whose filters span
//          millions of positions are left to direct_simd. One thread.
// Source   J. Zhang, F. Franchetti & T. Low, High performance zero-memory overhead direct
//          convolutions, 2018.
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>
#include <cstdlib>
#include <type_traits>

#include "rung/ops/conv/op/conv.hpp"
#include "rung/ops/conv/shared/cpu/call.hpp"
#include "rung/ops/conv/shared/cpu/planes-inl.hpp"
#include "rung/ops/conv/shared/layer.hpp"

namespace rung::conv_cpu {
bool planes_in_place(const Gathered& g);
}

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {
namespace {

/// Computes, with sums over planes q and taps t,
/// c[i][j] (+)= sum weights[q][t][i] planes[q plane + offset[t] + j].
template <int Rows, int Vectors, class T>
HWY_NOINLINE void sum_planes(const T* weights, const T* planes, std::int64_t count,
                             std::int64_t plane, const std::int32_t* offset, int taps, T* c,
                             bool add) {
  RegisterTile<Rows, Vectors, T> tile;
  add ? tile.load(c, panel_columns<T>) : tile.clear();
  for (std::int64_t q = 0; q < count; ++q, planes += plane) {
    for (int t = 0; t < taps; ++t, weights += Rows) {
      tile.add(planes + offset[t], [&](int i) { return weights[i]; });
    }
  }
  tile.store(c, panel_columns<T>);
}

template <class T, class In>
class PaddedPlanes {
 public:
  PaddedPlanes(const Gathered& g, int threads)
      : g_(g),
        in_place_(std::is_same_v<T, In> && planes_in_place(g)),
        bands_(g, shape_of(g, threads, in_place_)),
        shape_(bands_.shape()),
        tiles_(ceil_div(g.m, std::int64_t{tile_rows})),
        planes_(g.q * g.axis[0].kernel),
        taps_(static_cast<int>(g.axis[1].kernel * g.axis[2].kernel)) {
    // All filters share a band's planes, unless there are fewer than two bands per thread.
    constexpr std::int64_t one = 1, max_block = 510;  // filters; their sums stay in L2
    const std::int64_t bands = std::max(one, g.groups * bands_.per_group());
    const std::int64_t wanted = threads > 1 ? ceil_div(std::int64_t{threads} * 2, bands) : 1;
    const std::int64_t blocks =
        std::clamp(std::max(ceil_div(g.m, max_block), wanted), one, std::max(one, tiles_));
    block_ = ceil_div(tiles_, blocks) * tile_rows;
    blocks_ = block_ == 0 ? 0 : ceil_div(g.m, block_);
    if (in_place_) {
      reach_ = (g.axis[1].kernel - 1) * std::abs(g.axis[1].between) * shape_.pitch +
               (g.axis[2].kernel - 1) * std::abs(g.axis[2].between);
      tail_ = round_up(columns + reach_, 16) + 16;
    }
    // The range of planes that a panel reads stays in L1 beside the weights.
    constexpr std::int64_t l1_bytes = 24576;
    const std::int64_t read =
        std::min<std::int64_t>(in_place_ ? columns * taps_ : shape_.plane,
                               g.axis[1].kernel * shape_.phases[1] * (columns + shape_.pitch / 8));
    chunk_ = std::max(one, l1_bytes / std::max(one, read * static_cast<std::int64_t>(sizeof(T))));
  }

  [[nodiscard]] std::size_t shared_bytes() const {
    return conv_layer::bytes_of<T>({round_up(g_.groups * tiles_ * tile_rows * g_.terms(), 64)});
  }
  [[nodiscard]] std::size_t thread_bytes() const {
    return conv_layer::bytes_of<T>({round_up(copied() + columns, 64)}) +
           static_cast<std::size_t>(block_ * columns) * sizeof(T) +
           static_cast<std::size_t>(round_up(std::int64_t{taps_}, 64)) * sizeof(std::int32_t);
  }

  void run(const cpu::Team& team, std::byte* shared, std::byte* own) const {
    T* const packed = reinterpret_cast<T*>(shared);
    const cpu::Range tiles = team.share(g_.groups * tiles_);
    for (std::int64_t i = tiles.begin; i < tiles.end; ++i) {
      const std::int64_t first = i % tiles_ * tile_rows;
      pack_filters(g_,
                   static_cast<const In*>(g_.w) + i / tiles_ * g_.w_group + first * g_.w_strides[0],
                   static_cast<int>(std::min<std::int64_t>(tile_rows, g_.m - first)),
                   packed + i * tile_rows * g_.terms());
    }
    auto* const offsets = reinterpret_cast<std::int32_t*>(own);
    bands_.set_offsets(offsets);
    T* const sums = reinterpret_cast<T*>(offsets + round_up(std::int64_t{taps_}, 64));
    T* const planes = sums + block_ * columns;
    // The last panel reads past the last plane.
    std::fill(planes + copied(), planes + copied() + columns, T{0});
    team.wait();
    const cpu::Range share = team.share(g_.groups * bands_.per_group() * blocks_);
    std::int64_t last = -1;
    for (std::int64_t task = share.begin; task < share.end; ++task) {
      const std::int64_t index = task / blocks_;
      const Band band = bands_.band_of(index / bands_.per_group(), index % bands_.per_group());
      if (index != last && !in_place_) bands_.copy(band, 0, g_.q, planes);
      last = index;
      make(band, task % blocks_ * block_, packed, planes, offsets, sums);
    }
  }

 private:
  static constexpr int columns = panel_columns<T>;

  static PlaneShape shape_of(const Gathered& g, int threads, bool in_place) {
    PlaneShape shape = plane_shape(g, sizeof(T), threads);
    if (!in_place) return shape;
    const bool one_row = g.axis[1].places == 1 && g.axis[1].kernel == 1;
    shape.pitch = one_row ? shape.columns : g.x_strides[3];
    shape.plane = g.x_strides[1];
    return shape;
  }
  /// Returns the number of elements of a thread's planes; if planes are read in place, of the copy
  /// of the last panel.
  [[nodiscard]] std::int64_t copied() const { return planes_ * (in_place_ ? tail_ : shape_.plane); }

  /// Computes a band's pixels, numbered as in its planes, for a block of filters.
  void make(const Band& band, std::int64_t first, const T* packed, T* planes,
            const std::int32_t* offsets, T* sums) const {
    const std::int64_t filters = std::min(block_, g_.m - first);
    const std::int64_t positions = (band.rows - 1) * shape_.pitch + band.columns;
    const T* weights = packed + (band.group * tiles_ * tile_rows + first) * g_.terms();
    for (std::int64_t at = 0; at < positions; at += columns) {
      const int count = static_cast<int>(std::min<std::int64_t>(columns, positions - at));
      const T* from = planes + at;
      std::int64_t plane = shape_.plane;
      if constexpr (std::is_same_v<T, In>) {
        if (in_place_) from = image_at(band) + at;
        // The end of a panel, beyond the band, may be outside the tensor.
        if (in_place_ && count < columns) {
          for (std::int64_t q = 0; q < planes_; ++q, from += plane) {
            std::copy(from, from + count + reach_, planes + q * tail_);
            std::fill(planes + q * tail_ + count + reach_, planes + (q + 1) * tail_, T{0});
          }
          from = planes;
          plane = tail_;
        }
      }
      for (std::int64_t q = 0; q == 0 || q < planes_; q += chunk_) {
        const std::int64_t some = std::min(chunk_, planes_ - q);
        for (std::int64_t i = 0; i < filters; i += tile_rows) {
          const auto left = static_cast<int>(std::min<std::int64_t>(tile_rows, filters - i));
          with_tile<T>(left, count, [&](auto rows, auto vectors) {
            sum_planes<rows, vectors>(weights + i * g_.terms() + q * taps_ * rows, from + q * plane,
                                      some, plane, offsets, taps_, sums + i * columns, q != 0);
          });
        }
      }
      write(band, at, count, first, filters, sums);
    }
  }

  /// Returns the address of the first tap of a band's first pixel, in the image.
  [[nodiscard]] const In* image_at(const Band& band) const {
    const In* at = static_cast<const In*>(g_.x) + band.group * g_.q * g_.x_strides[1] +
                   band.n * g_.x_strides[0];
    for (int axis = 0; axis < 3; ++axis) {
      const SourceAxis& a = g_.axis[axis];
      at += (band.o[axis] * a.step + a.start + first_tap(a)) * g_.x_strides[2 + axis];
    }
    return at;
  }

  /// Stores the sums at positions [at, at + count) that are pixels.
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
  std::int64_t reach_ = 0;  // from a pixel's first tap to its last, if planes are in place
  std::int64_t tail_ = 0;   // elements of a channel's last panel, which is copied
  std::int64_t tiles_;
  std::int64_t block_ = 1;
  std::int64_t blocks_ = 1;
  std::int64_t planes_;     // q x depth taps
  std::int64_t chunk_ = 1;  // planes per chunk
  int taps_;                // taps per plane
};

}  // namespace

void padded_planes(const Gathered& g, Context& context, int threads) {
  visit<float, double, f16, bf16>(g.dtype, [&]<class In>() {
    run_layer(PaddedPlanes<Accumulator<In>, In>(g, threads), context, threads);
  });
}

}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace conv_cpu {
HWY_EXPORT(padded_planes);
void planes_on(const Gathered& g, Context& context, int threads) {
  HWY_DYNAMIC_DISPATCH(padded_planes)(g, context, threads);
}

/// Returns whether the image's own channels can be read as planes: no padding, no stride, rows
/// contiguous with few elements between them, no conversion to a wider type.
bool planes_in_place(const Gathered& g) {
  const conv_layer::SourceAxis& down = g.axis[1];
  if (size_of(g.dtype) == 2 || g.axis[0].kernel != 1 || g.x_strides[4] != 1) return false;
  if (down.step != 1 || g.axis[2].step != 1 || !all_inside(g)) return false;
  // Accepts a single row, or whole rows in which at most a third of the elements are no pixels.
  const std::int64_t across = g.axis[2].places;
  if (down.places == 1 && down.kernel == 1) return true;
  return g.x_strides[3] == g.axis[2].extent && g.axis[2].extent <= across + across / 2 &&
         across <= max_band_columns;
}

Work planes_facts(const Gathered& g, int threads) {
  constexpr std::int64_t pages_at_once = 64, rows_of_tile = 6, vector = 16;
  const PlaneShape shape = plane_shape(g, 4, 1);
  const auto of_band = static_cast<double>(shape.rows * shape.columns);
  // Sums at positions between the rows of a band are computed, then discarded.
  const auto made = static_cast<double>((shape.rows - 1) * shape.pitch + shape.columns);
  const std::int64_t rows = shape.phases[0] * shape.phases[1] * shape.height;
  const std::int64_t copied = rows * round_up(shape.pitch, vector) * g.q * g.axis[0].kernel;
  Work work =
      pixel_facts(g, made / of_band * static_cast<double>(g.terms() * round_up(g.m, rows_of_tile)),
                  static_cast<double>(copied) / of_band, threads);
  work.path = size_of(g.dtype) == 2            ? "16-bit"
              : g.y_strides[1] == 1 && g.m > 1 ? "nhwc"
              : planes_in_place(g)             ? g.q > pages_at_once ? "in place, deep" : "in place"
              : g.x_strides[4] == 1 && g.axis[2].step == 1 ? ""
                                                           : "apart";
  return work;
}
}  // namespace conv_cpu

namespace {

Support supports(const Conv::Args& args, const Context&) {
  return conv_cpu::takes_planes(conv_layer::forward(args))
             ? supported
             : unsupported("filters that span more than a band of planes holds");
}

Work work(const Conv::Args& args, const Context&) {
  return conv_cpu::planes_facts(conv_layer::forward(args), 1);
}

void run(const Conv::Args& args, Context& context) {
  conv_cpu::planes_on(conv_layer::forward(args), context, 1);
}

const Rung<Conv> self{{.name = "padded_planes",
                       .step = 35,
                       .after = "direct_simd",
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
#endif
