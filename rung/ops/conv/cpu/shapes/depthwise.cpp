// SPDX-License-Identifier: Apache-2.0
// conv / depthwise
//
// Idea     A filter per channel: no matrix product, only a few multiply-adds per pixel. Vectors run
//          along the channels if these are contiguous, each lane with its own weights, eight pixels
//          at a time. Otherwise they run along a row, whose pixels share a weight; at least three
//          independent chains hide the latency of additions.
// Changes  Against direct_simd: no panels, whose gathering costs as much as the multiply-adds, and
//          no tiles with 5 of 6 rows empty.
// Cost     kh kw loads per vector of y, from L1; x from memory once.
// Limits   One filter per channel (C = K = G); f32, and f16 and bf16 with channels last. With
//          channels first, rows that are contiguous and have a stride of 1; other rows are computed
//          pixel by pixel.
// Source   F. Chollet, Xception: Deep learning with depthwise separable convolutions, 2017.
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>

#include "rung/core/integer.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/conv/shared/cpu/call.hpp"
#include "rung/ops/conv/shared/cpu/gather-inl.hpp"
#include "rung/ops/conv/shared/layer.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr hn::ScalableTag<float> d;
using V = hn::Vec<decltype(d)>;
constexpr int lanes = static_cast<int>(hn::MaxLanes(d));

// --- channels last: a vector of channels, each lane with its own weights -------------------------

/// Algorithm for channels last. In is f32, f16 or bf16, accumulated in f32. Requires divisors of 1
/// (SourceAxis) and at most max_depthwise_taps taps.
template <class In>
class ChannelVectors {
 public:
  explicit ChannelVectors(const Gathered& g)
      : g_(g),
        taps_(g.terms()),  // 0 in a phase without taps
        blocks_(ceil_div(g.groups, std::int64_t{lanes})),
        inside_(inside(g.axis[2])) {}

  [[nodiscard]] std::size_t shared_bytes() const {
    return conv_layer::bytes_of<float>({blocks_, taps_ + 1, lanes});
  }
  [[nodiscard]] static std::size_t thread_bytes() { return 0; }

  void run(const cpu::Team& team, std::byte* shared, std::byte* /*own*/) const {
    auto* const packed = reinterpret_cast<float*>(shared);
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
  /// Packs a block's weights as [block][tap][channel], then the bias.
  void pack(std::int64_t block, float* packed) const {
    const auto count = static_cast<int>(std::min<std::int64_t>(lanes, g_.groups - block * lanes));
    const In* w = static_cast<const In*>(g_.w) + block * lanes * g_.w_group;
    float* to = packed + block * (taps_ + 1) * lanes;
    std::fill(to, to + (taps_ + 1) * lanes, 0.0F);
    if (g_.bias != nullptr) copy_bias<float, In>(g_, block * lanes, count, to + taps_ * lanes);
    if (taps_ == 0 || taps_contiguous()) {
      copy_matrix(w, 1, g_.w_group, taps_, count, to, lanes);
      return;
    }
    for_each_tap(g_, [&](const auto& t) {
      const In* tap = w + weight_at(g_, t);
      for (int c = 0; c < count; ++c) to[c] = static_cast<float>(tap[c * g_.w_group]);
      to += lanes;
    });
  }

  /// Returns whether the weights of a filter are contiguous.
  [[nodiscard]] bool taps_contiguous() const {
    std::int64_t behind = 1;
    for (int axis = 2; axis >= 0; --axis) {
      if (g_.axis[axis].kernel != 1 && g_.w_strides[2 + axis] != behind) return false;
      behind *= g_.axis[axis].kernel;
    }
    return true;
  }

  /// Offsets of a tap: of x, from the pixel's own position in channel 0, and of its weights, from
  /// the block's first.
  struct Tap {
    std::int64_t x;
    std::int64_t weights;
  };
  /// Taps within the image of one pixel of a row, or of all inner pixels of the row.
  struct Taps {
    Tap tap[max_depthwise_taps];
    int count = 0;
  };

  /// Sets the taps of pixel o of a row; with o = -1, of the pixels whose taps are all inside the
  /// image.
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

  /// Computes a row of y, from left to right: one pixel at a time at its edges, where taps are
  /// missing.
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
      // The last four overlap pixels that are done.
      for (; o < inside_.end; o += 4) {
        o = std::min(o, inside_.end - 4);
        make_pixels<4>(taps, o, packed, y);
      }
    }
    for (; o < inside_.end; ++o) make_pixels<1>(taps, o, packed, y);
    for (; o < g_.axis[2].places; ++o) edge(o);
  }

  /// Computes Count pixels from o on, for all channels.
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

  /// Computes Count pixels for one vector of channels. Not inlined, so that registers suffice for
  /// the pixels' pointers.
  template <int Count, bool Whole>
  HWY_NOINLINE void make_vector(const Taps& taps, const In* x, const float* weights, int count,
                                In* y) const {
    const std::int64_t x_step = g_.axis[2].step * g_.x_strides[4];
    const auto some = static_cast<std::size_t>(count);
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
        V value;
        if constexpr (Whole) {
          value = load_as(d, from[k] + at);
        } else {
          value = load_as_n(d, from[k] + at, some);
        }
        sums[k] = hn::MulAdd(weight, value, sums[k]);
      }
    }
    if (g_.activation != Activation::none) {
      for (int k = 0; k < Count; ++k) {
        HWY_ALIGN float result[lanes];
        hn::Store(sums[k], d, result);
        activate(g_.activation, result, lanes);
        sums[k] = hn::Load(d, result);
      }
    }
