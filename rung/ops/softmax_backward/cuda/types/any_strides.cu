// SPDX-License-Identifier: Apache-2.0
// softmax_backward / any strides
//
// Idea     block_per_row for every type, stride and axis: 1 to 1024 threads per row, as it is long,
//          and short rows share a block.
// Changes  against block_per_row: 64-bit addresses and a stride per tensor, conversions, blocks of
//          a size that follows the row.
// Cost     2 loads and 1 store per element of y and dy.
// Limits   every valid call; rows that are not contiguous are read a sector per element. A row
//          keeps one block busy: few long rows leave the device empty.
#include "rung/core/integer.hpp"
#include "rung/device/waiting.hpp"
#include "rung/ops/softmax_backward/cuda/detail/softmax_backward.hpp"

namespace rung {
namespace {

using namespace softmax_backward_cuda;

template <class P>
__global__ void __launch_bounds__(1024) softmax_backward_any_strides(Rows<3> rows, P p) {
  using Sum = typename P::Sum;
  auto& scratch = shared<RowScratch<Sum>>();
  for_each_row(rows.count(), [&](std::int64_t row, bool exists) {
    const std::int64_t length = exists ? rows.length : 0;
    std::int64_t at[3] = {0, 0, 0};
    if (exists) rows.offsets(row, at);
    const auto* y = p.y + at[0];
    const auto* dy = p.dy + at[1];
    auto* dx = p.dx + at[2];
    Sum sum = 0;
    for (std::int64_t i = threadIdx.x; i < length; i += blockDim.x) {
      const Sum gradient = convert<Sum>(dy[i * rows.steps[1]]);
      sum += p.log ? gradient : gradient * convert<Sum>(y[i * rows.steps[0]]);
    }
    sum = row_reduce(sum, Plus{}, scratch);
    for (std::int64_t i = threadIdx.x; i < length; i += blockDim.x) {
      const Sum result = gradient_of(convert<Sum>(y[i * rows.steps[0]]),
                                     convert<Sum>(dy[i * rows.steps[1]]), sum, p.scale, p.log);
      dx[i * rows.steps[2]] = convert<typename P::Out>(result);
    }
  });
}

RowBlock block_of(const SoftmaxBackward::Args& args) {
  constexpr int elements_per_thread = 16;
  return row_block(args.length(), elements_per_thread);
}

double estimate(const SoftmaxBackward::Args& args, const Context& context) {
  const RowBlock block = block_of(args);
  const auto per_thread = static_cast<double>(ceil_div(args.length(), block.threads));
  // Adjacent rows whose elements are not contiguous: a warp has so many of them.
  const bool contiguous = args.rows.are_contiguous();
  const double found =
      contiguous ? 1
      : args.rows.are_adjacent()
          ? larger(1.0, 32.0 / block.threads) * static_cast<double>(size_of(args.y.dtype)) / 32
          : 0;
  const double share = clamped(0.4 * found, 0.12, 0.4);
  double element = args.y.dtype == DType::f64 ? 1.3e-9 : 0.5e-9;  // of an SM
  // Rows of a thread each, of a sector or more: every lane loads from sectors of its own.
  const double bytes =
      static_cast<double>(args.length()) * static_cast<double>(size_of(args.y.dtype));
  if (contiguous && bytes >= 24 && bytes < 128) {
    element = larger(element, 0.43e-9 * static_cast<double>(size_of(args.y.dtype)));
  }
  return waiting_seconds(SoftmaxBackward::cost(args),
                         {.bandwidth = share,
                          .blocks = static_cast<double>(ceil_div(args.count(), block.rows)),
                          .blocks_per_sm = 2048.0 / (block.threads * block.rows),
                          .rounds = per_thread * 2.0,
                          .fixed = 1e-6,
                          .round = 0.22e-6,
                          .busy = block.rows * static_cast<double>(args.length()) * element},
                         context);
}

void run(const SoftmaxBackward::Args& args, Context& context) {
  if (args.empty()) return;
  with_types(args, [&]<class T, class Y>() {
    RowBlock block = block_of(args);
    block.shared_bytes = sizeof(RowScratch<Accumulator<T>>);
    launch_rows(context, args.rows, block, softmax_backward_any_strides<GradientCall<T, Y>>,
                call_of<T, Y>(args));
  });
}

const Rung<SoftmaxBackward> self{{.name = "any_strides",
                                  .after = "block_per_row",
                                  .backend = device_backend,
                                  .passes = {.loads = 2, .stores = 1},
                                  .estimate = estimate,
                                  .run = run}};

}  // namespace
}  // namespace rung
