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
#include "rung/ops/conv/shared/cpu/channels.hpp"
#include "rung/ops/conv/shared/cpu/gather-inl.hpp"

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
      make_row(row, packed);
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
    float* const bias = to + taps_ * lanes;
    if (taps_contiguous()) {
      int c = 0;
      for (; c + 4 <= count; c += 4) {
        transpose_four(w + c * g_.w_group, g_.w_group, taps_, to + c, lanes);
      }
      for (; c < count; ++c) {
        for (std::int64_t tap = 0; tap < taps_; ++tap) {
          to[tap * lanes + c] = static_cast<float>(w[c * g_.w_group + tap]);
        }
      }
    } else {
      for (std::int64_t tap = 0; tap < taps_; ++tap, to += lanes) {
        const std::int64_t t2 = tap % g_.axis[2].kernel;
        const std::int64_t t1 = tap / g_.axis[2].kernel % g_.axis[1].kernel;
        const std::int64_t t0 = tap / g_.axis[2].kernel / g_.axis[1].kernel;
        const In* from = w + t0 * g_.w_strides[2] + t1 * g_.w_strides[3] + t2 * g_.w_strides[4];
        for (int c = 0; c < count; ++c) to[c] = static_cast<float>(from[c * g_.w_group]);
      }
    }
    if (g_.bias != nullptr) copy_bias<float, In>(g_, block * lanes, count, bias);
  }

  /// A filter's weights are one behind the other.
  [[nodiscard]] bool taps_contiguous() const {
    std::int64_t behind = 1;
    for (int axis = 2; axis >= 0; --axis) {
      if (g_.axis[axis].kernel != 1 && g_.w_strides[2 + axis] != behind) return false;
      behind *= g_.axis[axis].kernel;
    }
    return true;
  }

  /// A tap's place, from a pixel's own of channel 0, and its weights, from a block's first.
  struct Tap {
    std::int64_t x;
    std::int64_t weights;
  };
  /// Taps that some pixels of a row have.
  struct Taps {
    Tap tap[max_depthwise_taps];
    int count = 0;
  };

  /// Of a pixel o of a row; of all pixels whose taps are inside, for o = -1.
  void set_taps(const Run& row, std::int64_t o, Taps& to) const {
    const SourceAxis& axis = g_.axis[2];
    const In* const x = static_cast<const In*>(g_.x);
    to.count = 0;
    std::int64_t weights = 0;
    for (std::int64_t t0 = 0; t0 < g_.axis[0].kernel; ++t0) {
      for (std::int64_t t1 = 0; t1 < g_.axis[1].kernel; ++t1, weights += axis.kernel * lanes) {
        const In* from = taps_ == 0 ? nullptr : row_of(g_, x, row, t0, t1);
        if (from == nullptr) continue;
        std::int64_t at = from - x + axis.start * g_.x_strides[4];
        for (std::int64_t t2 = 0; t2 < axis.kernel; ++t2, at += axis.between * g_.x_strides[4]) {
          if (o >= 0 && axis.source(o, t2) < 0) continue;
          to.tap[to.count++] = {at, weights + t2 * lanes};
        }
      }
    }
  }

  /// A row, from left to right: at its edges, where taps are missing, one pixel at a time.
  void make_row(const Run& row, const float* packed) const {
    In* const y = static_cast<In*>(g_.y) + row.n * g_.y_strides[0] + row.o[0] * g_.y_strides[2] +
                  row.o[1] * g_.y_strides[3];
    Taps taps;
    const auto edge = [&](std::int64_t o) {
      set_taps(row, o, taps);
      make_pixels<1>(taps, o, packed, y);
    };
    std::int64_t o = 0;
    for (; o < inside_.begin; ++o) edge(o);
    set_taps(row, -1, taps);
    for (; o + 8 <= inside_.end; o += 8) make_pixels<8>(taps, o, packed, y);
    if (inside_.size() >= 4) {
      // The last four go back over pixels that are done.
      for (; o < inside_.end; o += 4) {
        o = std::min(o, inside_.end - 4);
        make_pixels<4>(taps, o, packed, y);
      }
    }
    for (; o < inside_.end; ++o) make_pixels<1>(taps, o, packed, y);
    for (; o < g_.axis[2].places; ++o) edge(o);
  }

  /// So many pixels from o on, all channels.
  template <int Count>
  void make_pixels(const Taps& taps, std::int64_t o, const float* packed, In* y) const {
    const In* x = static_cast<const In*>(g_.x) + o * g_.axis[2].step * g_.x_strides[4];
    y += o * g_.y_strides[4];
    std::int64_t channel = 0;
    for (; channel + lanes <= g_.groups; channel += lanes, packed += (taps_ + 1) * lanes) {
      make_vector<Count, true>(taps, x + channel, packed, lanes, y + channel);
    }
    if (channel == g_.groups) return;
    const auto rest = static_cast<int>(g_.groups - channel);
    make_vector<Count, false>(taps, x + channel, packed, rest, y + channel);
  }

  /// No part of its caller, so that there are registers for the pixels' pointers.
  template <int Count, bool Whole>
  HWY_NOINLINE void make_vector(const Taps& taps, const In* x, const float* weights, int count,
                                In* y) const {
    const std::int64_t x_step = g_.axis[2].step * g_.x_strides[4];
    const std::int64_t y_step = g_.y_strides[4];
    const In* from[Count];
    V sums[Count];
#pragma GCC unroll 8
    for (int k = 0; k < Count; ++k) {
      from[k] = x + k * x_step;
      sums[k] = hn::LoadU(d, weights + taps_ * lanes);  // the bias
    }
    for (int i = 0; i < taps.count; ++i) {
      const V weight = hn::LoadU(d, weights + taps.tap[i].weights);
      const std::int64_t at = taps.tap[i].x;
#pragma GCC unroll 8
      for (int k = 0; k < Count; ++k) {
        sums[k] = hn::MulAdd(weight, load<Whole>(from[k] + at, count), sums[k]);
      }
    }
    if (g_.activation != Activation::none) {
      for (int k = 0; k < Count; ++k) sums[k] = activated(sums[k]);
    }
#pragma GCC unroll 8
    for (int k = 0; k < Count; ++k) store<Whole>(sums[k], y + k * y_step, count);
  }

  template <bool Whole>
  static HWY_INLINE V load(const In* from, int count) {
    if constexpr (Whole) {
      return cpu::HWY_NAMESPACE::load_as(d, from);
    } else {
      return cpu::HWY_NAMESPACE::load_as_n(d, from, static_cast<std::size_t>(count));
    }
  }

  template <bool Whole>
  static HWY_INLINE void store(V sum, In* to, int count) {
    if constexpr (Whole) {
      cpu::HWY_NAMESPACE::store_as(sum, d, to);
    } else {
      cpu::HWY_NAMESPACE::store_as_n(sum, d, to, static_cast<std::size_t>(count));
    }
  }
  [[nodiscard]] HWY_INLINE V activated(V sum) const {
    HWY_ALIGN float result[lanes];
    hn::Store(sum, d, result);
    activate(g_.activation, result, lanes);
    return hn::Load(d, result);
  }

  const Gathered& g_;
  std::int64_t taps_;
  std::int64_t blocks_;
  cpu::Range inside_;
};

}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
