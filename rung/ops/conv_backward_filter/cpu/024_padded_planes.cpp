// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / padded planes
//
// Idea     The pixels that a term reads are the image itself, shifted by its tap: in a copy of a
//          band of rows with padding around it, as in conv's padded_planes, no term needs to be
//          gathered. Six terms are broadcast from the copy and multiplied by four vectors of
//          filters; the filters' elements of dy are transposed into a panel of 128 pixels, in
//          blocks of four filters by one vector.
// Changes  Against terms_by_filters: x is copied once instead of once per tap and 64 filters, and
//          in runs of rows instead of element by element. All threads.
// Cost     24 multiply-adds per 4 loads and 6 broadcasts; x and dy are copied once per block of dw,
//          of up to 256 filters and as many channels as sums in L2 allow.
// Limits   The copy must hold all rows that one row of pixels reads, as in conv's padded_planes.
//          Slices of bands, as in terms_by_filters.
// Source   J. Zhang, F. Franchetti & T. Low, High performance zero-memory overhead direct
//          convolutions, 2018.
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "rung/ops/conv/shared/cpu/call.hpp"
#include "rung/ops/conv/shared/cpu/planes-inl.hpp"
#include "rung/ops/conv_backward_filter/cpu/detail/call.hpp"
#include "rung/ops/conv_backward_filter/op/layer.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_backward_filter_cpu::HWY_NAMESPACE {
using namespace conv_cpu;                 // NOLINT: bands
using namespace conv_cpu::HWY_NAMESPACE;  // NOLINT: the tiles
using conv_layer::Gathered;
namespace {

/// Computes c[i][j] += sum over rows r and pixels k of term[i][r pitch + k] panel[r width + k][j].
template <int Rows, int Vectors, class T>
HWY_NOINLINE void sum_band(const T* const* term, const BandPixels& pixels, std::int64_t pitch,
                           const T* panel, T* c) {
  constexpr int columns = panel_columns<T>;
  RegisterTile<Rows, Vectors, T> tile;
  tile.load(c, columns);
  const T* from[Rows];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) from[i] = term[i];
  for (std::int64_t r = 0; r < pixels.rows; ++r) {
    for (std::int64_t k = 0; k < pixels.width; ++k, panel += columns) {
      tile.add(panel, [&](int i) { return from[i][k]; });
    }
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) from[i] += pitch;
  }
  tile.store(c, columns);
}

template <class T, class In>
class PlanesByFilters {
 public:
  explicit PlanesByFilters(const Gathered& g)
      : g_(g),
        taps_(g.taps()),
        filters_(std::max<std::int64_t>(1, even_chunk(g.m, max_filters_of_block))),
        channels_(even_chunk(g.q, channels_that_fit())),
        bands_(g_, shape_of(g, channels_)),
        filter_blocks_(ceil_div(g.m, filters_)),
        channel_blocks_(ceil_div(g.q, channels_)),
        slices_(slices_of(g, g.groups * filter_blocks_ * channel_blocks_, bands_.per_group())) {}

  /// Returns the bytes for the sums of all slices; 0 if there is only one slice.
  [[nodiscard]] std::size_t shared_bytes() const {
    return slices_ == 1 ? 0 : conv_layer::bytes_of<T>({blocks(), slices_, block_sums()});
  }
  [[nodiscard]] std::size_t thread_bytes() const {
    const std::int64_t sums = slices_ == 1 ? block_sums() : 0;
    return conv_layer::bytes_of<T>({panel_pixels * columns + planes_length() + sums}) +
           conv_layer::bytes_of<std::int64_t>({terms()}) +
           conv_layer::bytes_of<std::int32_t>({round_up(taps_, 64)});
  }

  void run(const cpu::Team& team, std::byte* shared, std::byte* own) const {
    T* const all = reinterpret_cast<T*>(shared);
    T* const panel = reinterpret_cast<T*>(own);
    T* const planes = panel + panel_pixels * columns;
    T* const own_sums = planes + planes_length();
    auto* const places =
        reinterpret_cast<std::int64_t*>(own_sums + (slices_ == 1 ? block_sums() : 0));
    auto* const offsets = reinterpret_cast<std::int32_t*>(places + terms());
    bands_.set_offsets(offsets);
    const std::int64_t plane_taps = g_.axis[1].kernel * g_.axis[2].kernel;
    for (std::int64_t i = 0; i < terms(); ++i) {
      places[i] = i / plane_taps * bands_.shape().plane + offsets[i % plane_taps];
    }
    std::memset(panel, 0, static_cast<std::size_t>(panel_pixels * columns) * sizeof(T));
    if (slices_ == 1) {
      const cpu::Range mine = team.share(blocks());
      for (std::int64_t block = mine.begin; block < mine.end; ++block) {
        sum_slice(block, 0, panel, planes, places, own_sums);
        write(block, own_sums);
      }
      return;
    }
    const cpu::Range share = team.share(blocks() * slices_);
    for (std::int64_t task = share.begin; task < share.end; ++task) {
      sum_slice(task / slices_, static_cast<int>(task % slices_), panel, planes, places,
                all + task * block_sums());
    }
    team.wait();
    const cpu::Range finished = team.share(blocks());
    for (std::int64_t block = finished.begin; block < finished.end; ++block) {
      write(block, all + block * slices_ * block_sums());
    }
  }

