// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / depthwise
//
// Idea     one filter per channel, channels last: each tap's gradient is a dot product per channel.
//          Vectors are along the channels; up to nine taps, three of each of three lines of the
//          filter, are summed in registers while a row of dy goes by.
// Changes  against terms_by_filters: no tiles of one term by one filter, whose panels cost a
//          hundred times the products. All threads.
// Cost     a load of dy per nine taps, and one of x per tap, from L1.
// Limits   one filter per channel (C = K = G), channels contiguous, up to 128 taps; f32, f16, bf16.
//          Rows are cut into slices that depend on the shape alone, and whose sums are added in
//          their order.
// Tried    -
// Source   F. Chollet, Xception: Deep learning with depthwise separable convolutions, 2017.
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>

#include "rung/cpu/isa.hpp"
#include "rung/cpu/team.hpp"
#include "rung/cpu/worth.hpp"
#include "rung/ops/conv/cpu/detail/channels-inl.hpp"
#include "rung/ops/conv/cpu/detail/channels.hpp"
#include "rung/ops/conv_backward_filter/cpu/detail/call.hpp"
#include "rung/ops/conv_backward_filter/layer.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_backward_filter_cpu::HWY_NAMESPACE {
using namespace conv_cpu::HWY_NAMESPACE;  // NOLINT: vectors of channels
using conv_layer::Gathered;
using conv_layer::SourceAxis;
namespace {

template <class In>
class DepthwiseGradient {
 public:
  explicit DepthwiseGradient(const Gathered& g)
      : g_(g),
        taps_(g.taps()),
        blocks_(ceil_div(g.groups, std::int64_t{lanes})),
        rows_(g.images * g.axis[0].places * g.axis[1].places),
        slices_(slices_of(g, 1, rows_)),
        inside_(inside(g.axis[2])) {}

  [[nodiscard]] std::size_t bytes() const {
    return conv_layer::bytes_of<float>({slices_, blocks_, taps_, lanes});
  }

  void run(const cpu::Team& team, float* sums) const {
    const cpu::Range share = team.share(slices_ * blocks_);
    for (std::int64_t task = share.begin; task < share.end; ++task) {
      sum_slice(static_cast<int>(task / blocks_), task % blocks_, sums + task * taps_ * lanes);
    }
    team.wait();
    const cpu::Range finished = team.share(blocks_);
    for (std::int64_t block = finished.begin; block < finished.end; ++block) write(block, sums);
  }

 private:
  static constexpr int lanes = lanes_of<float>;
  static constexpr hn::ScalableTag<float> d{};
  using V = hn::Vec<hn::ScalableTag<float>>;

  void sum_slice(int slice, std::int64_t block, float* sums) const {
    std::fill(sums, sums + taps_ * lanes, 0.0F);
    const auto count = static_cast<int>(std::min<std::int64_t>(lanes, g_.groups - block * lanes));
    const cpu::Range rows = cpu::part_of(rows_, slice, static_cast<int>(slices_));
    const SourceAxis& deep = g_.axis[0];
    const SourceAxis& down = g_.axis[1];
    const In* const channels = static_cast<const In*>(g_.x) + block * lanes;
    Run row{};
    row.o[1] = rows.begin % down.places;
    row.o[0] = rows.begin / down.places % deep.places;
    row.n = rows.begin / down.places / deep.places;
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
      const In* dy = static_cast<const In*>(g_.y) + row.n * g_.y_strides[0] + block * lanes +
                     row.o[0] * g_.y_strides[2] + row.o[1] * g_.y_strides[3];
      // Lines of taps whose row of x is within the image, up to three at a time.
      const In* x[3];
      std::int64_t line[3];
      int lines = 0;
      std::int64_t tap = 0;
      for (std::int64_t t0 = 0; t0 < deep.kernel; ++t0) {
        for (std::int64_t t1 = 0; t1 < down.kernel; ++t1, tap += g_.axis[2].kernel) {
          const In* from = row_of(g_, channels, row, t0, t1);
          if (from == nullptr) continue;
          x[lines] = from;
          line[lines++] = tap;
          if (lines < 3) continue;
          add_lines(dy, x, line, lines, count, sums);
          lines = 0;
        }
      }
      add_lines(dy, x, line, lines, count, sums);
      if (++row.o[1] < down.places) continue;
      row.o[1] = 0;
      if (++row.o[0] < deep.places) continue;
      row.o[0] = 0;
      ++row.n;
    }
  }

