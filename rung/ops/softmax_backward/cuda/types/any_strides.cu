// SPDX-License-Identifier: Apache-2.0
// softmax_backward / any strides
//
// Idea     block_per_row for every type, stride and axis: 1 to 1024 threads per row, chosen by its
//          length; short rows share a block.
// Changes  against block_per_row: 64-bit addresses, a stride per tensor, conversions, and a block
//          size chosen by row length.
// Cost     2 loads each of y and dy and 1 store of dx per element.
// Limits   All valid arguments; strided rows fetch one sector per element. A row occupies one
//          block, so few long rows leave the GPU underused.
#include "rung/core/integer.hpp"
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

Work work(const SoftmaxBackward::Args& args, const Context&) {
  return strided_rows_work(args.rows, block_of(args), 1, args.y.dtype, SoftmaxBackward::cost(args));
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
                                  .work = work,
                                  .run = run}};

}  // namespace
}  // namespace rung
