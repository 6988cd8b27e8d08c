// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / depthwise
//
// Idea     One filter per channel, channels last: each tap's gradient is a dot product per channel.
//          Vectors run along the channels; up to nine taps, three in each of three lines of the
//          filter, are summed in registers over a band of rows of dy. If there is padding, or a
//          small type, x is first copied with the padding around it.
// Changes  Against terms_by_filters: no tiles of one term by one filter, whose panels cost a
//          hundred times the products. All threads.
// Cost     A load of dy per nine taps, and one of x per tap, from the caches.
// Limits   One filter per channel (C = K = G), channels contiguous, up to 128 taps; f32, f16, bf16.
//          Bands are partitioned into slices that depend on the shape alone, and whose sums are
//          added in order.
// Source   F. Chollet, Xception: Deep learning with depthwise separable convolutions, 2017.
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>

#include "rung/cpu/team.hpp"
#include "rung/ops/conv/shared/cpu/call.hpp"
#include "rung/ops/conv/shared/cpu/pixel_bands-inl.hpp"
#include "rung/ops/conv_backward_filter/cpu/detail/call.hpp"
#include "rung/ops/conv_backward_filter/op/layer.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_backward_filter_cpu::HWY_NAMESPACE {
using namespace conv_cpu;                 // NOLINT: bands
using namespace conv_cpu::HWY_NAMESPACE;  // NOLINT: bands
using conv_layer::Gathered;
namespace {

/// Rows of pixels, and the distances of pixels and rows in x and dy, in elements.
struct PixelBlock {
  std::int64_t rows, width;
  std::int64_t x_pixel, x_row;
  std::int64_t dy_pixel, dy_row;
};

/// Adds the products of up to three taps, `between` elements apart, of up to three lines of a
/// filter: nine independent chains of additions. If not Whole, the vector has `count` channels.
template <int Lines, int Taps, bool Whole, class In>
HWY_NOINLINE void add_taps(const float* const* line, std::int64_t between, const In* dy,
                           const PixelBlock& block, std::size_t count, float* const* to) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int lanes = lanes_of<float>;
  V sums[Lines][Taps];
#pragma GCC unroll 3
  for (int l = 0; l < Lines; ++l) {
#pragma GCC unroll 3
    for (int t = 0; t < Taps; ++t) sums[l][t] = hn::LoadU(d, to[l] + t * lanes);
  }
  const auto load = [&](const auto* from) HWY_ATTR {
    if constexpr (Whole) {
      return cpu::HWY_NAMESPACE::load_as(d, from);
    } else {
      return cpu::HWY_NAMESPACE::load_as_n(d, from, count);
    }
  };
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const float* from[Lines];
#pragma GCC unroll 3
    for (int l = 0; l < Lines; ++l) from[l] = line[l] + r * block.x_row;
    const In* result = dy + r * block.dy_row;
    std::int64_t at = 0;
    for (std::int64_t k = 0; k < block.width; ++k, at += block.x_pixel, result += block.dy_pixel) {
      const V value = load(result);
#pragma GCC unroll 3
      for (int t = 0; t < Taps; ++t) {
#pragma GCC unroll 3
        for (int l = 0; l < Lines; ++l) {
          sums[l][t] = hn::MulAdd(value, load(from[l] + at + t * between), sums[l][t]);
        }
      }
    }
  }
#pragma GCC unroll 3
  for (int l = 0; l < Lines; ++l) {
#pragma GCC unroll 3
    for (int t = 0; t < Taps; ++t) hn::StoreU(sums[l][t], d, to[l] + t * lanes);
  }
}

template <class In>
using AddTaps = void (*)(const float* const*, std::int64_t, const In*, const PixelBlock&,
                         std::size_t, float* const*);

template <class In>
class DepthwiseGradient {
 public:
  explicit DepthwiseGradient(const Gathered& g)
      : g_(g),
        taps_(g.taps()),
        blocks_(ceil_div(g.groups, std::int64_t{lanes})),
        parts_(ceil_div(g.groups, part_channels)),
        slices_(slices_of(g, parts_, g.images * g.axis[0].places * g.axis[1].places)) {}