  /// A row of dy to all taps of some lines, up to three at a time of each.
  void add_lines(const In* dy, const In* const* x, const std::int64_t* line, int lines, int count,
                 float* sums) const {
    if (lines == 0) return;
    const std::int64_t kernel = g_.axis[2].kernel;
    for (std::int64_t t2 = 0; t2 < kernel; t2 += 3) {
      const auto taps = static_cast<int>(std::min<std::int64_t>(3, kernel - t2));
      using Add = void (DepthwiseGradient::*)(const In*, const In* const*, const std::int64_t*,
                                              std::int64_t, int, float*) const;
      constexpr Add add[3][3] = {
          {&DepthwiseGradient::add_row<1, 1>, &DepthwiseGradient::add_row<1, 2>,
           &DepthwiseGradient::add_row<1, 3>},
          {&DepthwiseGradient::add_row<2, 1>, &DepthwiseGradient::add_row<2, 2>,
           &DepthwiseGradient::add_row<2, 3>},
          {&DepthwiseGradient::add_row<3, 1>, &DepthwiseGradient::add_row<3, 2>,
           &DepthwiseGradient::add_row<3, 3>}};
      (this->*add[lines - 1][taps - 1])(dy, x, line, t2, count, sums);
    }
  }

  /// Taps [first, first + Taps) of each line by a row of dy: enough chains of additions to hide
  /// their latency.
  template <int Lines, int Taps>
  HWY_NOINLINE void add_row(const In* dy, const In* const* x, const std::int64_t* line,
                            std::int64_t first, int count, float* to) const {
    const SourceAxis& axis = g_.axis[2];
    const std::int64_t x_step = axis.step * g_.x_strides[4];
    const std::int64_t between = axis.between * g_.x_strides[4];
    const std::int64_t y_step = g_.y_strides[4];
    const In* from[Lines];
    V sums[Lines][Taps];
#pragma GCC unroll 3
    for (int l = 0; l < Lines; ++l) {
      from[l] = x[l] + axis.start * g_.x_strides[4] + first * between;
#pragma GCC unroll 3
      for (int t = 0; t < Taps; ++t) sums[l][t] = hn::LoadU(d, to + (line[l] + first + t) * lanes);
    }
    // Of a tap in the padding no channel is loaded.
    const auto edge = [&](std::int64_t o) HWY_ATTR {
      const V result = load(dy + o * y_step, count);
#pragma GCC unroll 3
      for (int t = 0; t < Taps; ++t) {
        const auto some = static_cast<std::size_t>(axis.source(o, first + t) < 0 ? 0 : count);
        const std::int64_t at = o * x_step + t * between;
#pragma GCC unroll 3
        for (int l = 0; l < Lines; ++l) {
          const V x_at = cpu::HWY_NAMESPACE::load_as_n(d, from[l] + at, some);
          sums[l][t] = hn::MulAdd(result, x_at, sums[l][t]);
        }
      }
    };
    std::int64_t o = 0;
    for (; o < inside_.begin; ++o) edge(o);
    if (count == lanes) {
      for (; o < inside_.end; ++o) {
        const V result = cpu::HWY_NAMESPACE::load_as(d, dy + o * y_step);
#pragma GCC unroll 3
        for (int t = 0; t < Taps; ++t) {
          const std::int64_t at = o * x_step + t * between;
#pragma GCC unroll 3
          for (int l = 0; l < Lines; ++l) {
            sums[l][t] =
                hn::MulAdd(result, cpu::HWY_NAMESPACE::load_as(d, from[l] + at), sums[l][t]);
          }
        }
      }
    }
    for (; o < axis.places; ++o) edge(o);
#pragma GCC unroll 3
    for (int l = 0; l < Lines; ++l) {
#pragma GCC unroll 3
      for (int t = 0; t < Taps; ++t) {
        hn::StoreU(sums[l][t], d, to + (line[l] + first + t) * lanes);
      }
    }
  }

