// SPDX-License-Identifier: Apache-2.0
// pool_backward / vectorized NHWC
//
// Idea     If channels are contiguous, a thread computes 16 bytes of them: they have the same
//          windows, so that one index computation serves 4 f32, or 8 f16, elements.
// Changes  Against gather (rows serves the other layout): a quarter (an eighth) of the address
//          arithmetic, and wide loads and stores.
// Cost     (kh / sh) (kw / sw) loads of 16 bytes of dy per 16 bytes of dx, and loads of their
//          indices.
// Limits   Contiguous channels in a multiple of 16 bytes; maximum and average, without dilation.
#include "rung/device/take_axis.hpp"
#include "rung/ops/pool/shared/facts.hpp"
#include "rung/ops/pool_backward/cuda/detail/gradients.hpp"

namespace rung {
namespace {

using namespace pool_backward_cuda;

constexpr int threads = 256;
constexpr std::int64_t max_blocks = 0x7fffffff;

template <Pooling kind, class T, class Index>
__global__ void __launch_bounds__(threads)
    pool_backward_vectorized_nhwc(Gradients<T> p, View<const Index, 4> indices, std::int64_t packs,
                                  std::int64_t count) {
  using Sum = Accumulator<T>;
  constexpr int lanes = vector_width<T>;
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count; i += step) {
    std::int64_t n = i;
    const std::int64_t c = take_axis(n, packs) * lanes;
    const auto w = static_cast<int>(take_axis(n, p.columns.in));
    const auto h = static_cast<int>(take_axis(n, p.rows.in));
    const Windows down = windows_over(p.rows, h);
    const Windows across = windows_over(p.columns, w);
    const auto here = static_cast<Index>(h * p.columns.in + w);
    Pack<Sum, lanes> sums{};
    for (int oh = down.begin; oh < down.end; ++oh) {
      for (int ow = across.begin; ow < across.end; ++ow) {
        const Pack<Sum, lanes> dy = convert<Sum>(load_wide<lanes>(&p.dy(n, c, oh, ow)));
        if constexpr (kind == Pooling::max) {
          const Pack<Index, lanes> at = load_wide<lanes>(&indices(n, c, oh, ow));
#pragma unroll
          for (int k = 0; k < lanes; ++k) {
            if (at[k] == here) sums[k] += dy[k];
          }
        } else {
          const Sum divisor = divisor_of<kind>(p, oh, ow);
#pragma unroll
          for (int k = 0; k < lanes; ++k) sums[k] += dy[k] / divisor;
        }
      }
    }
    store_wide<lanes>(&p.dx(n, c, h, w), convert<T>(sums));
  }
}

Support supports(const PoolBackward::Args& args, const Context&) {
  if (args.kind() != Pooling::max && args.kind() != Pooling::average) {
    return unsupported("maximum and average");
  }
  if (args.rows.dilation != 1 || args.columns.dilation != 1) return unsupported("no dilation");
  if (args.rows.in * args.columns.in > 0x3fffffff ||
      larger(args.rows.stride, args.columns.stride) > 0x3fffffff) {
    return unsupported("images of up to 2^30 elements, strides as well");
  }
  const std::int64_t lanes = pack_elements(args.dx.dtype);
  const auto in_packs = [&](const ConstTensorRef& tensor) {
    bool whole = tensor.strides[1] == 1 && reinterpret_cast<std::uintptr_t>(tensor.data) % 16 == 0;
    for (const int axis : {0, 2, 3}) whole = whole && tensor.strides[axis] % lanes == 0;
    return whole;
  };
  const bool fits = args.channels() % lanes == 0 && in_packs(args.dx) && in_packs(args.dy) &&
                    (args.kind() != Pooling::max || in_packs(args.options.indices));
  return fits ? supported : unsupported("contiguous channels, in multiples of 16 bytes");
}

Work work(const PoolBackward::Args& args, const Context&) {
  const std::int64_t packs = args.dx.size() / pack_elements(args.dx.dtype);
  return pool_facts(smaller(ceil_div(packs, threads), max_blocks), windows_over_one(args));
}

void run(const PoolBackward::Args& args, Context& context) {
  visit<float, double, f16, bf16>(args.dx.dtype, [&]<class T>() {
    const Gradients<T> p = gradients_of<T>(args);
    const std::int64_t count = args.dx.size() / vector_width<T>;
    const auto start = [&]<Pooling kind, class Index>(const View<const Index, 4>& indices) {
      launch(context, {.grid = smaller(ceil_div(count, threads), max_blocks), .block = threads},
             pool_backward_vectorized_nhwc<kind, T, Index>, p, indices,
             args.channels() / vector_width<T>, count);
    };
    if (args.kind() == Pooling::average) {
      start.template operator()<Pooling::average>(p.indices_i32);
    } else if (p.indices_i64.data != nullptr) {
      start.template operator()<Pooling::max>(p.indices_i64);
    } else {
      start.template operator()<Pooling::max>(p.indices_i32);
    }
  });
}

const Rung<PoolBackward> self{{.name = "vectorized_nhwc",
                               .after = "rows",
                               .backend = device_backend,
                               .supports = supports,
                               .work = work,
                               .run = run}};

}  // namespace
}  // namespace rung