 private:
  static constexpr int columns = panel_columns<T>;
  static constexpr std::int64_t max_filters_of_block = 256;
  static constexpr std::int64_t panel_pixels = 128;  // 32 KiB, which L1 holds beside six terms

  /// Returns the shape of the planes of `channels` channels.
  static PlaneShape shape_of(Gathered g, std::int64_t channels) {
    g.q = channels;
    return plane_shape(g, sizeof(T), 1);
  }
  /// Returns the number of channels whose sums fit in half a MiB; at least one.
  [[nodiscard]] std::int64_t channels_that_fit() const {
    const std::int64_t a_term = round_up(filters_, columns) * static_cast<std::int64_t>(sizeof(T));
    return std::max<std::int64_t>(1, 524288 / a_term / taps_);
  }
  [[nodiscard]] std::int64_t blocks() const { return g_.groups * filter_blocks_ * channel_blocks_; }
  [[nodiscard]] std::int64_t terms() const {
    return round_up(channels_ * taps_, std::int64_t{tile_rows});
  }
  [[nodiscard]] std::int64_t block_sums() const { return terms() * round_up(filters_, columns); }
  [[nodiscard]] std::int64_t planes_length() const {
    return round_up(channels_ * g_.axis[0].kernel * bands_.shape().plane, 64);
  }

  struct ChannelBlock {
    std::int64_t group, filter, filters, channel, channels;
  };
  [[nodiscard]] ChannelBlock block_of(std::int64_t index) const {
    const std::int64_t channel = index % channel_blocks_ * channels_;
    const std::int64_t filter = index / channel_blocks_ % filter_blocks_ * filters_;
    return {index / channel_blocks_ / filter_blocks_, filter, std::min(filters_, g_.m - filter),
            channel, std::min(channels_, g_.q - channel)};
  }

  void sum_slice(std::int64_t index, int slice, T* panel, T* planes, const std::int64_t* places,
                 T* sums) const {
    const ChannelBlock block = block_of(index);
    std::memset(sums, 0, static_cast<std::size_t>(block_sums()) * sizeof(T));
    const cpu::Range share = cpu::part_of(bands_.per_group(), slice, static_cast<int>(slices_));
    for (std::int64_t i = share.begin; i < share.end; ++i) {
      const Band band = bands_.band_of(block.group, i);
      bands_.copy(band, block.channel, block.channels, planes);
      for_each_part(band, panel_pixels, [&](const BandPixels& pixels) {
        add_pixels(block, band, pixels, planes, panel, places, sums);
      });
    }
  }

  /// Adds the products of a part of a band, whose terms are at `planes` + places[term], to the
  /// sums.
  void add_pixels(const ChannelBlock& block, const Band& band, const BandPixels& pixels,
                  const T* planes, T* panel, const std::int64_t* places, T* sums) const {
    const std::int64_t pitch = bands_.shape().pitch, terms = block.channels * taps_;
    const In* dy = static_cast<const In*>(g_.y) + result_at(g_, band.n, band.o) +
                   (block.group * g_.m + block.filter) * g_.y_strides[1] +
                   pixels.row * g_.y_strides[3] + pixels.column * g_.y_strides[4];
    planes += pixels.row * pitch + pixels.column;
    for (std::int64_t first = 0; first < block.filters; first += columns) {
      const int filters = static_cast<int>(std::min<std::int64_t>(columns, block.filters - first));
      for (std::int64_t r = 0; r < pixels.rows; ++r) {
        copy_matrix(dy + first * g_.y_strides[1] + r * g_.y_strides[3], g_.y_strides[4],
                    g_.y_strides[1], pixels.width, filters, panel + r * pixels.width * columns,
                    columns);
      }
      T* const to = sums + first * this->terms();
      for (std::int64_t i = 0; i < terms; i += tile_rows) {
        const int some = static_cast<int>(std::min<std::int64_t>(tile_rows, terms - i));
        const T* from[tile_rows];
        for (int k = 0; k < some; ++k) from[k] = planes + places[i + k];
        with_tile<T>(some, filters, [&](auto rows, auto vectors) {
          sum_band<rows, vectors>(from, pixels, pitch, panel, to + i * columns);
        });
      }
    }
  }

