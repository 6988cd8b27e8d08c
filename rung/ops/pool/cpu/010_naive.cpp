// SPDX-License-Identifier: Apache-2.0
// pool / naive
//
// Idea     The definition: loops over each window's taps one by one, skipping taps outside the
//          image.
// Changes  Baseline.
// Cost     kh kw loads and as many bounds checks per output. As windows overlap, each element of x
//          is loaded (kh kw) / (sh sw) times, mostly from the caches.
// Limits   f32, maximum and average; no indices, bias or activation; one thread.
#include <cmath>
#include <limits>

#include "rung/ops/pool/op/pool.hpp"

namespace rung {
namespace {

void naive(const Pool::Args& args) {
  const auto x = args.x.view<const float, 4>();
  const auto y = args.y.view<float, 4>();
  const PoolAxis& rows = args.rows;
  const PoolAxis& columns = args.columns;
  const bool max = args.kind() == Pooling::max;
  for (std::int64_t n = 0; n < args.images(); ++n) {
    for (std::int64_t c = 0; c < args.channels(); ++c) {
      for (std::int64_t oh = 0; oh < rows.out; ++oh) {
        for (std::int64_t ow = 0; ow < columns.out; ++ow) {
          float maximum = -std::numeric_limits<float>::infinity();
          float sum = 0;
          std::int64_t count = 0;
          for (std::int64_t i = 0; i < rows.kernel; ++i) {
            for (std::int64_t j = 0; j < columns.kernel; ++j) {
              const std::int64_t h = oh * rows.stride - rows.padding + i * rows.dilation;
              const std::int64_t w = ow * columns.stride - columns.padding + j * columns.dilation;
              if (h < 0 || h >= rows.in || w < 0 || w >= columns.in) {
                const bool padded = h < rows.in + rows.padding && w < columns.in + columns.padding;
                if (args.options.count_padding && padded) ++count;
                continue;
              }
              const float v = x(n, c, h, w);
              if (v > maximum || std::isnan(v)) maximum = v;  // once NaN, no v is greater
              sum += v;
              ++count;
            }
          }
          y(n, c, oh, ow) = max ? maximum : sum / static_cast<float>(count);
        }
      }
    }
  }
}

Support supports(const Pool::Args& args, const Context&) {
  if (args.kind() != Pooling::max && args.kind() != Pooling::average) {
    return unsupported("maximum and average only");
  }
  if (args.has_indices() || args.has_epilogue()) {
    return unsupported("no indices, no bias, no activation");
  }
  return args.x.dtype == DType::f32 ? supported : unsupported("f32 only");
}

Work work(const Pool::Args& args, const Context&) {
  return {.blocks = args.y.size(), .steps = args.taps()};  // taps and their bounds checks
}

void run(const Pool::Args& args, Context&) { naive(args); }

const Rung<Pool> self{
    {.name = "naive", .step = 10, .supports = supports, .work = work, .run = run}};

}  // namespace
}  // namespace rung
