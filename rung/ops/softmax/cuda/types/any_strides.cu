// SPDX-License-Identifier: Apache-2.0
// softmax / any strides
//
// Idea     online_block for every type, stride and axis: 1 to 1024 threads per row, chosen by its
//          length; short rows share a block.
// Changes  against online_block: 64-bit addresses, a stride per tensor, conversions, and a block
//          size chosen by row length.
// Cost     2 loads and 1 store per element, four loads in flight per thread.
// Limits   All valid arguments; strided rows fetch one sector per element. A row occupies one
//          block, so few long rows leave the GPU underused.
#include "rung/ops/softmax/cuda/detail/softmax.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

template <class P>
__global__ void __launch_bounds__(1024) softmax_any_strides(Rows<2> rows, P p) {
  using Sum = typename P::Sum;
  auto& scratch = shared<RowScratch<Sum>>();
  for_each_row(rows.count(), [&](std::int64_t row, bool exists) {
    const std::int64_t length = exists ? rows.length : 0;
    const auto* x = p.x + (exists ? rows.template offset<0>(row) : 0);
    auto* y = p.y + (exists ? rows.template offset<1>(row) : 0);
    Running<Sum> running;
    for_each_batch<Sum>(
        x, length, rows.steps[0], threadIdx.x, blockDim.x,
        [&](std::int64_t, const Sum(&values)[batch]) { running.add(values, p.scale); });
    const Sum maximum = row_reduce(running.maximum, Larger{}, scratch);
    const Sum scaled = running.sum * fast_exp((running.maximum - maximum) * p.scale);
    const Sum sum = row_reduce(scaled, Plus{}, scratch);
    write_results(x, y, length, rows.steps, threadIdx.x, blockDim.x, maximum, sum, p.scale, p.log);
  });
}

RowBlock block_of(const Softmax::Args& args) {
  constexpr int elements_a_thread = 4 * batch;
  return row_block(args.length(), elements_a_thread);
}

Work work(const Softmax::Args& args, const Context&) {
  return strided_rows_work(args.rows, block_of(args), batch, args.x.dtype, Softmax::cost(args));
}

void run(const Softmax::Args& args, Context& context) {
  RowBlock block = block_of(args);
  with_types(args, [&]<class T, class Y>() {
    block.shared_bytes = sizeof(RowScratch<Accumulator<T>>);
    launch_rows(context, args.rows, block, softmax_any_strides<SoftmaxCall<T, Y>>,
                call_of<T, Y>(args));
  });
}

const Rung<Softmax> self{{.name = "any_strides",
                          .after = "online_block",
                          .backend = device_backend,
                          .passes = {.loads = 2, .stores = 1},
                          .work = work,
                          .run = run}};

}  // namespace
}  // namespace rung
