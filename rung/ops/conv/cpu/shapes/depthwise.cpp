// SPDX-License-Identifier: Apache-2.0
// conv / depthwise
//
// Idea     a filter per channel: there is no product, only a few multiply-adds per pixel. Vectors
//          are along the channels where those are contiguous, each lane with its own weights, four
//          pixels at a time (detail/channels-inl.hpp), else along a row, whose pixels all have the
//          same weight: three or four chains hide the latency of their additions.
// Changes  against direct_simd: no panels, whose gathering costs as much as the multiply-adds, and
//          no tiles with 5 of 6 rows empty.
// Cost     kh kw loads per vector of y, from L1; x from memory once.
// Limits   one filter per channel (C = K = G); f32, with channels last f16 and bf16; with channels
//          first contiguous rows and a stride of 1 along them, else pixel by pixel.
// Tried    -
// Source   F. Chollet, Xception: Deep learning with depthwise separable convolutions, 2017.
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>

#include "rung/core/integer.hpp"
#include "rung/cpu/isa.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/conv/cpu/detail/channels-inl.hpp"
#include "rung/ops/conv/shared/cpu/call.hpp"
#include "rung/ops/conv/shared/cpu/channels.hpp"
#include "rung/ops/conv/shared/cpu/gather-inl.hpp"
#include "rung/ops/conv/shared/layer.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr hn::ScalableTag<float> d;
using V = hn::Vec<decltype(d)>;
constexpr int lanes = static_cast<int>(hn::MaxLanes(d));
/// Taps of one channel that fit on the stack.
constexpr std::int64_t max_taps = max_depthwise_taps;

const float* filter_of(const Gathered& g, std::int64_t c) {
  return static_cast<const float*>(g.w) + c * g.w_group;
}
float bias_of(const Gathered& g, std::int64_t c) {
  float bias;
  copy_bias<float, float>(g, c, 1, &bias);
  return bias;
}

/// The taps of one row of y that are within the image: where from, and their weights.
struct RowTaps {
  const float* x[max_taps];
  float weight[max_taps];
  std::int64_t t2[max_taps];
  int count = 0;
};

void row_taps(const Gathered& g, std::int64_t c, const Run& run, RowTaps& taps) {
  const float* channel = static_cast<const float*>(g.x) + c * g.x_strides[1];
  const float* w = filter_of(g, c);
  taps.count = 0;
  for (std::int64_t t0 = 0; t0 < g.axis[0].kernel; ++t0) {
    for (std::int64_t t1 = 0; t1 < g.axis[1].kernel; ++t1) {
      const float* row = row_of(g, channel, run, t0, t1);
      if (row == nullptr) continue;
      for (std::int64_t t2 = 0; t2 < g.axis[2].kernel; ++t2) {
        taps.x[taps.count] = row;
        taps.t2[taps.count] = t2;
        taps.weight[taps.count++] =
            w[t0 * g.w_strides[2] + t1 * g.w_strides[3] + t2 * g.w_strides[4]];
      }
    }
  }
}

/// A row of y: its pixels one by one where a tap is in the padding, else three vectors at a time.
void along_row(const Gathered& g, std::int64_t c, const Run& run) {
  RowTaps taps;
  row_taps(g, c, run, taps);
  const SourceAxis& axis = g.axis[2];
  const float bias = bias_of(g, c);
  float* y = static_cast<float*>(g.y) + run.n * g.y_strides[0] + c * g.y_strides[1] +
             run.o[0] * g.y_strides[2] + run.o[1] * g.y_strides[3];
  const std::int64_t out = axis.places;
  const auto one = [&](std::int64_t o) HWY_ATTR {
    float sum = bias;
    for (int i = 0; i < taps.count; ++i) {
      const std::int64_t from = axis.source(o, taps.t2[i]);
      if (from >= 0) sum += taps.weight[i] * taps.x[i][from * g.x_strides[4]];
    }
    y[o * g.y_strides[4]] = sum;
  };
  std::int64_t o = 0;
  if (axis.step == 1 && g.x_strides[4] == 1 && g.y_strides[4] == 1) {
    const std::int64_t span = (axis.kernel - 1) * axis.between;
    const std::int64_t first = std::min(out, -axis.start);
    const std::int64_t last = std::clamp<std::int64_t>(axis.extent - span - axis.start, 0, out);
    for (; o < first; ++o) one(o);
    constexpr int at_once = 3;
    for (; o + at_once * lanes <= last; o += at_once * lanes) {
      V sums[at_once] = {hn::Set(d, bias), hn::Set(d, bias), hn::Set(d, bias)};
      for (int i = 0; i < taps.count; ++i) {
        const float* from = taps.x[i] + o + axis.start + taps.t2[i] * axis.between;
        const V weight = hn::Set(d, taps.weight[i]);
        for (int v = 0; v < at_once; ++v) {
          sums[v] = hn::MulAdd(weight, hn::LoadU(d, from + v * lanes), sums[v]);
        }
      }
      for (int v = 0; v < at_once; ++v) hn::StoreU(sums[v], d, y + o + v * lanes);
    }
    for (; o < last; o += lanes) {
      // The last vector is moved back over pixels that are done, if there are so many.
      if (o + lanes > last && last - lanes >= first) o = last - lanes;
      if (o + lanes > last) break;
      V sum = hn::Set(d, bias);
      for (int i = 0; i < taps.count; ++i) {
        const float* from = taps.x[i] + o + axis.start + taps.t2[i] * axis.between;
        sum = hn::MulAdd(hn::Set(d, taps.weight[i]), hn::LoadU(d, from), sum);
      }
      hn::StoreU(sum, d, y + o);
    }
  }
  for (; o < out; ++o) one(o);
  if (g.activation == Activation::none) return;
  for (std::int64_t i = 0; i < out; i += lanes) {
    const int some = static_cast<int>(std::min<std::int64_t>(lanes, out - i));
    float x[lanes] = {};
    copy_strided(x, y + i * g.y_strides[4], g.y_strides[4], some);
    activate(g.activation, x, lanes);
    store_strided(x, y + i * g.y_strides[4], g.y_strides[4], some);
  }
}

}  // namespace

