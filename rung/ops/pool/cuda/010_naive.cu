// SPDX-License-Identifier: Apache-2.0
// pool / naive
//
// Idea     One thread per output loops over its window's taps one by one.
// Changes  baseline.
// Cost     kh kw loads and bounds checks per output. Adjacent threads read adjacent windows: with a
//          stride of 2 every load uses half of its sectors, and the next tap finds the other half
//          in the L1 cache.
// Limits   f32, maximum and average; no indices, bias or activation.
// Source   the definition.
#include "rung/core/integer.hpp"
#include "rung/device/device.hpp"
#include "rung/ops/pool/op/pool.hpp"
#include "rung/ops/pool/shared/facts.hpp"

namespace rung {
namespace {

__global__ void pool_naive(View<const float, 4> x, View<float, 4> y, PoolAxis rows,
                           PoolAxis columns, bool max, bool count_padding) {
  std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= y.size()) return;
  const std::int64_t ow = i % columns.out;
  i /= columns.out;
  const std::int64_t oh = i % rows.out;
  i /= rows.out;
  const std::int64_t c = i % y.shape[1];
  const std::int64_t n = i / y.shape[1];
  float maximum = -INFINITY;
  float sum = 0;
  std::int64_t count = 0;
  for (std::int64_t kh = 0; kh < rows.kernel; ++kh) {
    for (std::int64_t kw = 0; kw < columns.kernel; ++kw) {
      const std::int64_t h = oh * rows.stride - rows.padding + kh * rows.dilation;
      const std::int64_t w = ow * columns.stride - columns.padding + kw * columns.dilation;
      if (h < 0 || h >= rows.in || w < 0 || w >= columns.in) {
        const bool padded = h < rows.in + rows.padding && w < columns.in + columns.padding;
        if (count_padding && padded) ++count;
        continue;
      }
      const float v = x(n, c, h, w);
      if (v > maximum || v != v) maximum = v;  // once NaN, no v is greater
      sum += v;
      ++count;
    }
  }
  y(n, c, oh, ow) = max ? maximum : sum / static_cast<float>(count);
}

constexpr int threads = 256;

Support supports(const Pool::Args& args, const Context&) {
  if (args.kind() != Pooling::max && args.kind() != Pooling::average) {
    return unsupported("maximum and average only");
  }
  if (args.has_indices() || args.has_epilogue()) {
    return unsupported("no indices, no bias, no activation");
  }
  if (args.y.size() > std::int64_t{threads} * 0x7fffffff) {
    return unsupported("more outputs than a grid has threads");
  }
  return args.x.dtype == DType::f32 ? supported : unsupported("f32 only");
}

Work work(const Pool::Args& args, const Context&) {
  return pool_facts(ceil_div(args.y.size(), threads), args.taps());
}

void run(const Pool::Args& args, Context& context) {
  launch(context, {.grid = ceil_div(args.y.size(), threads), .block = threads}, pool_naive,
         args.x.view<const float, 4>(), args.y.view<float, 4>(), args.rows, args.columns,
         args.kind() == Pooling::max, args.options.count_padding);
}

const Rung<Pool> self{{.name = "naive",
                       .step = 10,
                       .backend = device_backend,
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
