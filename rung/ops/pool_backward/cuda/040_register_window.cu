// SPDX-License-Identifier: Apache-2.0
// pool_backward / register window
//
// Idea     The most frequent windows (2 x 2 with a stride of 2, 3 x 3 with 1 or 2) as template
//          arguments: a thread loads dy, and the indices, of all windows over four vertically
//          adjacent elements of dx before it uses the first.
// Changes  Against rows: no loop of run-time length, so that all loads are in flight at once; a
//          window over several of the four elements is loaded once. An average is divided once per
//          window.
// Cost     3 x 3 with a stride of 2: 6 windows per 4 elements; 2 x 2: 2 windows.
// Limits   These windows, square, undilated; maximum and average; rows of all tensors contiguous;
//          fewer than 2^31 threads.
#include <cstdint>

#include "rung/ops/pool/shared/facts.hpp"
#include "rung/ops/pool/shared/narrow_axis.hpp"
#include "rung/ops/pool/shared/small_window.hpp"
#include "rung/ops/pool_backward/cuda/detail/gradients.hpp"

namespace rung {
namespace {

using namespace pool_backward_cuda;

constexpr int threads = 256;
constexpr int group = 4;  // elements of dx per thread

template <Pooling kind, int Taps, int Stride, class T, class Index>
__global__ void __launch_bounds__(threads)
    pool_backward_register_window(Gradients<T> p, View<const Index, 4> indices, NarrowAxis rows,
                                  NarrowAxis columns, std::uint32_t count, std::uint32_t groups) {
  using Sum = Accumulator<T>;
  // `before`: maximum number of windows before the last one that contains an element. `across`,
  // `down`: windows over a group along the columns and rows.
  constexpr int before = (Taps - 1) / Stride;
  constexpr int across = before + 1;
  constexpr int down = before + 1 + (group - 1) / Stride;
  const std::uint32_t thread = blockIdx.x * threads + threadIdx.x;
  if (thread >= count) return;
  const auto width = static_cast<std::uint32_t>(p.columns.in);
  const auto channels = static_cast<std::uint32_t>(p.dx.shape[1]);
  std::uint32_t rest = thread / width;
  const auto w = static_cast<int>(thread - rest * width);
  const auto g = static_cast<int>(rest % groups);
  rest /= groups;
  const std::uint32_t n = rest / channels;
  const std::uint32_t c = rest - n * channels;

  // Positions in the padded image; the group's first row is the first row of a window.
  const auto padding = static_cast<int>(p.rows.padding);
  const int first_row = padding / Stride * Stride + g * group;
  const int column = w + static_cast<int>(p.columns.padding);
  const int first_oh = first_row / Stride - before;
  const int first_ow = column / Stride - before;

  Sum dy[down][across];
  Index index[down][across];
#pragma unroll
  for (int i = 0; i < down; ++i) {
    const int oh = first_oh + i;
#pragma unroll
    for (int j = 0; j < across; ++j) {
      const int ow = first_ow + j;
      const bool exists = oh >= 0 && oh < p.rows.out && ow >= 0 && ow < p.columns.out &&
                          column - ow * Stride < Taps;
      dy[i][j] = exists ? convert<Sum>(p.dy(n, c, oh, ow)) : Sum(0);
      if constexpr (kind == Pooling::max) {
        index[i][j] = exists ? indices(n, c, oh, ow) : Index(-1);
      } else if (exists) {
        const int taps = rows.counted(oh, p.count_padding) * columns.counted(ow, p.count_padding);
        dy[i][j] /= static_cast<Sum>(taps);
      }
    }
  }

#pragma unroll
  for (int r = 0; r < group; ++r) {
    const int h = first_row + r - padding;
    Sum sum = 0;
#pragma unroll
    for (int i = 0; i < down; ++i) {
      const int tap = r + (before - i) * Stride;
      if (tap < 0 || tap >= Taps) continue;
#pragma unroll
      for (int j = 0; j < across; ++j) {
        if constexpr (kind == Pooling::max) {
          if (index[i][j] == static_cast<Index>(h * static_cast<int>(width) + w)) sum += dy[i][j];
        } else {
          sum += dy[i][j];
        }
      }
    }
    if (h >= 0 && h < p.rows.in) p.dx(n, c, h, w) = convert<T>(sum);
  }
}

std::int64_t groups_of(const PoolAxis& axis) {
  const std::int64_t skipped = axis.padding / axis.stride * axis.stride;
  return ceil_div(axis.in + axis.padding - skipped, std::int64_t{group});
}
std::int64_t threads_of(const PoolBackward::Args& args) {
  return args.images() * args.channels() * groups_of(args.rows) * args.columns.in;
}

Support supports(const PoolBackward::Args& args, const Context&) {
  if (args.kind() != Pooling::max && args.kind() != Pooling::average) {
    return unsupported("maximum and average only");
  }
  const Support small = supports_small_window(args.rows, args.columns);
  if (!small) return small;
  const auto contiguous = [](const ConstTensorRef& tensor) {
    return !is_given(tensor) || tensor.shape[3] == 1 || tensor.strides[3] == 1;
  };
  if (!contiguous(args.dy) || !contiguous(args.dx) || !contiguous(args.options.indices)) {
    return unsupported("rows must be contiguous");
  }
  return supports_narrow(args.rows, args.columns, threads_of(args));
}

Work work(const PoolBackward::Args& args, const Context&) {
  return pool_facts(ceil_div(threads_of(args), std::int64_t{threads}), windows_over_one(args));
}

void run(const PoolBackward::Args& args, Context& context) {
  const std::int64_t count = threads_of(args);
  visit<float, double, f16, bf16>(args.dx.dtype, [&]<class T>() {
    const Gradients<T> p = gradients_of<T>(args);
    const auto start = [&]<Pooling kind, int Taps, int Stride, class Index>(
                           const View<const Index, 4>& indices) {
      launch(context, {.grid = ceil_div(count, std::int64_t{threads}), .block = threads},
             pool_backward_register_window<kind, Taps, Stride, T, Index>, p, indices,
             NarrowAxis::of(args.rows), NarrowAxis::of(args.columns),
             static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(groups_of(args.rows)));
    };
    const auto with_window = [&]<Pooling kind, class Index>(const View<const Index, 4>& indices) {
      with_small_window(args.rows, [&]<int Taps, int Stride>() {
        start.template operator()<kind, Taps, Stride>(indices);
      });
    };
    if (args.kind() == Pooling::average) {
      with_window.template operator()<Pooling::average>(p.indices_i32);
    } else if (p.indices_i64.data != nullptr) {
      with_window.template operator()<Pooling::max>(p.indices_i64);
    } else {
      with_window.template operator()<Pooling::max>(p.indices_i32);
    }
  });
}

const Rung<PoolBackward> self{{.name = "register_window",
                               .step = 40,
                               .after = "rows",
                               .backend = device_backend,
                               .supports = supports,
                               .work = work,
                               .run = run}};

}  // namespace
}  // namespace rung