  static HWY_INLINE V load(const In* from, int count) {
    return count == lanes ? cpu::HWY_NAMESPACE::load_as(d, from)
                          : cpu::HWY_NAMESPACE::load_as_n(d, from, static_cast<std::size_t>(count));
  }

  void write(std::int64_t block, float* sums) const {
    const std::int64_t slice = blocks_ * taps_ * lanes;
    float* const first = sums + block * taps_ * lanes;
    for (std::int64_t i = 1; i < slices_; ++i) {
      for (std::int64_t k = 0; k < taps_ * lanes; ++k) first[k] += first[i * slice + k];
    }
    // dw is written, though a layer's w is read.
    auto* dw = static_cast<In*>(const_cast<void*>(g_.w)) + block * lanes * g_.w_group;  // NOLINT
    const std::int64_t count = std::min<std::int64_t>(lanes, g_.groups - block * lanes);
    const float* from = first;
    for (std::int64_t t0 = 0; t0 < g_.axis[0].kernel; ++t0) {
      for (std::int64_t t1 = 0; t1 < g_.axis[1].kernel; ++t1) {
        for (std::int64_t t2 = 0; t2 < g_.axis[2].kernel; ++t2, from += lanes) {
          In* to = dw + t0 * g_.w_strides[2] + t1 * g_.w_strides[3] + t2 * g_.w_strides[4];
          for (std::int64_t c = 0; c < count; ++c, to += g_.w_group) *to = static_cast<In>(from[c]);
        }
      }
    }
  }

  const Gathered& g_;
  std::int64_t taps_;
  std::int64_t blocks_;
  std::int64_t rows_;
  std::int64_t slices_;
  cpu::Range inside_;
};

}  // namespace

void depthwise(const ConvBackwardFilter::Args& args, Context& context, int threads) {
  const Gathered g = conv_layer::of_filters(args);
  visit<float, f16, bf16>(g.dtype, [&]<class In>() {
    const DepthwiseGradient<In> gradient(g);
    auto* sums = static_cast<float*>(context.workspace(gradient.bytes()));
    cpu::run_team(threads, [&](const cpu::Team& team) { gradient.run(team, sums); });
  });
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
  return conv_cpu::has_channel_vectors(g)
             ? supported
             : unsupported("channels last, f32, f16 or bf16, and up to 128 taps");
}

/// Of one thread.
double seconds(const ConvBackwardFilter::Args& args) {
  const int lanes = cpu::isa() == cpu::Isa::avx512 ? 16 : 8;
  return conv_cpu::channel_vectors_seconds(conv_layer::of_filters(args), lanes) * 1.3;
}

double estimate(const ConvBackwardFilter::Args& args, const Context& context) {
  constexpr double a_thread = 2e-6;
  const int threads = cpu::threads_worth(seconds(args), context.threads());
  return seconds(args) / threads + (threads > 1 ? a_thread : 0);
}

void run(const ConvBackwardFilter::Args& args, Context& context) {
  conv_backward_filter_cpu::depthwise_on_this_machine(
      args, context, cpu::threads_worth(seconds(args), context.threads()));
}

const Rung<ConvBackwardFilter> self{{.name = "depthwise",
                                     .step = 22,
                                     .after = "terms_by_filters",
                                     .supports = supports,
                                     .estimate = estimate,
                                     .run = run}};

}  // namespace
}  // namespace rung
#endif
