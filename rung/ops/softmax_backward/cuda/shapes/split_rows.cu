// SPDX-License-Identifier: Apache-2.0
// softmax_backward / split rows
//
// Idea     Split a few long rows into spans of one block each: one kernel sums every span, a second
//          one adds up the sums of a row and writes dx. If rows are adjacent, a block handles up to
//          32 of them with adjacent threads on adjacent rows, so that both memory orders are
//          coalesced.
// Changes  against any_strides and adjacent_rows: one row, or fifteen adjacent ones, can fill the
//          GPU.
// Cost     y and dy are read twice, the second time from L2 if they fit; two launches.
// Limits   Scalar loads; any strides.
#include "rung/core/bounds.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/row/row_spans.hpp"
#include "rung/ops/softmax_backward/cuda/detail/softmax_backward.hpp"

namespace rung {
namespace {

using namespace softmax_backward_cuda;

/// Elements that a thread loads before it uses the first.
constexpr int batch = 4;

/// Calls f(i, y, dy) for the thread's elements of the span, loaded in batches; y is 0 unless
/// `needs_y`.
template <class Sum, class P, class F>
__device__ __forceinline__ void for_each_element(const Rows<3>& rows, const P& p,
                                                 const std::int64_t (&at)[3], const RowSpan& span,
                                                 bool exists, bool needs_y, F&& f) {
  const std::int64_t length = exists ? span.length : 0;
  const auto* y = p.y + at[0] + span.begin * rows.steps[0];
  const auto* dy = p.dy + at[1] + span.begin * rows.steps[1];
  for (std::int64_t i = threadIdx.y; i < length; i += std::int64_t{batch} * blockDim.y) {
    Sum ys[batch] = {};
    Sum gradients[batch] = {};
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      const std::int64_t j = i + std::int64_t{k} * blockDim.y;
      if (j >= length) continue;
      gradients[k] = convert<Sum>(dy[j * rows.steps[1]]);
      if (needs_y) ys[k] = convert<Sum>(y[j * rows.steps[0]]);
    }
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      const std::int64_t j = i + std::int64_t{k} * blockDim.y;
      if (j < length) f(j, ys[k], gradients[k]);
    }
  }
}

template <class P>
__global__ void __launch_bounds__(row_span_threads)
    softmax_backward_span_sums(Rows<3> rows, P p, RowSpans spans, typename P::Sum* found) {
  start_dependent();
  using Sum = typename P::Sum;
  auto& scratch = shared<RowSpanValues<Sum>>();
  const RowSpan span(spans, rows.length);
  for (std::int64_t group = blockIdx.y; group < spans.groups; group += gridDim.y) {
    const std::int64_t row = row_of_group(rows, spans, group);
    const bool exists = row < rows.count();
    std::int64_t at[3] = {0, 0, 0};
    if (exists) rows.offsets(row, at);
    Sum sum = 0;
    for_each_element<Sum>(rows, p, at, span, exists, !p.log,
                          [&](std::int64_t, Sum y, Sum dy) { sum += term_of(y, dy, p.log); });
    sum = row_span_reduce(sum, Plus{}, scratch);
    if (exists && threadIdx.y == 0) found[row * spans.count + blockIdx.x] = sum;
  }
}

template <class P>
__global__ void __launch_bounds__(row_span_threads)
    softmax_backward_split_rows(Rows<3> rows, P p, RowSpans spans, const typename P::Sum* found) {
  start_dependent();
  using Sum = typename P::Sum;
  auto& scratch = shared<RowSpanValues<Sum>>();
  const RowSpan span(spans, rows.length);
  for (std::int64_t group = blockIdx.y; group < spans.groups; group += gridDim.y) {
    const std::int64_t row = row_of_group(rows, spans, group);
    const bool exists = row < rows.count();
    std::int64_t at[3] = {0, 0, 0};
    if (exists) rows.offsets(row, at);
    Sum sum = 0;
    for (std::int64_t i = threadIdx.y; exists && i < spans.count; i += blockDim.y) {
      sum += found[row * spans.count + i];
    }
    sum = row_span_reduce(sum, Plus{}, scratch);
    auto* dx = p.dx + at[2] + span.begin * rows.steps[2];
    for_each_element<Sum>(rows, p, at, span, exists, true, [&](std::int64_t i, Sum y, Sum dy) {
      dx[i * rows.steps[2]] = convert<typename P::Out>(gradient_of(y, dy, sum, p.scale, p.log));
    });
  }
}

Work work(const SoftmaxBackward::Args& args, const Context& context) {
  return row_span_work(args.rows, row_spans(args.rows, batch, context), batch);
}

void run(const SoftmaxBackward::Args& args, Context& context) {
  constexpr std::int64_t max_blocks = 0xffff;
  if (args.empty()) return;
  const RowSpanLaunch plan = row_spans(args.rows, batch, context);
  with_types(args, [&]<class T, class Y>() {
    using Sum = Accumulator<T>;
    auto* const sums = static_cast<Sum*>(
        context.workspace(static_cast<std::size_t>(args.count() * plan.spans.count) * sizeof(Sum)));
    const LaunchShape blocks{.grid = {plan.spans.count, smaller(max_blocks, plan.spans.groups)},
                             .block = {plan.across, row_span_threads / plan.across},
                             .shared_bytes = sizeof(RowSpanValues<Sum>),
                             .dependent = can_depend(context)};
    const auto p = call_of<T, Y>(args);
    launch(context, blocks, softmax_backward_span_sums<GradientCall<T, Y>>, args.rows, p,
           plan.spans, sums);
    launch(context, blocks, softmax_backward_split_rows<GradientCall<T, Y>>, args.rows, p,
           plan.spans, sums);
  });
}

const Rung<SoftmaxBackward> self{{.name = "split_rows",
                                  .after = "adjacent_rows",
                                  .backend = device_backend,
                                  .passes = {.loads = 2, .stores = 1},
                                  .work = work,
                                  .run = run}};

}  // namespace
}  // namespace rung
