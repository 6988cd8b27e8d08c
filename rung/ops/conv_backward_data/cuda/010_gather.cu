// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / gather
//
// Idea     One thread per element of dx finds the results that used it and sums their products. A
//          scatter from dy would need atomic additions, whose order changes the bits from run to
//          run.
// Changes  baseline.
// Cost     Two loads per multiply-add; a division by the stride per tap and axis.
// Limits   None.
#include "rung/ops/conv/shared/cuda/layer.hpp"
#include "rung/ops/conv/shared/cuda/tile_facts.hpp"
#include "rung/ops/conv_backward_data/op/conv_backward_data.hpp"
#include "rung/ops/conv_backward_data/op/layer.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int threads = 256;
constexpr std::int64_t max_blocks = 0x7fffffff;

template <class T>
__global__ void __launch_bounds__(threads)
    conv_backward_data_gather(View<const T, 5> dy, View<const T, 5> w, View<T, 5> dx,
                              ConvGeometry g, std::int64_t count, bool channels_innermost) {
  using Sum = Accumulator<T>;
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count; i += step) {
    const ElementPosition at = position_of(dx, i, channels_innermost);
    const std::int64_t group = at.c / g.group_channels();
    const std::int64_t first = group * g.group_filters();
    Sum sum = 0;
    // Without filters dy has no element to form a pointer to.
    const std::int64_t taps = g.group_filters() > 0 ? g.axis[0].kernel : 0;
    for (std::int64_t td = 0; td < taps; ++td) {
      const std::int64_t od = g.axis[0].result(at.d, td);
      if (od < 0) continue;
      for (std::int64_t th = 0; th < g.axis[1].kernel; ++th) {
        const std::int64_t oh = g.axis[1].result(at.h, th);
        if (oh < 0) continue;
        for (std::int64_t tw = 0; tw < g.axis[2].kernel; ++tw) {
          const std::int64_t ow = g.axis[2].result(at.w, tw);
          if (ow < 0) continue;
          const T* from = &dy(at.n, first, od, oh, ow);
          const T* weight = &w(first, at.c - group * g.group_channels(), td, th, tw);
          for (std::int64_t k = 0; k < g.group_filters(); ++k) {
            sum += convert<Sum>(from[k * dy.strides[1]]) * convert<Sum>(weight[k * w.strides[0]]);
          }
        }
      }
    }
    dx(at.n, at.c, at.d, at.h, at.w) = convert<T>(sum);
  }
}

void run(const ConvBackwardData::Args& args, Context& context) {
  const std::int64_t count = args.dx.size();
  visit<float, double, f16, bf16>(args.dx.dtype, [&]<class T>() {
    launch(context, {.grid = smaller(ceil_div(count, threads), max_blocks), .block = threads},
           conv_backward_data_gather<T>, args.dy.view<const T, 5>(), args.w.view<const T, 5>(),
           args.dx.view<T, 5>(), args.geometry, count, args.dx.strides[1] == 1);
  });
}

/// Returns the work of a layer. A thread visits all taps, even those without a result. Finding a
/// tap's result and addresses takes as long as some eight terms, with strides, three divisions, as
/// twelve.
Work work(const ConvBackwardData::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  const bool divides = g.axis[0].stride > 1 || g.axis[1].stride > 1 || g.axis[2].stride > 1;
  Work work = block_facts(
      smaller(ceil_div(args.dx.size(), threads), max_blocks),
      conv_layer::terms_in_a_row(args) + (divides ? 12.0 : 8.0) * static_cast<double>(g.taps()));
  work.path = args.dx.dtype == DType::f64   ? "f64"
              : divides                     ? "strided"
              : size_of(args.dx.dtype) == 2 ? "16-bit"
                                            : "";
  return work;
}

const Rung<ConvBackwardData> self{
    {.name = "gather", .step = 10, .backend = device_backend, .work = work, .run = run}};

}  // namespace
}  // namespace rung
