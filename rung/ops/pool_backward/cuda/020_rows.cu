// SPDX-License-Identifier: Apache-2.0
// pool_backward / rows
//
// Idea     A warp loops over rows of dx, and a lane has one column: the windows over the column are
//          computed once for all rows. dy is loaded only if the window's maximum is at the element.
// Changes  Against gather: no division per element; 32-bit positions in a plane.
// Cost     (kh / sh) (kw / sw) loads of indices, or of dy, per element, most of them from the L1
//          cache.
// Limits   Maximum, average and l2, without dilation; rows of all tensors contiguous.
#include <cstdint>

#include "rung/ops/pool/shared/facts.hpp"
#include "rung/ops/pool_backward/cuda/detail/gradients.hpp"

namespace rung {
namespace {

using namespace pool_backward_cuda;

constexpr int warps = 8;
constexpr int lanes = 32;
constexpr int warp_rows = 8;  // of dx

template <Pooling kind, class T, class Index>
__global__ void __launch_bounds__(lanes* warps)
    pool_backward_rows(Gradients<T> p, View<const Index, 4> indices, std::int64_t rows) {
  using Sum = Accumulator<T>;
  const int w = static_cast<int>(blockIdx.y * lanes + threadIdx.x);
  const int width = static_cast<int>(p.columns.in);
  if (w >= width) return;
  const Windows across = windows_over(p.columns, w);
  // Position of the first row; the following rows increment it.
  const std::int64_t first = (std::int64_t{blockIdx.x} * warps + threadIdx.y) * warp_rows;
  const std::int64_t last = smaller(first + warp_rows, rows);
  std::int64_t c = first / p.rows.in;
  int h = static_cast<int>(first - c * p.rows.in);
  std::int64_t n = c / p.dx.shape[1];
  c -= n * p.dx.shape[1];
  for (std::int64_t row = first; row < last; ++row) {
    const Windows down = windows_over(p.rows, h);
    Sum sum = 0;
    for (int oh = down.begin; oh < down.end; ++oh) {
      const T* const dy = &p.dy(n, c, oh, 0);
      if constexpr (kind == Pooling::max) {
        const Index* const from = &indices(n, c, oh, 0);
        const auto here = static_cast<Index>(h * width + w);
        for (int ow = across.begin; ow < across.end; ++ow) {
          if (from[ow] == here) sum += convert<Sum>(dy[ow]);
        }
      } else if constexpr (kind == Pooling::average) {
        for (int ow = across.begin; ow < across.end; ++ow) {
          sum += convert<Sum>(dy[ow]) / divisor_of<kind>(p, oh, ow);
        }
      } else {
        const T* const y = &p.y(n, c, oh, 0);
        const Sum x = convert<Sum>(p.x(n, c, h, w));
        for (int ow = across.begin; ow < across.end; ++ow) {
          const Sum length = convert<Sum>(y[ow]);
          if (length != 0) sum += convert<Sum>(dy[ow]) * (x / length);
        }
      }
    }
    p.dx(n, c, h, w) = convert<T>(sum);
    if (++h == static_cast<int>(p.rows.in)) {
      h = 0;
      if (++c == p.dx.shape[1]) {
        c = 0;
        ++n;
      }
    }
  }
}

Support supports(const PoolBackward::Args& args, const Context&) {
  if (args.kind() == Pooling::weighted) return unsupported("maximum, average and l2");
  if (args.rows.dilation != 1 || args.columns.dilation != 1) return unsupported("no dilation");
  const auto contiguous = [](const ConstTensorRef& tensor) {
    return !is_given(tensor) || tensor.shape[3] == 1 || tensor.strides[3] == 1;
  };
  const PoolBackwardOptions& options = args.options;
  const bool rows = contiguous(args.dy) && contiguous(args.dx) && contiguous(options.indices) &&
                    contiguous(options.x) && contiguous(options.y);
  if (!rows) return unsupported("rows must be contiguous");
  constexpr std::int64_t max_extent = std::int64_t{1} << 20;  // 2^15 blocks of lanes
  for (const PoolAxis* axis : {&args.rows, &args.columns}) {
    if (axis->in > max_extent || axis->stride > max_extent) {
      return unsupported("images and strides of up to 2^20");
    }
  }
  const std::int64_t all_rows = args.images() * args.channels() * args.rows.in;
  const bool fits = ceil_div(all_rows, std::int64_t{warps * warp_rows}) <= 0x7fffffff;
  return fits ? supported : unsupported("more rows than a grid has blocks for");
}

/// Returns the work of a call for the time model. Lanes beyond a row's end idle.
Work work(const PoolBackward::Args& args, const Context&) {
  const std::int64_t rows = args.images() * args.channels() * args.rows.in;
  return pool_facts(ceil_div(rows, std::int64_t{warps * warp_rows}) *
                        ceil_div(args.columns.in, std::int64_t{lanes}),
                    warp_rows * (1 + windows_over_one(args)));
}

void run(const PoolBackward::Args& args, Context& context) {
  const std::int64_t rows = args.images() * args.channels() * args.rows.in;
  visit<float, double, f16, bf16>(args.dx.dtype, [&]<class T>() {
    const Gradients<T> p = gradients_of<T>(args);
    const auto start = [&]<Pooling kind, class Index>(const View<const Index, 4>& indices) {
      launch(context,
             {.grid = {ceil_div(rows, std::int64_t{warps * warp_rows}),
                       ceil_div(args.columns.in, std::int64_t{lanes})},
              .block = {lanes, warps}},
             pool_backward_rows<kind, T, Index>, p, indices, rows);
    };
    if (args.kind() == Pooling::average) {
      start.template operator()<Pooling::average>(p.indices_i32);
    } else if (args.kind() == Pooling::l2) {
      start.template operator()<Pooling::l2>(p.indices_i32);
    } else if (p.indices_i64.data != nullptr) {
      start.template operator()<Pooling::max>(p.indices_i64);
    } else {
      start.template operator()<Pooling::max>(p.indices_i32);
    }
  });
}

const Rung<PoolBackward> self{{.name = "rows",
                               .step = 20,
                               .after = "gather",
                               .backend = device_backend,
                               .supports = supports,
                               .work = work,
                               .run = run}};

}  // namespace
}  // namespace rung