/// A layer that has_channel_vectors().
void depthwise_channel_vectors(const Gathered& g, Context& context, int threads) {
  visit<float, f16, bf16>(g.dtype, [&]<class In>() {
    const ChannelVectors<In> layer(g);
    auto* packed = static_cast<float*>(context.workspace(layer.weight_bytes()));
    cpu::run_team(threads, [&](const cpu::Team& team) { layer.run(team, packed); });
  });
}

void depthwise_rows(const Gathered& g, int threads) {
  const std::int64_t rows = g.images * g.axis[0].places * g.axis[1].places;
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    const cpu::Range share = team.share(g.groups * rows);
    for (std::int64_t i = share.begin; i < share.end; ++i) {
      Run run{};
      // Rows of an image and a channel follow each other, so that their taps are in L1.
      std::int64_t rest = i;
      run.o[1] = rest % g.axis[1].places;
      rest /= g.axis[1].places;
      run.o[0] = rest % g.axis[0].places;
      rest /= g.axis[0].places;
      run.n = rest / g.groups;
      along_row(g, rest % g.groups, run);
    }
  });
}

}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace conv_cpu {
HWY_EXPORT(depthwise_channel_vectors);
void channel_vectors_on(const conv_layer::Gathered& layer, Context& context, int threads) {
  HWY_DYNAMIC_DISPATCH(depthwise_channel_vectors)(layer, context, threads);
}
namespace {
HWY_EXPORT(depthwise_rows);
void rows_on(const conv_layer::Gathered& layer, int threads) {
  HWY_DYNAMIC_DISPATCH(depthwise_rows)(layer, threads);
}
}  // namespace
}  // namespace conv_cpu

namespace {

Support supports(const Conv::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  const bool small = args.x.dtype == DType::f16 || args.x.dtype == DType::bf16;
  if (args.x.dtype != DType::f32 && !small) return unsupported("f32, f16 and bf16");
  if (small && !conv_cpu::has_channel_vectors(conv_layer::forward(args))) {
    return unsupported("f16 and bf16 with channels last");
  }
  if (g.group_channels() != 1 || g.group_filters() != 1) {
    return unsupported("one filter for each channel");
  }
  return g.taps() <= conv_cpu::max_depthwise_taps ? supported
                                                  : unsupported("filters of up to 128 taps");
}

/// Seconds of a tap of a pixel, by rows.
double seconds_of_tap(const Conv::Args& args) {
  constexpr double vector = 0.4e-9, pixel_in_row = 0.65e-9, pixel_apart = 4e-9;
  const ConvGeometry& g = args.geometry;
  const std::int64_t lanes = cpu::isa() == cpu::Isa::avx512 ? 16 : 8;
  if (g.axis[2].stride != 1 || args.x.strides[4] != 1) return pixel_apart;
  // Whole vectors of a row, of pixels that no tap of the padding reaches; the others one by one.
  const std::int64_t inside = std::max<std::int64_t>(g.axis[2].out - 2 * g.axis[2].padding, 0);
  const double whole = static_cast<double>(inside / lanes * lanes) /
                       static_cast<double>(std::max<std::int64_t>(g.axis[2].out, 1));
  return whole * vector / static_cast<double>(lanes) + (1 - whole) * pixel_in_row;
}

double estimate(const Conv::Args& args, const Context& context) {
  constexpr double a_pixel = 4e-9, a_thread = 2e-6;
  const double pixels = static_cast<double>(args.y.size());
  const double taps = static_cast<double>(args.geometry.taps());
  const conv_layer::Gathered g = conv_layer::forward(args);
  const double work =
      conv_cpu::has_channel_vectors(g)
          ? conv_cpu::channel_vectors_seconds(g, cpu::isa() == cpu::Isa::avx512 ? 16 : 8)
          : pixels * taps * seconds_of_tap(args) + pixels / 16 * a_pixel;
  return work / context.threads() + (context.threads() > 1 ? a_thread : 0);
}

void run(const Conv::Args& args, Context& context) {
  const conv_layer::Gathered layer = conv_layer::forward(args);
  if (conv_cpu::has_channel_vectors(layer)) {
    conv_cpu::channel_vectors_on(layer, context, context.threads());
  } else {
    conv_cpu::rows_on(layer, context.threads());
  }
}

const Rung<Conv> self{{.name = "depthwise",
                       .after = "direct_simd",
                       .supports = supports,
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
#endif
