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
#include "rung/device/row/short_columns.hpp"
#include "rung/ops/softmax_backward/cuda/detail/softmax_backward.hpp"

namespace rung {
namespace {

using namespace softmax_backward_cuda;

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

Support supports(const SoftmaxBackward::Args& args, const Context&) {
  return require_short_columns(args.rows);
}

Work work(const SoftmaxBackward::Args& args, const Context&) {
  const int registers = args.length() <= 8 ? 32 : args.length() <= 16 ? 56 : 96;
  return block_work(short_column_blocks(args.rows), short_column_threads, 1,
                    type_path(args.y.dtype), registers);
}

void run(const SoftmaxBackward::Args& args, Context& context) {
  if (args.empty()) return;
  with_types(args, [&]<class T, class Y>() {
    with_column_registers(args.length(), [&]<int most>() {
      launch(context, {.grid = short_column_blocks(args.rows), .block = short_column_threads},
             softmax_backward_short_columns<GradientCall<T, Y>, most>, args.rows,
             call_of<T, Y>(args));
    });
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
