// SPDX-License-Identifier: Apache-2.0
// pool / register window
//
// Idea     The most frequent windows (2 x 2 with a stride of 2, 3 x 3 with 1 or 2) as template
//          arguments: a thread loads the whole patch of x under four vertically adjacent outputs
//          into registers, with no loop, no division and no barrier between its loads.
// Changes  Against separable: no shared memory, and all loads of a thread are in flight before the
//          first result is needed. The indices of four outputs are computed once, in 32 bits. Rows
//          of the patch are pooled along the columns once and combined by each window that contains
//          them.
// Cost     3 x 3 with a stride of 2: 27 loads per 4 outputs, most of which hit L1; x from memory
//          once.
// Limits   These windows, square, undilated; contiguous rows; no indices, no weights; fewer than
//          2^31 threads.
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
    pool_register_window(Images<T> p, NarrowWindows g, Divisor groups, std::uint32_t count) {
  using Sum = Accumulator<T>;
  using Window = Pooled<kind, Sum>;
  constexpr int patch_rows = Stride * (group - 1) + Taps;
  const std::uint32_t thread = blockIdx.x * threads + threadIdx.x;
  if (thread >= count) return;
  std::uint32_t rest = thread;
  OutputPosition at{};
  at.ow = g.width.take(rest);
  at.oh = groups.take(rest) * group;
  at.c = g.channels.take(rest);
  at.n = rest;

  const int first_row = static_cast<int>(at.oh) * Stride - g.rows.padding;
  const int first_column = static_cast<int>(at.ow) * Stride - g.columns.padding;
  const T* const from = &p.x(at.n, at.c, 0, 0) + first_column;
  const std::int64_t pitch = p.x.strides[2];
  bool has_column[Taps];
#pragma unroll
  for (int j = 0; j < Taps; ++j) {
    const int column = first_column + j;
    has_column[j] = column >= 0 && column < g.columns.in;
  }

  T patch[patch_rows][Taps];
#pragma unroll
  for (int r = 0; r < patch_rows; ++r) {
    const int row = first_row + r;
    const bool has_row = row >= 0 && row < g.rows.in;
#pragma unroll
    for (int j = 0; j < Taps; ++j) {
      patch[r][j] = has_row && has_column[j] ? from[row * pitch + j] : convert<T>(Window::identity);
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
  if (args.x.strides[3] != 1) return unsupported("the rows of x must be contiguous");
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
           pool_register_window<kind, Taps, Stride, T>, images_of<T>(args), narrow_windows(args),
           Divisor::of(groups_of(args)), static_cast<std::uint32_t>(count));
  };
  with_kind_and_type(args, [&]<Pooling kind, class T>() {
    if constexpr (kind != Pooling::weighted) {
      with_small_window(args.rows, [&]<int Taps, int Stride>() {
        start.template operator()<kind, T, Taps, Stride>();
      });
    }
  });
}

const Rung<Pool> self{{.name = "register_window",
                       .step = 50,
                       .after = "separable",
                       .backend = device_backend,
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
