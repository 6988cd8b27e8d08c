// SPDX-License-Identifier: Apache-2.0
// pool / SIMD
//
// Idea     A vector of adjacent windows, tap by tap: along contiguous channels, where all lanes
//          have the same taps; otherwise along W, where lane k has the window `stride` elements
//          after lane k - 1's. With a stride of 2 it takes the even elements of two vectors.
// Changes  Against clipped: 16 windows at a time, and one clipping per vector. Windows at the edges
//          of a row, which reach into the padding, are computed one by one. The width of the
//          vectors alone gives up to 16x.
// Cost     kh kw loads per vector of outputs, from the L1 cache; x from memory once.
// Limits   f32, maximum and average; strides of 1 and 2 along W; no indices, bias or activation;
//          one thread.
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rung/cpu/isa.hpp"
#include "rung/cpu/load-inl.hpp"
#include "rung/ops/pool/op/pool.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::pool_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr hn::ScalableTag<float> d;
using V = hn::Vec<decltype(d)>;

/// Taps of one window within the image; x is the window's first tap, which may be outside.
struct Taps {
  const float* x;
  PoolTaps rows, columns;
  std::int64_t row_step, column_step;
  float divisor;  // of an average

  template <bool max, class Load>
  HWY_INLINE V vector(const Load& load) const {
    V result = hn::Set(d, max ? -std::numeric_limits<float>::infinity() : 0.0F);
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
      for (std::int64_t j = columns.begin; j < columns.end; ++j) {
        const V v = load(x + i * row_step + j * column_step);
        if constexpr (max) {
          // A NaN stays: no v is greater.
          result = hn::IfThenElse(hn::Or(hn::Gt(v, result), hn::IsNaN(v)), v, result);
        } else {
          result = hn::Add(result, v);
        }
      }
    }
    return max ? result : hn::Div(result, hn::Set(d, divisor));
  }
};

Taps taps_of(const Pool::Args& args, std::int64_t n, std::int64_t c, std::int64_t oh,
             std::int64_t ow) {
  const Extents& strides = args.x.strides;
  const PoolAxis& rows = args.rows;
  const PoolAxis& columns = args.columns;
  const bool padded = args.options.count_padding;
  Taps taps{.x = static_cast<const float*>(args.x.data) + n * strides[0] + c * strides[1] +
                 rows.start(oh) * strides[2] + columns.start(ow) * strides[3],
            .rows = rows.taps(oh),
            .columns = columns.taps(ow),
            .row_step = rows.dilation * strides[2],
            .column_step = columns.dilation * strides[3],
            .divisor = 1};
  taps.divisor = static_cast<float>((padded ? rows.padded_taps(oh) : taps.rows.count()) *
                                    (padded ? columns.padded_taps(ow) : taps.columns.count()));
  return taps;
}

template <bool max>
void along_channels(const Pool::Args& args) {
  const auto y = args.y.view<float, 4>();
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t n = 0; n < args.images(); ++n) {
    for (std::int64_t oh = 0; oh < args.rows.out; ++oh) {
      for (std::int64_t ow = 0; ow < args.columns.out; ++ow) {
        const Taps taps = taps_of(args, n, 0, oh, ow);
        float* const to = &y(n, 0, oh, ow);
        std::int64_t c = 0;
        for (; c + lanes <= args.channels(); c += lanes) {
          const auto load = [&](const float* from) HWY_ATTR { return hn::LoadU(d, from + c); };
          hn::StoreU(taps.vector<max>(load), d, to + c);
        }
        const auto rest = static_cast<std::size_t>(args.channels() - c);
        if (rest == 0) continue;
        const auto load = [&](const float* from)
                              HWY_ATTR { return cpu::HWY_NAMESPACE::load_as_n(d, from + c, rest); };
        cpu::HWY_NAMESPACE::store_as_n(taps.vector<max>(load), d, to + c, rest);
      }
    }
  }
}