#pragma GCC unroll 8
    for (int k = 0; k < Count; ++k, y += g_.y_strides[4]) {
      if constexpr (Whole) {
        store_as(sums[k], d, y);
      } else {
        store_as_n(sums[k], d, y, some);
      }
    }
  }

  const Gathered& g_;
  std::int64_t taps_;
  std::int64_t blocks_;
  cpu::Range inside_;
};

// --- channels first: vectors of pixels of a row --------------------------------------------------

/// Taps of one row of y that are within the image: their source rows and weights.
struct RowTaps {
  const float* x[max_depthwise_taps];
  float weight[max_depthwise_taps];
  std::int64_t t2[max_depthwise_taps];
  int count = 0;
};

void row_taps(const Gathered& g, std::int64_t c, const Run& run, RowTaps& taps) {
  const float* channel = static_cast<const float*>(g.x) + c * g.x_strides[1];
  const float* w = static_cast<const float*>(g.w) + c * g.w_group;
  for (std::int64_t t0 = 0; t0 < g.axis[0].kernel; ++t0) {
    for (std::int64_t t1 = 0; t1 < g.axis[1].kernel; ++t1) {
      const float* row = row_of(g, channel, run, t0, t1);
      if (row == nullptr) continue;
      for (std::int64_t t2 = 0; t2 < g.axis[2].kernel; ++t2) {
        taps.x[taps.count] = row;
        taps.t2[taps.count] = t2;
        taps.weight[taps.count++] = w[weight_at(g, {t0, t1, t2})];
      }
    }
  }
}

/// Computes a row of y: pixel by pixel where a tap is in the padding, else three vectors at a time.
void along_row(const Gathered& g, std::int64_t c, const Run& run) {
  RowTaps taps;
  row_taps(g, c, run, taps);
  const SourceAxis& axis = g.axis[2];
  float bias;
  copy_bias<float, float>(g, c, 1, &bias);
  float* y = static_cast<float*>(g.y) + c * g.y_strides[1] + result_at(g, run.n, run.o);
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
      // The last vector overlaps pixels that are done, if the row is long enough.
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

/// Computes a layer for which has_channel_vectors() holds.
void depthwise_channel_vectors(const Gathered& g, Context& context, int threads) {
  visit<float, f16, bf16>(g.dtype,
                          [&]<class In>() { run_layer(ChannelVectors<In>(g), context, threads); });
}

void depthwise_rows(const Gathered& g, int threads) {
  const std::int64_t rows = g.images * g.axis[0].places * g.axis[1].places;
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    const cpu::Range share = team.share(g.groups * rows);
    for (std::int64_t i = share.begin; i < share.end; ++i) {
      Run run{};
      // Rows of an image and a channel are consecutive, so that their taps are in L1.
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
Work channel_vectors_facts(const Gathered& g, int threads) {
  const std::int64_t vectors = ceil_div(g.groups, vector_lanes());
  return {.operations = 2.0 * static_cast<double>(g.pixels() * vectors * vector_lanes() * g.taps()),
          .blocks = g.images * g.axis[0].places * g.axis[1].places * vectors,
          .steps = g.axis[2].places * (g.taps() + 4),
          .threads = threads};
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

/// Returns the work of the layer. In rows of vectors, elements at the edges are computed one by
/// one.
Work work(const Conv::Args& args, const Context& context) {
  const conv_layer::Gathered g = conv_layer::forward(args);
  if (conv_cpu::has_channel_vectors(g))
    return conv_cpu::channel_vectors_facts(g, context.threads());
  const ConvAxis& axis = args.geometry.axis[2];
  const std::int64_t lanes = conv_cpu::vector_lanes();
  const bool apart = axis.stride != 1 || args.x.strides[4] != 1;
  const std::int64_t vectors =
      apart ? 0 : std::max<std::int64_t>(axis.out - 2 * axis.padding, 0) / lanes;
  return {.blocks = args.y.size() / axis.out,
          .steps = g.taps() * (axis.out - vectors * (lanes - 1)),
          .threads = context.threads()};
}

void run(const Conv::Args& args, Context& context) {
  const conv_layer::Gathered layer = conv_layer::forward(args);
  if (conv_cpu::has_channel_vectors(layer)) {
    conv_cpu::channel_vectors_on(layer, context, context.threads());
  } else {
    conv_cpu::rows_on(layer, context.threads());
  }
}

const Rung<Conv> self{
    {.name = "depthwise", .after = "direct_simd", .supports = supports, .work = work, .run = run}};

}  // namespace
}  // namespace rung
#endif
