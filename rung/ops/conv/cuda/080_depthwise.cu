// SPDX-License-Identifier: Apache-2.0
// conv / depthwise
//
// Idea     a filter per channel: nothing to share between filters, a few multiply-adds per element
//          - the layer is a stencil, bound by memory. Where channels are contiguous a thread takes
//          16 bytes of them, which have the same taps, so that loads are wide and one set of
//          indices serves 4 or 8; else a thread takes four pixels of a column, whose windows
//          overlap.
// Changes  against every_call: a quarter or an eighth of the loads and the address arithmetic;
//          against implicit_gemm: no tiles with 15 of 16 rows empty.
// Cost     kh kw loads per 16 bytes of y, from the L1 cache; x from memory once.
// Limits   one filter per channel (C = K = G), images of two dimensions; f32, f16, bf16.
// Tried    -
// Source   F. Chollet, Xception: Deep learning with depthwise separable convolutions, 2017.
#include "rung/ops/conv/cuda/detail/layer.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int threads = 256;
constexpr std::int64_t max_blocks = 0x7fffffff;
constexpr int column_pixels = 4;

template <class T>
constexpr int width = 16 / static_cast<int>(sizeof(T));

template <class T>
__global__ void __launch_bounds__(threads)
    conv_depthwise_channels(Layer<T> p, std::int64_t packs, std::int64_t count) {
  constexpr int lanes = width<T>;
  const ConvAxis& rows = p.geometry.axis[1];
  const ConvAxis& columns = p.geometry.axis[2];
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count; i += step) {
    std::int64_t rest = i;
    const std::int64_t c = take_axis(rest, packs) * lanes;
    const std::int64_t ow = take_axis(rest, columns.out);
    const std::int64_t oh = take_axis(rest, rows.out);
    Pack<float, lanes> sums;
#pragma unroll
    for (int l = 0; l < lanes; ++l) sums[l] = 0;
    for (std::int64_t a = 0; a < rows.kernel; ++a) {
      const std::int64_t h = rows.source(oh, a);
      if (h < 0) continue;
      for (std::int64_t b = 0; b < columns.kernel; ++b) {
        const std::int64_t v = columns.source(ow, b);
        if (v < 0) continue;
        const Pack<float, lanes> x = convert<float>(load_wide<lanes>(&p.x(rest, c, 0, h, v)));
#pragma unroll
        for (int l = 0; l < lanes; ++l) sums[l] += x[l] * convert<float>(p.w(c + l, 0, 0, a, b));
      }
    }
    Pack<T, lanes> made;
#pragma unroll
    for (int l = 0; l < lanes; ++l) made[l] = p.epilogue(sums[l], c + l);
    store_wide(&p.y(rest, c, 0, oh, ow), made);
  }
}

template <class T>
__global__ void __launch_bounds__(threads)
    conv_depthwise_columns(Layer<T> p, std::int64_t groups_of_rows, std::int64_t count) {
  const ConvAxis& rows = p.geometry.axis[1];
  const ConvAxis& columns = p.geometry.axis[2];
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count; i += step) {
    std::int64_t rest = i;
    const std::int64_t ow = take_axis(rest, columns.out);
    const std::int64_t first = take_axis(rest, groups_of_rows) * column_pixels;
    const std::int64_t c = take_axis(rest, p.geometry.channels);
    float sums[column_pixels] = {};
    for (std::int64_t b = 0; b < columns.kernel; ++b) {
      const std::int64_t v = columns.source(ow, b);
      if (v < 0) continue;
      for (std::int64_t a = 0; a < rows.kernel; ++a) {
        const float weight = convert<float>(p.w(c, 0, 0, a, b));
#pragma unroll
        for (int r = 0; r < column_pixels; ++r) {
          const std::int64_t h = rows.source(first + r, a);
          if (h >= 0) sums[r] += weight * convert<float>(p.x(rest, c, 0, h, v));
        }
      }
    }
#pragma unroll
    for (int r = 0; r < column_pixels; ++r) {
      if (first + r < rows.out) p.y(rest, c, 0, first + r, ow) = p.epilogue(sums[r], c);
    }
  }
}

bool in_packs(const Conv::Args& args) {
  const auto lanes = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  const auto aligned = [&](const ConstTensorRef& tensor) {
    bool whole = tensor.strides[1] == 1 && reinterpret_cast<std::uintptr_t>(tensor.data) % 16 == 0;
    for (const int axis : {0, 3, 4}) {
      whole = whole && (tensor.shape[axis] == 1 || tensor.strides[axis] % lanes == 0);
    }
    return whole;
  };
  return args.geometry.channels % lanes == 0 && aligned(args.x) && aligned(args.y);
}

Support supports(const Conv::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  if (args.x.dtype == DType::f64) return unsupported("f32, f16 and bf16");
  if (!is_flat(g)) return unsupported("two dimensions");
  if (g.channels > 0x7fffffff) return unsupported("up to 2^31 - 1 channels");
  return g.group_channels() == 1 && g.group_filters() == 1
             ? supported
             : unsupported("one filter for each channel");
}

double estimate(const Conv::Args& args, const Context& context) {
  return estimate_seconds(Conv::cost(args), {.bandwidth = in_packs(args) ? 0.6 : 0.4, .peak = 0.1},
                          context);
}

void run(const Conv::Args& args, Context& context) {
  const ConvGeometry& g = args.geometry;
  visit<float, f16, bf16>(args.x.dtype, [&]<class T>() {
    const bool packed = in_packs(args);
    const std::int64_t along =
        packed ? g.channels / width<T> : ceil_div(g.axis[1].out, std::int64_t{column_pixels});
    const std::int64_t count =
        packed ? args.y.size() / width<T> : g.images * g.channels * along * g.axis[2].out;
    launch(context, {.grid = smaller(ceil_div(count, threads), max_blocks), .block = threads},
           packed ? conv_depthwise_channels<T> : conv_depthwise_columns<T>, layer_of<T>(args),
           along, count);
  });
}

const Rung<Conv> self{{.name = "depthwise",
                       .step = 80,
                       .after = "every_call",
                       .backend = device_backend,
                       .supports = supports,
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
