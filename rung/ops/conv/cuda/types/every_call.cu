// SPDX-License-Identifier: Apache-2.0
// conv / every call
//
// Idea     One thread per element of y, numbered along the axis that is contiguous in memory. Rows
//          of taps outside the image are skipped before the loop over channels, which is innermost:
//          its steps are the same for all threads.
// Changes  Against naive: supports every type, layout, group count and dimension, bias and
//          activation; a tap's bounds check serves all channels.
// Cost     two loads per multiply-add.
// Limits   None.
#include "rung/core/bounds.hpp"
#include "rung/ops/conv/shared/cuda/layer.hpp"
#include "rung/ops/conv/shared/cuda/tile_facts.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int threads = 256;
constexpr std::int64_t max_blocks = 0x7fffffff;

template <class T>
__global__ void __launch_bounds__(threads)
    conv_every_call(Layer<T> p, std::int64_t count, bool channels_innermost) {
  using Sum = Accumulator<T>;
  const ConvGeometry& g = p.geometry;
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count; i += step) {
    const ElementPosition at = position_of(p.y, i, channels_innermost);
    const std::int64_t first = at.c / g.group_filters() * g.group_channels();
    Sum sum = 0;
    for (std::int64_t td = 0; td < g.axis[0].kernel; ++td) {
      const std::int64_t d = g.axis[0].source(at.d, td);
      if (d < 0) continue;
      for (std::int64_t th = 0; th < g.axis[1].kernel; ++th) {
        const std::int64_t h = g.axis[1].source(at.h, th);
        if (h < 0) continue;
        for (std::int64_t tw = 0; tw < g.axis[2].kernel; ++tw) {
          const std::int64_t v = g.axis[2].source(at.w, tw);
          if (v < 0) continue;
          const T* x = &p.x(at.n, first, d, h, v);
          const T* w = &p.w(at.c, 0, td, th, tw);
          for (std::int64_t c = 0; c < g.group_channels(); ++c) {
            sum += convert<Sum>(x[c * p.x.strides[1]]) * convert<Sum>(w[c * p.w.strides[1]]);
          }
        }
      }
    }
    p.y(at.n, at.c, at.d, at.h, at.w) = p.epilogue(sum, at.c);
  }
}

void run(const Conv::Args& args, Context& context) {
  const std::int64_t count = args.y.size();
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    launch(context, {.grid = smaller(ceil_div(count, threads), max_blocks), .block = threads},
           conv_every_call<T>, layer_of<T>(args), count, args.y.strides[1] == 1);
  });
}

Work work(const Conv::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  const bool pixels = args.y.strides[1] != 1;  // adjacent lanes compute pixels, or filters
  const std::int64_t apart =
      pixels ? args.x.strides[4] * g.axis[2].stride : std::int64_t{args.w.strides[0]};
  return term_facts(smaller(ceil_div(args.y.size(), threads), max_blocks),
                    args.terms() + 4 * g.taps(),
                    pixels ? args.terms() / g.axis[2].kernel : g.taps(),
                    apart * static_cast<std::int64_t>(size_of(args.x.dtype)));
}

const Rung<Conv> self{
    {.name = "every_call", .after = "naive", .backend = device_backend, .work = work, .run = run}};

}  // namespace
}  // namespace rung