  [[nodiscard]] std::size_t shared_bytes() const {
    return conv_layer::bytes_of<float>({slices_, blocks_, taps_, lanes});
  }
  [[nodiscard]] std::size_t thread_bytes() const {
    std::int64_t longest = 0;
    for (const std::int64_t part : {std::int64_t{0}, parts_ - 1}) {
      longest = std::max(longest, PixelBands<float, In>(part_of(part), 1).length());
    }
    return conv_layer::bytes_of<float>({round_up(longest, 64)});
  }

  void run(const cpu::Team& team, std::byte* shared, std::byte* own) const {
    auto* const sums = reinterpret_cast<float*>(shared);
    auto* const copied = reinterpret_cast<float*>(own);
    const cpu::Range share = team.share(slices_ * parts_);
    for (std::int64_t task = share.begin; task < share.end; ++task) {
      sum_slice(static_cast<int>(task / parts_), task % parts_, copied, sums);
    }
    team.wait();
    const cpu::Range finished = team.share(blocks_);
    for (std::int64_t block = finished.begin; block < finished.end; ++block) write(block, sums);
  }

 private:
  static constexpr int lanes = lanes_of<float>;
  /// Returns part `part` of the channels, as a layer of one group.
  [[nodiscard]] Gathered part_of(std::int64_t part) const {
    Gathered made = g_;
    made.x = static_cast<const In*>(g_.x) + part * part_channels;
    made.groups = 1;
    made.q = made.m = std::min(part_channels, g_.groups - part * part_channels);
    return made;
  }

  void sum_slice(int slice, std::int64_t part, float* copied, float* all) const {
    const Gathered layer = part_of(part);
    const PixelBands<float, In> bands(layer, 1);
    const std::int64_t first = part * part_channels / lanes;
    float* const sums = all + (slice * blocks_ + first) * taps_ * lanes;
    std::fill(sums, sums + ceil_div(layer.q, std::int64_t{lanes}) * taps_ * lanes, 0.0F);
    const cpu::Range share = cpu::part_of(bands.per_group(), slice, static_cast<int>(slices_));
    for (std::int64_t i = share.begin; i < share.end; ++i) {
      const Band band = bands.band_of(0, i);
      bands.copy(band, copied);
      const float* x = bands.origin(band, copied);
      const PixelBlock block{band.rows,    band.columns,    bands.across(),
                             bands.down(), g_.y_strides[4], g_.y_strides[3]};
      const In* dy =
          static_cast<const In*>(g_.y) + part * part_channels + result_at(g_, band.n, band.o);
      for (std::int64_t c = 0; c < layer.q; c += lanes) {
        const auto count = static_cast<std::size_t>(std::min<std::int64_t>(lanes, layer.q - c));
        add_block(bands, band.o[0], x + c, dy + c, block, count, sums + c * taps_);
      }
    }
  }

  /// Adds all taps of a vector of channels, with taps in the order of memory.
  void add_block(const PixelBands<float, In>& bands, std::int64_t o0, const float* x, const In* dy,
                 const PixelBlock& block, std::size_t count, float* sums) const {
    constexpr AddTaps<In> add[3][3] = {
        {add_taps<1, 1, true, In>, add_taps<1, 2, true, In>, add_taps<1, 3, true, In>},
        {add_taps<2, 1, true, In>, add_taps<2, 2, true, In>, add_taps<2, 3, true, In>},
        {add_taps<3, 1, true, In>, add_taps<3, 2, true, In>, add_taps<3, 3, true, In>}};
    constexpr AddTaps<In> add_some[3] = {add_taps<1, 1, false, In>, add_taps<1, 2, false, In>,
                                         add_taps<1, 3, false, In>};
    const std::int64_t down = g_.axis[1].kernel;
    const std::int64_t across = g_.axis[2].kernel;
    const std::int64_t at_once = count == lanes ? 3 : 1;
    for (std::int64_t t0 = 0; t0 < g_.axis[0].kernel; ++t0) {
      if (g_.axis[0].source(o0, tap_at(g_.axis[0], t0)) < 0) continue;
      for (std::int64_t t1 = 0; t1 < down; t1 += at_once) {
        const auto lines = static_cast<int>(std::min(at_once, down - t1));
        for (std::int64_t t2 = 0; t2 < across; t2 += 3) {
          const auto taps = static_cast<int>(std::min<std::int64_t>(3, across - t2));
          const float* line[3];
          float* to[3];
          for (int l = 0; l < lines; ++l) {
            line[l] = x + bands.offset(t0, t1 + l, t2);
            to[l] = sums + ((t0 * down + t1 + l) * across + t2) * lanes;
          }
          const auto f = count == lanes ? add[lines - 1][taps - 1] : add_some[taps - 1];
          f(line, bands.offset(0, 0, 1), dy, block, count, to);
        }
      }
    }
  }

