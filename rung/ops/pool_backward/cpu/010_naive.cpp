// SPDX-License-Identifier: Apache-2.0
// pool_backward / naive
//
// Idea     Scatter: dx is set to zero, then each output adds its dy to the element that was its
//          maximum, or its contribution to each of its taps.
// Changes  Baseline.
// Cost     dx is stored, then loaded and stored once per tap (max: once per output).
// Limits   f32, maximum and average; one thread, since two windows may add to the same element.
#include "rung/ops/pool_backward/op/pool_backward.hpp"

namespace rung {
namespace {

template <class Index>
void scatter_maxima(const PoolBackward::Args& args) {
  const auto dy = args.dy.view<const float, 4>();
  const auto dx = args.dx.view<float, 4>();
  const auto indices = args.options.indices.view<const Index, 4>();
  for (std::int64_t n = 0; n < args.images(); ++n) {
    for (std::int64_t c = 0; c < args.channels(); ++c) {
      for (std::int64_t oh = 0; oh < args.rows.out; ++oh) {
        for (std::int64_t ow = 0; ow < args.columns.out; ++ow) {
          const std::int64_t place = indices(n, c, oh, ow);
          const std::int64_t h = place / args.columns.in;
          const std::int64_t w = place % args.columns.in;
          if (place < 0 || h >= args.rows.in) continue;
          if (args.rows.tap_at(oh, h) < 0 || args.columns.tap_at(ow, w) < 0) continue;
          dx(n, c, h, w) += dy(n, c, oh, ow);
        }
      }
    }
  }
}

void scatter_shares(const PoolBackward::Args& args) {
  const auto dy = args.dy.view<const float, 4>();
  const auto dx = args.dx.view<float, 4>();
  const PoolAxis& rows = args.rows;
  const PoolAxis& columns = args.columns;
  const bool padded = args.options.count_padding;
  for (std::int64_t n = 0; n < args.images(); ++n) {
    for (std::int64_t c = 0; c < args.channels(); ++c) {
      for (std::int64_t oh = 0; oh < rows.out; ++oh) {
        const PoolTaps down = rows.taps(oh);
        for (std::int64_t ow = 0; ow < columns.out; ++ow) {
          const PoolTaps across = columns.taps(ow);
          const std::int64_t count = padded ? rows.padded_taps(oh) * columns.padded_taps(ow)
                                            : down.count() * across.count();
          const float share = dy(n, c, oh, ow) / static_cast<float>(count);
          for (std::int64_t i = down.begin; i < down.end; ++i) {
            for (std::int64_t j = across.begin; j < across.end; ++j) {
              dx(n, c, rows.start(oh) + i * rows.dilation,
                 columns.start(ow) + j * columns.dilation) += share;
            }
          }
        }
      }
    }
  }
}

Support supports(const PoolBackward::Args& args, const Context&) {
  if (args.kind() != Pooling::max && args.kind() != Pooling::average) {
    return unsupported("maximum and average only");
  }
  return args.dx.dtype == DType::f32 ? supported : unsupported("f32 only");
}

/// Returns the work of a call for the time model: elements of dx set to zero, then windows or their
/// taps added.
Work work(const PoolBackward::Args& args, const Context&) {
  const std::int64_t taps = args.kind() == Pooling::max ? 1 : args.taps();
  return {
      .blocks = args.dx.size(),
      .steps = static_cast<double>(args.dy.size() * taps) / static_cast<double>(args.dx.size())};
}

void run(const PoolBackward::Args& args, Context&) {
  const auto dx = args.dx.view<float, 4>();
  for (std::int64_t n = 0; n < args.images(); ++n) {
    for (std::int64_t c = 0; c < args.channels(); ++c) {
      for (std::int64_t h = 0; h < args.rows.in; ++h) {
        for (std::int64_t w = 0; w < args.columns.in; ++w) dx(n, c, h, w) = 0;
      }
    }
  }
  if (args.kind() == Pooling::average) return scatter_shares(args);
  visit<std::int32_t, std::int64_t>(args.options.indices.dtype,
                                    [&]<class Index>() { scatter_maxima<Index>(args); });
}

const Rung<PoolBackward> self{
    {.name = "naive", .step = 10, .supports = supports, .work = work, .run = run}};

}  // namespace
}  // namespace rung
