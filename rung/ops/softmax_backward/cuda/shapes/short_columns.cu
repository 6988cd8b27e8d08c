// SPDX-License-Identifier: Apache-2.0
// softmax_backward / short columns
//
// Idea     Rows of up to 32 elements along any axis but the last: a thread keeps its row of y and
//          dy in registers, adjacent threads own adjacent rows, and all loads of a row are in
//          flight at once.
// Changes  against adjacent_rows: one read of y and dy, no shared memory and no barrier, and no
//          idle warps beside a short row.
// Cost     Compulsory traffic. A warp moves 32 elements per load: 64 bytes in 16-bit types.
// Limits   Rows adjacent in all tensors, in runs of at least 8.
#include "rung/core/integer.hpp"
#include "rung/ops/softmax_backward/cuda/detail/softmax_backward.hpp"

namespace rung {
namespace {

using namespace softmax_backward_cuda;

constexpr int short_column_threads = 256;
constexpr std::int64_t longest_column = 32;

template <class P, int most>
__global__ void __launch_bounds__(short_column_threads)
    softmax_backward_short_columns(Rows<3> rows, P p) {
  using Sum = typename P::Sum;
  const std::int64_t row = std::int64_t{blockIdx.x} * short_column_threads + threadIdx.x;
  if (row >= rows.count()) return;
  const auto length = static_cast<int>(rows.length);
  std::int64_t at[3];
  rows.offsets(row, at);
  Sum y[most], dy[most];
#pragma unroll
  for (int i = 0; i < most; ++i) {
    if (i >= length) continue;
    y[i] = convert<Sum>(p.y[at[0] + i * rows.steps[0]]);
    dy[i] = convert<Sum>(p.dy[at[1] + i * rows.steps[1]]);
  }
  Sum sum = 0;
#pragma unroll
  for (int i = 0; i < most; ++i) {
    if (i < length) sum += term_of(y[i], dy[i], p.log);
  }
#pragma unroll
  for (int i = 0; i < most; ++i) {
    if (i >= length) continue;
    const Sum result = gradient_of(y[i], dy[i], sum, p.scale, p.log);
    p.dx[at[2] + i * rows.steps[2]] = convert<typename P::Out>(result);
  }
}

std::int64_t short_column_blocks(const SoftmaxBackward::Args& args) {
  return ceil_div(args.count(), std::int64_t{short_column_threads});
}

Support supports(const SoftmaxBackward::Args& args, const Context&) {
  constexpr std::int64_t min_run = 8;
  if (args.length() > longest_column) return unsupported("rows of up to 32 elements");
  if (!args.rows.are_adjacent() || args.rows.run() < min_run) {
    return unsupported("rows must be adjacent, in runs of at least 8");
  }
  return short_column_blocks(args) > 0x7fffffff ? unsupported("more than 2^31 - 1 blocks")
                                                : supported;
}

Work work(const SoftmaxBackward::Args& args, const Context&) {
  const int registers = args.length() <= 8 ? 32 : args.length() <= 16 ? 56 : 96;
  return block_work(short_column_blocks(args), short_column_threads, 1, type_path(args.y.dtype),
                    registers);
}

void run(const SoftmaxBackward::Args& args, Context& context) {
  if (args.empty()) return;
  const auto launch_for = [&]<class T, class Y, int most>() {
    launch(context, {.grid = short_column_blocks(args), .block = short_column_threads},
           softmax_backward_short_columns<GradientCall<T, Y>, most>, args.rows,
           call_of<T, Y>(args));
  };
  with_types(args, [&]<class T, class Y>() {
    if (args.length() <= 8) return launch_for.template operator()<T, Y, 8>();
    if (args.length() <= 16) return launch_for.template operator()<T, Y, 16>();
    launch_for.template operator()<T, Y, longest_column>();
  });
}

const Rung<SoftmaxBackward> self{{.name = "short_columns",
                                  .after = "adjacent_rows",
                                  .backend = device_backend,
                                  .supports = supports,
                                  .passes = {.loads = 1, .stores = 1},
                                  .work = work,
                                  .run = run}};

}  // namespace
}  // namespace rung
