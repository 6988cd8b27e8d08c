// SPDX-License-Identifier: Apache-2.0
// pool / register window NHWC
//
// Idea     register_window for contiguous channels: adjacent lanes have adjacent channels, any
//          number of them, and a thread loads the whole patch of x under four vertically adjacent
//          outputs.
// Changes  Against vectorized_nhwc: channels need not be a multiple of 16 bytes; the loads of four
//          outputs are in flight together, and rows that their windows share are loaded once.
// Cost     3 x 3 with a stride of 1: 18 loads per 4 outputs; with a stride of 2: 27.
// Limits   2 x 2 or 3 x 3, square, undilated; contiguous channels; no indices, no weights; fewer
//          than 2^31 threads. Loads of one element each.
#include "rung/ops/pool/cuda/detail/narrow.hpp"
#include "rung/ops/pool/shared/facts.hpp"
#include "rung/ops/pool/shared/small_window.hpp"

namespace rung {
namespace {

using namespace pool_cuda;

constexpr int threads = 256;
constexpr int group = 4;  // outputs per thread

template <Pooling kind, int Taps, int Stride, class T>
__global__ void __launch_bounds__(threads)
    pool_register_window_nhwc(Images<T> p, NarrowWindows g, Divisor groups, std::uint32_t count) {
  using Sum = Accumulator<T>;
  using Window = Pooled<kind, Sum>;
  constexpr int patch_rows = Stride * (group - 1) + Taps;
  std::uint32_t rest = blockIdx.x * threads + threadIdx.x;
  if (rest >= count) return;
  OutputPosition at{};
  at.c = g.channels.take(rest);
  at.ow = g.width.take(rest);
  at.oh = groups.take(rest) * group;
  at.n = rest;

  const int first_row = static_cast<int>(at.oh) * Stride - g.rows.padding;
  const int first_column = static_cast<int>(at.ow) * Stride - g.columns.padding;
  const T* const from = &p.x(at.n, at.c, 0, 0) + first_column * g.column_step;
  bool has_column[Taps];
#pragma unroll
  for (int j = 0; j < Taps; ++j) {
    has_column[j] = first_column + j >= 0 && first_column + j < g.columns.in;
  }

  T patch[patch_rows][Taps];
#pragma unroll
  for (int r = 0; r < patch_rows; ++r) {
    const int row = first_row + r;
    const bool has_row = row >= 0 && row < g.rows.in;
    const T* const line = from + row * g.row_step;
#pragma unroll
    for (int j = 0; j < Taps; ++j) {
      patch[r][j] =
          has_row && has_column[j] ? line[j * g.column_step] : convert<T>(Window::identity);
    }
  }

  Window windows[group];
#pragma unroll
  for (int r = 0; r < patch_rows; ++r) {
    Window line;
#pragma unroll
    for (int j = 0; j < Taps; ++j) line.take(convert<Sum>(patch[r][j]));
#pragma unroll
    for (int o = 0; o < group; ++o) {
      if (r >= Stride * o && r < Stride * o + Taps) windows[o].join(line);
    }
  }

#pragma unroll
  for (int o = 0; o < group; ++o, ++at.oh) {
    if (at.oh >= g.height.value) break;
    finish(p, at,
           windows[o].result(narrow_divisor<kind, Sum>(g.rows, g.columns, at, p.count_padding)));
  }
}

std::int64_t groups_of(const Pool::Args& args) {
  return ceil_div(args.rows.out, std::int64_t{group});
}
std::int64_t threads_of(const Pool::Args& args) {
  return args.images() * args.channels() * groups_of(args) * args.columns.out;
}

Support supports(const Pool::Args& args, const Context&) {
  if (args.kind() == Pooling::weighted || args.has_indices()) {
    return unsupported("maximum, average and l2, no indices");
  }
  const Support small = supports_small_window(args.rows, args.columns);
  if (!small) return small;
  if (args.x.strides[1] != 1 || args.y.strides[1] != 1) return unsupported("contiguous channels");
  return supports_narrow(args, threads_of(args));
}

Work work(const Pool::Args& args, const Context&) {
  const std::int64_t rows = args.rows.stride * (group - 1) + args.rows.kernel;
  return pool_facts(ceil_div(threads_of(args), std::int64_t{threads}), rows * args.columns.kernel);
}

void run(const Pool::Args& args, Context& context) {
  const std::int64_t count = threads_of(args);
  const auto start = [&]<Pooling kind, class T, int Taps, int Stride>() {
    launch(context, {.grid = ceil_div(count, std::int64_t{threads}), .block = threads},
           pool_register_window_nhwc<kind, Taps, Stride, T>, images_of<T>(args),
           narrow_windows(args), Divisor::of(groups_of(args)), static_cast<std::uint32_t>(count));
  };
  with_kind_and_type(args, [&]<Pooling kind, class T>() {
    if constexpr (kind != Pooling::weighted) {
      with_small_window(args.rows, [&]<int Taps, int Stride>() {
        start.template operator()<kind, T, Taps, Stride>();
      });
    }
  });
}

const Rung<Pool> self{{.name = "register_window_nhwc",
                       .after = "vectorized_nhwc",
                       .backend = device_backend,
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
