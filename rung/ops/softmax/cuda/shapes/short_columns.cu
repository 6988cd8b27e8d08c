// SPDX-License-Identifier: Apache-2.0
// softmax / short columns
//
// Idea     Rows of up to 32 elements along any axis but the last: a thread keeps a whole row in its
//          registers, adjacent threads own adjacent rows, and all loads of a row are in flight at
//          once.
// Changes  against online_columns: one read of x, and neither shuffles nor barriers.
// Cost     Compulsory traffic. A warp moves 32 elements per load: 64 bytes in 16-bit types.
// Limits   Rows adjacent in runs of at least 8.
#include "rung/device/row/short_columns.hpp"
#include "rung/ops/softmax/cuda/detail/softmax.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

template <class P, int most>
__global__ void __launch_bounds__(short_column_threads) softmax_short_columns(Rows<2> rows, P p) {
  using Sum = typename P::Sum;
  const std::int64_t row = std::int64_t{blockIdx.x} * short_column_threads + threadIdx.x;
  if (row >= rows.count()) return;
  const auto length = static_cast<int>(rows.length);
  const auto* x = p.x + rows.template offset<0>(row);
  auto* y = p.y + rows.template offset<1>(row);
  Sum values[most];
#pragma unroll
  for (int i = 0; i < most; ++i) {
    if (i < length) values[i] = convert<Sum>(x[i * rows.steps[0]]);
  }
  Sum maximum = no_maximum<Sum>;
#pragma unroll
  for (int i = 0; i < most; ++i) {
    if (i < length) maximum = Larger{}(maximum, values[i]);
  }
  Sum sum = 0;
#pragma unroll
  for (int i = 0; i < most; ++i) {
    if (i >= length) continue;
    values[i] = (values[i] - maximum) * p.scale;
    const Sum raised = fast_exp(values[i]);
    sum += raised;
    if (!p.log) values[i] = raised;
  }
  const Sum last = p.log ? logarithm(sum) : reciprocal(sum);
#pragma unroll
  for (int i = 0; i < most; ++i) {
    if (i >= length) continue;
    const Sum result = p.log ? values[i] - last : values[i] * last;
    y[i * rows.steps[1]] = convert<typename P::Out>(result);
  }
}

Support supports(const Softmax::Args& args, const Context&) {
  return require_short_columns(args.rows);
}

Work work(const Softmax::Args& args, const Context&) {
  const int registers = args.length() <= 8 ? 32 : args.length() <= 16 ? 40 : 64;
  return block_work(short_column_blocks(args.rows), short_column_threads, 1,
                    type_path(args.x.dtype), registers);
}

void run(const Softmax::Args& args, Context& context) {
  if (args.empty()) return;
  with_types(args, [&]<class T, class Y>() {
    with_column_registers(args.length(), [&]<int most>() {
      launch(context, {.grid = short_column_blocks(args.rows), .block = short_column_threads},
             softmax_short_columns<SoftmaxCall<T, Y>, most>, args.rows, call_of<T, Y>(args));
    });
  });
}

const Rung<Softmax> self{{.name = "short_columns",
                          .after = "online_columns",
                          .backend = device_backend,
                          .supports = supports,
                          .passes = {.loads = 1, .stores = 1},
                          .work = work,
                          .run = run}};

}  // namespace
}  // namespace rung