  /// Adds the sums of a block's slices in order, and stores them to dw.
  void write(std::int64_t index, T* sums) const {
    const ChannelBlock block = block_of(index);
    add_slices(sums, block_sums(), slices_, block_sums());
    // dw is written, but Gathered::w is const.
    In* const dw = static_cast<In*>(const_cast<void*>(g_.w)) +  // NOLINT
                   (block.group * g_.m + block.filter) * g_.w_strides[0] +
                   block.channel * g_.w_strides[1];
    for (std::int64_t first = 0; first < block.filters; first += columns) {
      const std::int64_t some = std::min<std::int64_t>(columns, block.filters - first);
      const T* from = sums + first * terms();
      In* const to = dw + first * g_.w_strides[0];
      if (terms_contiguous()) {
        copy_matrix(from, 1, columns, some, block.channels * taps_, to, g_.w_strides[0]);
        continue;
      }
      for (std::int64_t j = 0; j < some; ++j) {
        const T* sum = from + j;
        for (std::int64_t q = 0; q < block.channels; ++q) {
          for_each_tap(g_, [&](const auto& t) {
            to[j * g_.w_strides[0] + q * g_.w_strides[1] + weight_at(g_, t)] =
                static_cast<In>(*sum);
            sum += columns;
          });
        }
      }
    }
  }

  /// Returns whether a filter's elements of dw are contiguous in the order of terms.
  [[nodiscard]] bool terms_contiguous() const {
    std::int64_t expected = 1;
    const std::int64_t extents[] = {g_.q, g_.axis[0].kernel, g_.axis[1].kernel, g_.axis[2].kernel};
    for (int axis = 3; axis >= 0; --axis) {
      if (extents[axis] != 1 && g_.w_strides[1 + axis] != expected) return false;
      expected *= extents[axis];
    }
    return true;
  }

  const Gathered& g_;
  std::int64_t taps_;
  std::int64_t filters_;   // per block
  std::int64_t channels_;  // per block
  PlaneBands<T, In> bands_;
  std::int64_t filter_blocks_;
  std::int64_t channel_blocks_;
  std::int64_t slices_;
};

}  // namespace

void padded_planes(const ConvBackwardFilter::Args& args, Context& context, int threads) {
  const Gathered g = conv_layer::of_filters(args);
  visit<float, double, f16, bf16>(g.dtype, [&]<class In>() {
    run_layer(PlanesByFilters<Accumulator<In>, In>(g), context, threads);
  });
}

}  // namespace rung::conv_backward_filter_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace conv_backward_filter_cpu {
namespace {
HWY_EXPORT(padded_planes);
void planes_on(const ConvBackwardFilter::Args& args, Context& context, int threads) {
  HWY_DYNAMIC_DISPATCH(padded_planes)(args, context, threads);
}
}  // namespace
}  // namespace conv_backward_filter_cpu

namespace {

Support supports(const ConvBackwardFilter::Args& args, const Context&) {
  const conv_layer::Gathered g = conv_layer::of_filters(args);
  constexpr std::int64_t max_taps = 1 << 14;  // taps whose sums, for 64 filters, fit in memory
  return conv_cpu::takes_planes(g) && g.taps() <= max_taps
             ? supported
             : unsupported("filters that span more than a band of planes holds");
}

Work work(const ConvBackwardFilter::Args& args, const Context& context) {
  constexpr std::int64_t terms_of_tile = 6;
  const conv_layer::Gathered g = conv_layer::of_filters(args);
  const std::int64_t filters = round_up(g.m, conv_cpu::vector_lanes());
  return conv_cpu::pixel_facts(g, round_up(g.terms(), terms_of_tile) * filters, 0,
                               conv_backward_filter_cpu::threads_of(args, context));
}

void run(const ConvBackwardFilter::Args& args, Context& context) {
  conv_backward_filter_cpu::planes_on(args, context,
                                      conv_backward_filter_cpu::threads_of(args, context));
}

const Rung<ConvBackwardFilter> self{{.name = "padded_planes",
                                     .step = 24,
                                     .after = "terms_by_filters",
                                     .supports = supports,
                                     .work = work,
                                     .run = run}};

}  // namespace
}  // namespace rung
#endif