  void write(std::int64_t block, float* sums) const {
    float* const first = sums + block * taps_ * lanes;
    add_slices(first, taps_ * lanes, slices_, blocks_ * taps_ * lanes);
    // dw is written, but Gathered::w is const.
    auto* dw = static_cast<In*>(const_cast<void*>(g_.w)) + block * lanes * g_.w_group;  // NOLINT
    const std::int64_t count = std::min<std::int64_t>(lanes, g_.groups - block * lanes);
    const float* from = first;
    for_each_tap(g_, [&](const auto& i) {
      In* to = dw + weight_at(g_, tap_at(g_, i).t);
      for (std::int64_t c = 0; c < count; ++c, to += g_.w_group) *to = static_cast<In>(from[c]);
      from += lanes;
    });
  }

  const Gathered& g_;
  std::int64_t taps_;
  std::int64_t blocks_;  // number of vectors of channels
  std::int64_t parts_;
  std::int64_t slices_;
};

}  // namespace

void depthwise(const ConvBackwardFilter::Args& args, Context& context, int threads) {
  const Gathered g = conv_layer::of_filters(args);
  visit<float, f16, bf16>(
      g.dtype, [&]<class In>() { run_layer(DepthwiseGradient<In>(g), context, threads); });
}

}  // namespace rung::conv_backward_filter_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace conv_backward_filter_cpu {
namespace {
HWY_EXPORT(depthwise);
void depthwise_on_this_machine(const ConvBackwardFilter::Args& args, Context& context,
                               int threads) {
  HWY_DYNAMIC_DISPATCH(depthwise)(args, context, threads);
}
}  // namespace
}  // namespace conv_backward_filter_cpu

namespace {

Support supports(const ConvBackwardFilter::Args& args, const Context&) {
  const conv_layer::Gathered g = conv_layer::of_filters(args);
  if (g.m != 1 || g.q != 1 || g.groups == 1) return unsupported("one filter for each channel");
  if (!conv_cpu::has_channel_vectors(g)) {
    return unsupported("channels last, f32, f16 or bf16, and up to 128 taps");
  }
  conv_layer::Gathered part = g;  // channels whose bands are copied together
  part.q = part.m = std::min(conv_backward_filter_cpu::part_channels, g.groups);
  part.groups = 1;
  return conv_cpu::takes_pixels(part) ? supported
                                      : unsupported("filters that span less than a band of rows");
}

Work work(const ConvBackwardFilter::Args& args, const Context& context) {
  return conv_cpu::channel_vectors_facts(conv_layer::of_filters(args),
                                         conv_backward_filter_cpu::threads_of(args, context));
}

void run(const ConvBackwardFilter::Args& args, Context& context) {
  conv_backward_filter_cpu::depthwise_on_this_machine(
      args, context, conv_backward_filter_cpu::threads_of(args, context));
}

const Rung<ConvBackwardFilter> self{{.name = "depthwise",
                                     .after = "terms_by_filters",
                                     .supports = supports,
                                     .work = work,
                                     .run = run}};

}  // namespace
}  // namespace rung
#endif
