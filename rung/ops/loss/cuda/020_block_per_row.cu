// SPDX-License-Identifier: Apache-2.0
// loss / a block per row
//
// Idea     One block per row, whose threads read adjacent elements. The maximum, then the sums of
//          exponentials and of the label's terms, are reduced through shared memory.
// Changes  against naive: coalesced access and many threads per row; all kinds of loss, types and
//          layouts, and smoothing.
// Cost     x is read three times, dx written once; two exponentials per element, two barriers or
//          more per row.
// Limits   All valid arguments; short rows leave most of a block idle.
// Source   softmax's ladder (ops/softmax/cuda/020_safe_block.cu).
#include "rung/ops/loss/cuda/detail/loss.hpp"

namespace rung {
namespace {

using namespace loss_cuda;

constexpr int threads = 256;

template <class T>
__global__ void __launch_bounds__(threads) loss_block_per_row(Rows<4> rows, RowLoss<T> p) {
  using Sum = Accumulator<T>;
  auto& scratch = shared<Shared<Sum>>();
  const Sum factor = p.factor();
  double total = 0;
  for_each_row(rows.count(), [&](std::int64_t number, bool exists) {
    const Row<T> row(rows, p, number, exists);
    const T* x = p.x + row.at[Loss::row_x];
    const auto value = [&](std::int64_t c) { return convert<Sum>(x[c * rows.steps[Loss::row_x]]); };
    Sum maximum = no_maximum<Sum>;
    if (p.terms.has_maximum()) {
      for_each_class(row, rows, [&](std::int64_t c) { maximum = Larger{}(maximum, value(c)); });
      maximum = row_reduce(maximum, Larger{}, scratch.maxima);
    }
    Parts<Sum> parts{0, 0};
    for_each_class(row, rows, [&](std::int64_t c) {
      if (p.terms.has_maximum()) parts.powers += power(value(c) - maximum);
      parts.terms +=
          p.terms.term(value(c), row.target(p, c, rows.steps[Loss::row_target]), maximum);
    });
    parts = row_reduce(parts, AddParts{}, scratch.parts);
    write_row(row, rows, p, exists, maximum, parts, factor, total);
  });
  leave_sum(total, scratch.sums, p.sums);
}

Work work(const Loss::Args& args, const Context& context) {
  const Work rows =
      row_work(args.count(), {.threads = threads}, 1 + ceil_div(args.classes(), threads),
               args.contiguous() ? "" : "strided");
  return with_result(args, in_turns(max_blocks(context), rows));
}

void run(const Loss::Args& args, Context& context) {
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    run_rows(args, context,
             {.threads = threads, .rows = 1, .shared_bytes = sizeof(Shared<Accumulator<T>>)},
             loss_block_per_row<T>);
  });
}

const Rung<Loss> self{{.name = "block_per_row",
                       .step = 20,
                       .after = "naive",
                       .backend = device_backend,
                       .passes = {.loads = 3, .stores = 1},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
