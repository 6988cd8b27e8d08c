// SPDX-License-Identifier: Apache-2.0
// loss / a warp per row
//
// Idea     A warp, or as few of its lanes as a row has elements, owns a row. Maximum and sums are
//          computed online in one pass: a larger maximum rescales the running sums, and the sums of
//          the lanes are combined by shuffles.
// Changes  against block_per_row: two passes instead of three, no barrier between rows, and short
//          rows share a warp.
// Cost     x is read twice, the second time from L1 for rows of a few thousand elements.
// Limits   All valid arguments; long rows have too few loads in flight.
// Source   M. Milakov and N. Gimelshein, Online normalizer calculation for softmax, 2018.
#include "rung/ops/loss/cuda/detail/loss.hpp"

namespace rung {
namespace {

using namespace loss_cuda;

constexpr int block_threads = 128;

/// Running maximum, and sums relative to it. `weight` is the sum of q so far: the terms q (m - x)
/// grow with the maximum by weight times its increase.
template <class Sum>
struct Running {
  Sum maximum = no_maximum<Sum>;
  Sum weight = 0;
  Parts<Sum> parts{0, 0};

  __device__ __forceinline__ void raise(Sum to) {
    parts.powers *= power(maximum - to);
    if (weight != 0) parts.terms += weight * (to - maximum);
    maximum = to;
  }
  __device__ __forceinline__ void add(const LossTerms<Sum>& terms, Sum x, Sum target) {
    if (x > maximum) raise(x);
    parts.powers += power(x - maximum);
    parts.terms += terms.term(x, target, maximum);
    weight += terms.share(target);
  }
};

template <class T>
__global__ void __launch_bounds__(block_threads) loss_warp_per_row(Rows<4> rows, RowLoss<T> p) {
  using Sum = Accumulator<T>;
  auto& scratch = shared<Shared<Sum>>();
  const int lanes = static_cast<int>(blockDim.x);
  const Sum factor = p.factor();
  double total = 0;
  for_each_row(rows.count(), [&](std::int64_t number, bool exists) {
    const Row<T> row(rows, p, number, exists);
    const T* x = p.x + row.at[Loss::row_x];
    Running<Sum> running;
    for_each_class(row, rows, [&](std::int64_t c) {
      const Sum value = convert<Sum>(x[c * rows.steps[Loss::row_x]]);
      const Sum target = row.target(p, c, rows.steps[Loss::row_target]);
      if (p.terms.has_maximum()) {
        running.add(p.terms, value, target);
      } else {
        running.parts.terms += p.terms.term(value, target, 0);
      }
    });
    if (p.terms.has_maximum()) running.raise(lanes_reduce(running.maximum, Larger{}, lanes));
    const Parts<Sum> parts = lanes_reduce(running.parts, AddParts{}, lanes);
    write_row(row, rows, p, exists, running.maximum, parts, factor, total);
  });
  leave_sum(total, scratch.sums, p.sums);
}

/// Returns a block with as many lanes per row as the row has elements, up to a warp.
RowBlock block_for(const Loss::Args& args) {
  RowBlock block{.threads = 1};
  while (block.threads < warp_size && block.threads < args.classes()) block.threads *= 2;
  block.rows = block_threads / block.threads;
  return block;
}

Work work(const Loss::Args& args, const Context& context) {
  const RowBlock block = block_for(args);
  const Work rows = row_work(
      args.count(), block, 1 + ceil_div(args.classes(), block.threads),
      block.threads < warp_size ? "short" : row_path(args.contiguous(), args.classes(), 2048), 40);
  return with_result(args, in_turns(max_blocks(context), rows));
}

void run(const Loss::Args& args, Context& context) {
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    RowBlock block = block_for(args);
    block.shared_bytes = sizeof(Shared<Accumulator<T>>);
    run_rows(args, context, block, loss_warp_per_row<T>);
  });
}

const Rung<Loss> self{{.name = "warp_per_row",
                       .step = 30,
                       .after = "block_per_row",
                       .backend = device_backend,
                       .passes = {.loads = 2, .stores = 1},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
