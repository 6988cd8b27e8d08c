// SPDX-License-Identifier: Apache-2.0
// A gathered layer with one filter per channel, channels last: a vector of channels, each lane with
// its own weights, four pixels at a time.
#if defined(RUNG_OPS_CONV_CPU_CHANNELS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_CONV_CPU_CHANNELS_INL_HPP_
#undef RUNG_OPS_CONV_CPU_CHANNELS_INL_HPP_
#else
#define RUNG_OPS_CONV_CPU_CHANNELS_INL_HPP_
#endif

#include <algorithm>
#include <cstddef>

#include "rung/core/context.hpp"
#include "rung/core/integer.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/conv/cpu/detail/channels.hpp"
#include "rung/ops/conv/cpu/detail/gather-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// In: f32, f16 or bf16, added up in f32. No divisors, up to max_depthwise_taps taps.
template <class In>
class ChannelVectors {
 public:
  explicit ChannelVectors(const Gathered& g)
      : g_(g),
        taps_(g.terms()),  // none where a phase meets no result
        blocks_(ceil_div(g.groups, std::int64_t{lanes})),
        inside_(inside(g.axis[2])) {}

  [[nodiscard]] std::size_t weight_bytes() const {
    return conv_layer::bytes_of<float>({blocks_, taps_ + 1, lanes});
  }

  void run(const cpu::Team& team, float* packed) const {
    const cpu::Range packing = team.share(blocks_);
    for (std::int64_t block = packing.begin; block < packing.end; ++block) pack(block, packed);
    team.wait();
    const cpu::Range share = team.share(g_.images * g_.axis[0].places * g_.axis[1].places);
    for (std::int64_t i = share.begin; i < share.end; ++i) {
      Run row{};
      row.o[1] = i % g_.axis[1].places;
      row.o[0] = i / g_.axis[1].places % g_.axis[0].places;
      row.n = i / g_.axis[1].places / g_.axis[0].places;
      for (std::int64_t block = 0; block < blocks_; ++block) make_row(block, row, packed);
    }
  }

 private:
  static constexpr int lanes = lanes_of<float>;
  static constexpr hn::ScalableTag<float> d{};
  using V = hn::Vec<hn::ScalableTag<float>>;

  /// [block][tap][channel], then the bias.
  void pack(std::int64_t block, float* packed) const {
    const auto count = static_cast<int>(std::min<std::int64_t>(lanes, g_.groups - block * lanes));
    const In* w = static_cast<const In*>(g_.w) + block * lanes * g_.w_group;
    float* to = packed + block * (taps_ + 1) * lanes;
    std::fill(to, to + (taps_ + 1) * lanes, 0.0F);
    for (std::int64_t tap = 0; tap < taps_; ++tap, to += lanes) {
      const std::int64_t t2 = tap % g_.axis[2].kernel;
      const std::int64_t t1 = tap / g_.axis[2].kernel % g_.axis[1].kernel;
      const std::int64_t t0 = tap / g_.axis[2].kernel / g_.axis[1].kernel;
      const In* from = w + t0 * g_.w_strides[2] + t1 * g_.w_strides[3] + t2 * g_.w_strides[4];
      for (int c = 0; c < count; ++c) to[c] = static_cast<float>(from[c * g_.w_group]);
    }
    if (g_.bias != nullptr) add_bias<float, In>(g_, block * lanes, count, to);
  }

  /// A tap whose row is within the image: where it is for pixel 0 of a row, and its weights.
  struct Tap {
    const In* x;
    const float* weights;
    std::int64_t t2;
  };

  void make_row(std::int64_t block, const Run& row, const float* packed) const {
    const auto count = static_cast<int>(std::min<std::int64_t>(lanes, g_.groups - block * lanes));
    const In* channels = static_cast<const In*>(g_.x) + block * lanes;
    const float* weights = packed + block * (taps_ + 1) * lanes;
    const float* bias = weights + taps_ * lanes;
    const SourceAxis& axis = g_.axis[2];
    Tap taps[max_depthwise_taps];
    int used = 0;
    for (std::int64_t tap = 0; tap < taps_; tap += axis.kernel) {
      const In* from = row_of(g_, channels, row, tap / axis.kernel / g_.axis[1].kernel,
                              tap / axis.kernel % g_.axis[1].kernel);
      if (from == nullptr) continue;
      for (std::int64_t t2 = 0; t2 < axis.kernel; ++t2) {
        taps[used++] = {from + (axis.start + t2 * axis.between) * g_.x_strides[4],
                        weights + (tap + t2) * lanes, t2};
      }
    }
    In* y = static_cast<In*>(g_.y) + row.n * g_.y_strides[0] + block * lanes +
            row.o[0] * g_.y_strides[2] + row.o[1] * g_.y_strides[3];
    const std::int64_t x_step = axis.step * g_.x_strides[4];
    const std::int64_t y_step = g_.y_strides[4];
    const V start = hn::LoadU(d, bias);
    const auto edge = [&](std::int64_t o) HWY_ATTR {
      V sum = start;
      for (int i = 0; i < used; ++i) {
        if (axis.source(o, taps[i].t2) < 0) continue;
        const V x = load(taps[i].x + o * x_step, count);
        sum = hn::MulAdd(hn::LoadU(d, taps[i].weights), x, sum);
      }
      store(sum, y + o * y_step, count);
    };
    std::int64_t o = 0;
    for (; o < inside_.begin; ++o) edge(o);
    constexpr int at_once = 4;
    if (count == lanes && inside_.size() >= at_once) {
      while (o < inside_.end) {
        // The last four go back over pixels that are done.
        o = std::min(o, inside_.end - at_once);
        V sums[at_once] = {start, start, start, start};
        for (int i = 0; i < used; ++i) {
          const In* from = taps[i].x + o * x_step;
          const V weight = hn::LoadU(d, taps[i].weights);
#pragma GCC unroll 4
          for (int k = 0; k < at_once; ++k) {
            sums[k] =
                hn::MulAdd(weight, cpu::HWY_NAMESPACE::load_as(d, from + k * x_step), sums[k]);
          }
        }
#pragma GCC unroll 4
        for (int k = 0; k < at_once; ++k) store(sums[k], y + (o + k) * y_step, count);
        o += at_once;
      }
    }
    for (; o < axis.places; ++o) edge(o);
  }

  static HWY_INLINE V load(const In* from, int count) {
    return count == lanes ? cpu::HWY_NAMESPACE::load_as(d, from)
                          : cpu::HWY_NAMESPACE::load_as_n(d, from, static_cast<std::size_t>(count));
  }

  HWY_INLINE void store(V sum, In* to, int count) const {
    if (g_.activation != Activation::none) {
      HWY_ALIGN float result[lanes];
      hn::Store(sum, d, result);
      activate(g_.activation, result, lanes);
      sum = hn::Load(d, result);
    }
    if (count == lanes) {
      cpu::HWY_NAMESPACE::store_as(sum, d, to);
    } else {
      cpu::HWY_NAMESPACE::store_as_n(sum, d, to, static_cast<std::size_t>(count));
    }
  }

  const Gathered& g_;
  std::int64_t taps_;
  std::int64_t blocks_;
  cpu::Range inside_;
};

/// A layer that has_channel_vectors().
inline void by_channels(const Gathered& g, Context& context, int threads) {
  visit<float, f16, bf16>(g.dtype, [&]<class In>() {
    const ChannelVectors<In> layer(g);
    auto* packed = static_cast<float*>(context.workspace(layer.weight_bytes()));
    cpu::run_team(threads, [&](const cpu::Team& team) { layer.run(team, packed); });
  });
}

}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
