// SPDX-License-Identifier: Apache-2.0
// pool / every call
//
// Idea     One thread per output. Kind and type are template arguments, the taps within the image
//          are computed before the loop instead of being tested in it, and threads are numbered
//          along the axis that is contiguous in y.
// Changes  Against naive: no bounds check and one operation per tap; divisions of 32 bits; supports
//          every kind, type and layout.
// Cost     kh kw loads per output, most of them from the L1 cache.
// Limits   None. Loads of one element each.
#include "rung/ops/pool/cuda/detail/images.hpp"
#include "rung/ops/pool/shared/facts.hpp"

namespace rung {
namespace {

using namespace pool_cuda;

constexpr int threads = 256;
constexpr std::int64_t max_blocks = 0x7fffffff;

template <Pooling kind, class T>
__global__ void __launch_bounds__(threads)
    pool_every_call(Images<T> p, std::int64_t count, bool channels_innermost) {
  using Sum = Accumulator<T>;
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count; i += step) {
    std::int64_t rest = i;
    OutputPosition at{};
    if (channels_innermost) at.c = take_axis(rest, p.y.shape[1]);
    at.ow = take_axis(rest, p.columns.out);
    at.oh = take_axis(rest, p.rows.out);
    if (!channels_innermost) at.c = take_axis(rest, p.y.shape[1]);
    at.n = rest;

    const PoolTaps rows = p.rows.taps(at.oh);
    const PoolTaps columns = p.columns.taps(at.ow);
    const std::int64_t h = p.rows.start(at.oh) + rows.begin * p.rows.dilation;
    const std::int64_t w = p.columns.start(at.ow) + columns.begin * p.columns.dilation;
    const T* row = &p.x(at.n, at.c, h, w);
    const std::int64_t row_step = p.rows.dilation * p.x.strides[2];
    const std::int64_t column_step = p.columns.dilation * p.x.strides[3];
    const bool with_position =
        kind == Pooling::max && (p.indices_i32.data != nullptr || p.indices_i64.data != nullptr);

    Pooled<kind, Sum> pooled;
    for (std::int64_t tap = rows.begin; tap < rows.end; ++tap, row += row_step) {
      const T* from = row;
      for (std::int64_t j = columns.begin; j < columns.end; ++j, from += column_step) {
        const Sum v = convert<Sum>(*from);
        if constexpr (kind == Pooling::weighted) {
          pooled.take_weighted(v, p.weight(tap, j));
        } else if (with_position) {
          pooled.take_at(v, (h + (tap - rows.begin) * p.rows.dilation) * p.columns.in + w +
                                (j - columns.begin) * p.columns.dilation);
        } else {
          pooled.take(v);
        }
      }
    }
    finish(p, at, pooled.result(divisor_of<kind>(p, at.oh, at.ow)));
    if (with_position) write_index(p, at, pooled.position);
  }
}

Work work(const Pool::Args& args, const Context&) {
  return pool_facts(smaller(ceil_div(args.y.size(), threads), max_blocks), args.taps());
}

void run(const Pool::Args& args, Context& context) {
  const std::int64_t count = args.y.size();
  with_kind_and_type(args, [&]<Pooling kind, class T>() {
    launch(context, {.grid = smaller(ceil_div(count, threads), max_blocks), .block = threads},
           pool_every_call<kind, T>, images_of<T>(args), count, args.y.strides[1] == 1);
  });
}

const Rung<Pool> self{
    {.name = "every_call", .after = "naive", .backend = device_backend, .work = work, .run = run}};

}  // namespace
}  // namespace rung
