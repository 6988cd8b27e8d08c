// SPDX-License-Identifier: Apache-2.0
// pool / vectorized NHWC
//
// Idea     If channels are contiguous, a thread computes 16 bytes of them: they have the same taps,
//          so that one index computation and one wide load serve 4 f32, or 8 f16, elements.
// Changes  Against every_call: a quarter (an eighth) of the loads and of the address arithmetic.
// Cost     kh kw loads of 16 bytes per 16 bytes of output; x from memory once, if overlapping
//          windows are computed while their rows are in the L2 cache.
// Limits   Contiguous channels in a multiple of 16 bytes; no indices; no activation but relu; fewer
//          than 2^31 threads.
#include "rung/ops/pool/cuda/detail/narrow.hpp"
#include "rung/ops/pool/shared/facts.hpp"

namespace rung {
namespace {

using namespace pool_cuda;

constexpr int threads = 256;

template <Pooling kind, class T>
__global__ void __launch_bounds__(threads)
    pool_vectorized_nhwc(Images<T> p, NarrowWindows g, Divisor packs, std::uint32_t count) {
  using Sum = Accumulator<T>;
  constexpr int lanes = vector_width<T>;
  std::uint32_t rest = blockIdx.x * threads + threadIdx.x;
  if (rest >= count) return;
  OutputPosition at{};
  at.c = packs.take(rest) * lanes;
  at.ow = g.width.take(rest);
  at.oh = g.height.take(rest);
  at.n = rest;

  const NarrowTaps rows = g.rows.taps(static_cast<int>(at.oh));
  const NarrowTaps columns = g.columns.taps(static_cast<int>(at.ow));
  const int h = g.rows.start(static_cast<int>(at.oh)) + rows.begin * g.rows.dilation;
  const int w = g.columns.start(static_cast<int>(at.ow)) + columns.begin * g.columns.dilation;
  const T* row = &p.x(at.n, at.c, h, w);

  Pooled<kind, Sum> pooled[lanes];
  for (int tap = rows.begin; tap < rows.end; ++tap, row += g.row_step) {
    const T* from = row;
    for (int j = columns.begin; j < columns.end; ++j, from += g.column_step) {
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
  Sum divisor;
  if constexpr (kind == Pooling::weighted) {
    divisor = divisor_of<kind>(p, at.oh, at.ow);
  } else {
    divisor = narrow_divisor<kind, Sum>(g.rows, g.columns, at, p.count_padding);
  }
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

Support supports(const Pool::Args& args, const Context&) {
  if (args.has_indices()) return unsupported("no indices");
  if (args.options.activation > Activation::relu) {
    return unsupported("of the activations relu only");
  }
  const std::int64_t lanes = pack_elements(args.x.dtype);
  const auto in_packs = [&](const ConstTensorRef& tensor) {
    bool whole = tensor.strides[1] == 1 && reinterpret_cast<std::uintptr_t>(tensor.data) % 16 == 0;
    for (const int axis : {0, 2, 3}) whole = whole && tensor.strides[axis] % lanes == 0;
    return whole;
  };
  const bool fits = args.channels() % lanes == 0 && in_packs(args.x) && in_packs(args.y);
  if (!fits) return unsupported("contiguous channels, in multiples of 16 bytes");
  return supports_narrow(args, args.y.size() / lanes);
}

Work work(const Pool::Args& args, const Context&) {
  return pool_facts(ceil_div(args.y.size() / pack_elements(args.x.dtype), std::int64_t{threads}),
                    args.taps());
}

void run(const Pool::Args& args, Context& context) {
  with_kind_and_type(args, [&]<Pooling kind, class T>() {
    const std::int64_t count = args.y.size() / vector_width<T>;
    launch(context, {.grid = ceil_div(count, std::int64_t{threads}), .block = threads},
           pool_vectorized_nhwc<kind, T>, images_of<T>(args), narrow_windows(args),
           Divisor::of(args.channels() / vector_width<T>), static_cast<std::uint32_t>(count));
  });
}

const Rung<Pool> self{{.name = "vectorized_nhwc",
                       .after = "every_call",
                       .backend = device_backend,
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
