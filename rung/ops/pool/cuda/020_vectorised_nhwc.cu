// SPDX-License-Identifier: Apache-2.0
// pool / vectorised NHWC
//
// Idea     where channels are contiguous, a thread takes 16 bytes of them: all have the same taps,
//          so that one set of indices and one wide load serve 4 f32, or 8 f16, of them.
// Changes  against every_call: a quarter (an eighth) of the loads and of the address arithmetic.
// Cost     kh kw loads of 16 bytes per 16 bytes of output; x from memory once, if windows that
//          overlap are done while their rows are in the L2 cache.
// Limits   contiguous channels in a multiple of 16 bytes; no indices; of the activations relu.
// Tried    -
// Source   -
#include "rung/ops/pool/cuda/detail/images.hpp"

namespace rung {
namespace {

using namespace pool_cuda;

constexpr int threads = 256;
constexpr std::int64_t max_blocks = 0x7fffffff;

template <class T>
constexpr int width = 16 / static_cast<int>(sizeof(T));

template <Pooling kind, class T>
__global__ void __launch_bounds__(threads)
    pool_vectorised_nhwc(Images<T> p, std::int64_t packs, std::int64_t count) {
  using Sum = Accumulator<T>;
  constexpr int lanes = width<T>;
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count; i += step) {
    std::int64_t rest = i;
    Place at{};
    at.c = take_axis(rest, packs) * lanes;
    at.ow = take_axis(rest, p.columns.out);
    at.oh = take_axis(rest, p.rows.out);
    at.n = rest;

    const PoolTaps rows = p.rows.taps(at.oh);
    const PoolTaps columns = p.columns.taps(at.ow);
    const T* row = &p.x(at.n, at.c, p.rows.start(at.oh) + rows.begin * p.rows.dilation,
                        p.columns.start(at.ow) + columns.begin * p.columns.dilation);
    const std::int64_t row_step = p.rows.dilation * p.x.strides[2];
    const std::int64_t column_step = p.columns.dilation * p.x.strides[3];

    Pooled<kind, Sum> pooled[lanes];
    for (std::int64_t tap = rows.begin; tap < rows.end; ++tap, row += row_step) {
      const T* from = row;
      for (std::int64_t j = columns.begin; j < columns.end; ++j, from += column_step) {
        const Pack<Sum, lanes> v = convert<Sum>(load_wide<lanes>(from));
        const Sum weight = kind == Pooling::weighted ? p.weight(tap, j) : Sum(1);
#pragma unroll
        for (int k = 0; k < lanes; ++k) {
          if constexpr (kind == Pooling::weighted) {
            pooled[k].take_weighted(v[k], weight);
          } else {
            pooled[k].take(v[k]);
          }
        }
      }
    }
    const Sum divisor = divisor_of<kind>(p, at.oh, at.ow);
    Pack<Sum, lanes> results;
#pragma unroll
    for (int k = 0; k < lanes; ++k) {
      Sum value = pooled[k].result(divisor);
      if (p.bias.data != nullptr) value += convert<Sum>(p.bias(at.c + k));
      if (p.activation == Activation::relu) value = value < 0 ? Sum(0) : value;
      results[k] = value;
    }
    store_wide(&p.y(at.n, at.c, at.oh, at.ow), convert<T>(results));
  }
}

Support supports(const Pool::Args& args, const Context&) {
  if (args.has_indices()) return unsupported("no indices");
  if (args.options.activation > Activation::relu) {
    return unsupported("of the activations relu only");
  }
  const auto lanes = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  const auto in_packs = [&](const ConstTensorRef& tensor) {
    bool whole = tensor.strides[1] == 1 && reinterpret_cast<std::uintptr_t>(tensor.data) % 16 == 0;
    for (const int axis : {0, 2, 3}) whole = whole && tensor.strides[axis] % lanes == 0;
    return whole;
  };
  const bool fits = args.channels() % lanes == 0 && in_packs(args.x) && in_packs(args.y);
  return fits ? supported : unsupported("contiguous channels, in multiples of 16 bytes");
}

void run(const Pool::Args& args, Context& context) {
  with_kind_and_type(args, [&]<Pooling kind, class T>() {
    const std::int64_t packs = args.channels() / width<T>;
    const std::int64_t count = args.y.size() / width<T>;
    launch(context, {.grid = smaller(ceil_div(count, threads), max_blocks), .block = threads},
           pool_vectorised_nhwc<kind, T>, images_of<T>(args), packs, count);
  });
}

const Rung<Pool> self{{.name = "vectorised_nhwc",
                       .step = 20,
                       .after = "every_call",
                       .backend = device_backend,
                       .supports = supports,
                       .speed = {.bandwidth = 0.8},
                       .run = run}};

}  // namespace
}  // namespace rung