template <bool max, int stride>
void along_width(const Pool::Args& args) {
  const auto y = args.y.view<float, 4>();
  const PoolAxis& columns = args.columns;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t span = (columns.kernel - 1) * columns.dilation + 1;
  // Windows [first, last) are within the row. A vector of them loads up to the end of its last
  // window and, with stride 2, one element more.
  const std::int64_t room = columns.in + columns.padding - span - (stride - 1);
  const std::int64_t first = std::min(ceil_div(columns.padding, columns.stride), columns.out);
  const std::int64_t last = room < 0 ? 0 : std::min(room / columns.stride + 1, columns.out);
  for (std::int64_t n = 0; n < args.images(); ++n) {
    for (std::int64_t c = 0; c < args.channels(); ++c) {
      for (std::int64_t oh = 0; oh < args.rows.out; ++oh) {
        const auto edge = [&](std::int64_t ow) HWY_ATTR {
          const auto one = [&](const float* from) HWY_ATTR { return hn::Set(d, *from); };
          y(n, c, oh, ow) = hn::GetLane(taps_of(args, n, c, oh, ow).vector<max>(one));
        };
        std::int64_t ow = 0;
        for (; ow < first; ++ow) edge(ow);
        for (; ow + lanes <= last; ow += lanes) {
          const auto load = [&](const float* from) HWY_ATTR {
            if constexpr (stride == 1) return hn::LoadU(d, from);
            V even;
            V odd;
            hn::LoadInterleaved2(d, from, even, odd);
            return even;
          };
          hn::StoreU(taps_of(args, n, c, oh, ow).vector<max>(load), d, &y(n, c, oh, ow));
        }
        for (; ow < columns.out; ++ow) edge(ow);
      }
    }
  }
}

}  // namespace

void simd(const Pool::Args& args) {
  const bool max = args.kind() == Pooling::max;
  if (args.x.strides[1] == 1 && args.y.strides[1] == 1) {
    return max ? along_channels<true>(args) : along_channels<false>(args);
  }
  if (args.columns.stride == 1) {
    return max ? along_width<true, 1>(args) : along_width<false, 1>(args);
  }
  max ? along_width<true, 2>(args) : along_width<false, 2>(args);
}

}  // namespace rung::pool_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace pool_cpu {
namespace {
HWY_EXPORT(simd);
void simd_on_this_machine(const Pool::Args& args) { HWY_DYNAMIC_DISPATCH(simd)(args); }
}  // namespace
}  // namespace pool_cpu

namespace {

Support supports(const Pool::Args& args, const Context&) {
  if (args.kind() != Pooling::max && args.kind() != Pooling::average) {
    return unsupported("maximum and average only");
  }
  if (args.has_indices() || args.has_epilogue()) {
    return unsupported("no indices, no bias, no activation");
  }
  if (args.x.dtype != DType::f32) return unsupported("f32 only");
  if (args.x.strides[1] == 1 && args.y.strides[1] == 1) return supported;
  const bool rows = args.x.strides[3] == 1 && args.y.strides[3] == 1 && args.columns.stride <= 2;
  return rows ? supported
              : unsupported("contiguous channels, or contiguous rows and a stride of 1 or 2");
}

/// Returns the work of a call for the time model. Windows at the edges of rows are computed one by
/// one.
Work work(const Pool::Args& args, const Context&) {
  const std::int64_t lanes = cpu::isa() == cpu::Isa::avx512 ? 16 : 8;
  const bool channels = args.x.strides[1] == 1 && args.y.strides[1] == 1;
  const std::int64_t along = channels ? args.channels() : args.columns.out;
  const std::int64_t vectors =
      channels ? ceil_div(along, lanes) : along / lanes + std::min(along, lanes);
  return {.blocks = args.y.size() / along, .steps = args.taps() * vectors};
}

void run(const Pool::Args& args, Context&) { pool_cpu::simd_on_this_machine(args); }

const Rung<Pool> self{{.name = "simd",
                       .step = 20,
                       .after = "clipped",
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
#endif
