// SPDX-License-Identifier: Apache-2.0
// softmax / split rows
//
// Idea     Split a few long rows into spans of one block each: one kernel computes maximum and sum
//          per span, a second one combines the partials of a row and writes y. If rows are
//          adjacent, a block handles up to 32 of them with adjacent threads on adjacent rows, so
//          that both memory orders are coalesced.
// Changes  against any_strides and online_columns: one row, or fifteen adjacent ones, can fill the
//          GPU.
// Cost     x is read twice, the second time from L2 if it fits; two launches.
// Limits   Scalar loads; any strides.
// Source   M. Milakov & N. Gimelshein 2018 for combining maxima and sums of spans.
#include "rung/core/bounds.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/row/row_spans.hpp"
#include "rung/ops/softmax/cuda/detail/softmax.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

template <class Sum>
struct SplitShared {
  RowSpanValues<Sum> maximum;
  RowSpanValues<Sum> sum;
};

template <class Sum>
__device__ __forceinline__ Running<Sum> reduce_running(Running<Sum> mine, Sum scale,
                                                       SplitShared<Sum>& scratch) {
  const Sum maximum = row_span_reduce(mine.maximum, Larger{}, scratch.maximum);
  const Sum sum = mine.sum * fast_exp((mine.maximum - maximum) * scale);
  return {maximum, row_span_reduce(sum, Plus{}, scratch.sum)};
}

template <class P>
__global__ void __launch_bounds__(row_span_threads)
    softmax_span_sums(Rows<2> rows, P p, RowSpans spans, Running<typename P::Sum>* found) {
  start_dependent();
  using Sum = typename P::Sum;
  auto& scratch = shared<SplitShared<Sum>>();
  const RowSpan span(spans, rows.length);
  for (std::int64_t group = blockIdx.y; group < spans.groups; group += gridDim.y) {
    const std::int64_t row = row_of_group(rows, spans, group);
    const bool exists = row < rows.count();
    const auto* x = p.x + (exists ? rows.template offset<0>(row) : 0) + span.begin * rows.steps[0];
    Running<Sum> running;
    for_each_batch<Sum>(
        x, exists ? span.length : 0, rows.steps[0], threadIdx.y, blockDim.y,
        [&](std::int64_t, const Sum(&values)[batch]) { running.add(values, p.scale); });
    running = reduce_running(running, p.scale, scratch);
    if (exists && threadIdx.y == 0) found[row * spans.count + blockIdx.x] = running;
  }
}

template <class P>
__global__ void __launch_bounds__(row_span_threads)
    softmax_split_rows(Rows<2> rows, P p, RowSpans spans, const Running<typename P::Sum>* found) {
  start_dependent();
  using Sum = typename P::Sum;
  auto& scratch = shared<SplitShared<Sum>>();
  const RowSpan span(spans, rows.length);
  for (std::int64_t group = blockIdx.y; group < spans.groups; group += gridDim.y) {
    const std::int64_t row = row_of_group(rows, spans, group);
    const bool exists = row < rows.count();
    Running<Sum> running;
    for (std::int64_t i = threadIdx.y; exists && i < spans.count; i += blockDim.y) {
      const Running<Sum> other = found[row * spans.count + i];
      const Sum maximum = Larger{}(running.maximum, other.maximum);
      running.sum = running.sum * fast_exp((running.maximum - maximum) * p.scale) +
                    other.sum * fast_exp((other.maximum - maximum) * p.scale);
      running.maximum = maximum;
    }
    running = reduce_running(running, p.scale, scratch);
    const auto* x = p.x + (exists ? rows.template offset<0>(row) : 0) + span.begin * rows.steps[0];
    auto* y = p.y + (exists ? rows.template offset<1>(row) : 0) + span.begin * rows.steps[1];
    write_results(x, y, exists ? span.length : 0, rows.steps, threadIdx.y, blockDim.y,
                  running.maximum, running.sum, p.scale, p.log);
  }
}

Work work(const Softmax::Args& args, const Context& context) {
  return row_span_work(args.rows, row_spans(args.rows, batch, context), batch);
}

void run(const Softmax::Args& args, Context& context) {
  constexpr std::int64_t max_blocks = 0xffff;
  if (args.empty()) return;
  const RowSpanLaunch plan = row_spans(args.rows, batch, context);
  with_types(args, [&]<class T, class Y>() {
    using Sum = Accumulator<T>;
    auto* const sums = static_cast<Running<Sum>*>(context.workspace(
        static_cast<std::size_t>(args.count() * plan.spans.count) * sizeof(Running<Sum>)));
    const LaunchShape blocks{.grid = {plan.spans.count, smaller(max_blocks, plan.spans.groups)},
                             .block = {plan.across, row_span_threads / plan.across},
                             .shared_bytes = sizeof(SplitShared<Sum>),
                             .dependent = can_depend(context)};
    const auto p = call_of<T, Y>(args);
    launch(context, blocks, softmax_span_sums<SoftmaxCall<T, Y>>, args.rows, p, plan.spans, sums);
    launch(context, blocks, softmax_split_rows<SoftmaxCall<T, Y>>, args.rows, p, plan.spans, sums);
  });
}

const Rung<Softmax> self{{.name = "split_rows",
                          .after = "online_columns",
                          .backend = device_backend,
                          .passes = {.loads = 2, .stores = 1},
                          .work = work,
                          .run = run}};

}  // namespace
}  // namespace rung
