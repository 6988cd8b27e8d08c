// SPDX-License-Identifier: Apache-2.0
// softmax / split rows
//
// Idea     a few rows that are long are cut into spans, a block each: one kernel finds the maximum
//          and the sum of every span, the next puts together those of a row and writes. Where
//          neighboring rows are adjacent, a block has up to 32 of them, and neighboring threads
//          have neighboring rows: both memory orders are read in full sectors.
// Changes  against online_block and online_columns: one row, or fifteen adjacent ones, keep every
//          SM busy.
// Cost     x is read twice, the second time from L2 where it fits; two launches.
// Limits   loads of one element; any strides.
// Tried    -
// Source   M. Milakov & N. Gimelshein 2018 for what spans exchange.
#include "rung/core/bounds.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/waiting.hpp"
#include "rung/ops/softmax/cuda/detail/softmax.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

constexpr int threads = 256;
constexpr int warps = threads / warp_size;

/// How rows are cut: groups of `across` adjacent ones, of runs of `run`; spans of each.
struct Spans {
  std::int64_t run;
  std::int64_t groups;
  std::int64_t count;
  std::int64_t length;
};

template <class Sum>
struct SplitShared {
  Sum maximum[warps][warp_size];
  Sum sum[warps][warp_size];
};

/// The row of this thread in a group; rows.count() if there is none. threadIdx.x is its place.
template <int N>
__device__ __forceinline__ std::int64_t row_of(const Rows<N>& rows, const Spans& spans,
                                               std::int64_t group) {
  const int across = static_cast<int>(blockDim.x);
  const std::int64_t groups_a_run = ceil_div(spans.run, std::int64_t{across});
  const std::int64_t place = group % groups_a_run * across + threadIdx.x;
  return place < spans.run ? group / groups_a_run * spans.run + place : rows.count();
}

/// f over the values of the threads of a row, in each of them: lanes of a warp, then warps.
template <class Sum, class F>
__device__ __forceinline__ Sum meet(Sum value, F f, Sum (&of_warp)[warps][warp_size]) {
  const int across = static_cast<int>(blockDim.x);
  const int thread = static_cast<int>(threadIdx.y) * across + static_cast<int>(threadIdx.x);
  for (int distance = across; distance < warp_size; distance *= 2) {
    value = f(value, shuffle_xor(value, distance));
  }
  if (thread % warp_size < across) of_warp[thread / warp_size][thread % warp_size] = value;
  __syncthreads();
  value = of_warp[0][threadIdx.x];
#pragma unroll
  for (int warp = 1; warp < warps; ++warp) value = f(value, of_warp[warp][threadIdx.x]);
  __syncthreads();
  return value;
}

template <class Sum>
__device__ __forceinline__ Running<Sum> meet(Running<Sum> mine, Sum scale,
                                             SplitShared<Sum>& scratch) {
  const Sum maximum = meet(mine.maximum, Larger{}, scratch.maximum);
  const Sum sum = mine.sum * power((mine.maximum - maximum) * scale);
  return {maximum, meet(sum, Plus{}, scratch.sum)};
}

/// The span of this block, of every row: [begin, begin + length).
struct Span {
  std::int64_t begin;
  std::int64_t length;
  __device__ __forceinline__ Span(const Spans& spans, std::int64_t row_length)
      : begin(std::int64_t{blockIdx.x} * spans.length),
        length(smaller(spans.length, row_length - begin)) {}
};

template <class P>
__global__ void __launch_bounds__(threads)
    softmax_span_sums(Rows<2> rows, P p, Spans spans, Running<typename P::Sum>* found) {
  start_dependent();
  using Sum = typename P::Sum;
  auto& scratch = shared<SplitShared<Sum>>();
  const Span span(spans, rows.length);
  for (std::int64_t group = blockIdx.y; group < spans.groups; group += gridDim.y) {
    const std::int64_t row = row_of(rows, spans, group);
    const bool exists = row < rows.count();
    const auto* x = p.x + (exists ? rows.template offset<0>(row) : 0) + span.begin * rows.steps[0];
    Running<Sum> running;
    for_each_batch<Sum>(
        x, exists ? span.length : 0, rows.steps[0], threadIdx.y, blockDim.y,
        [&](std::int64_t, const Sum(&values)[batch]) { running.add(values, p.scale); });
    running = meet(running, p.scale, scratch);
    if (exists && threadIdx.y == 0) found[row * spans.count + blockIdx.x] = running;
  }
}

template <class P>
__global__ void __launch_bounds__(threads)
    softmax_split_rows(Rows<2> rows, P p, Spans spans, const Running<typename P::Sum>* found) {
  start_dependent();
  using Sum = typename P::Sum;
  auto& scratch = shared<SplitShared<Sum>>();
  const Span span(spans, rows.length);
  for (std::int64_t group = blockIdx.y; group < spans.groups; group += gridDim.y) {
    const std::int64_t row = row_of(rows, spans, group);
    const bool exists = row < rows.count();
    Running<Sum> running;
    for (std::int64_t i = threadIdx.y; exists && i < spans.count; i += blockDim.y) {
      const Running<Sum> other = found[row * spans.count + i];
      const Sum maximum = Larger{}(running.maximum, other.maximum);
      running.sum = running.sum * power((running.maximum - maximum) * p.scale) +
                    other.sum * power((other.maximum - maximum) * p.scale);
      running.maximum = maximum;
    }
    running = meet(running, p.scale, scratch);
    const auto* x = p.x + (exists ? rows.template offset<0>(row) : 0) + span.begin * rows.steps[0];
    auto* y = p.y + (exists ? rows.template offset<1>(row) : 0) + span.begin * rows.steps[1];
    write_results(x, y, exists ? span.length : 0, rows.steps, threadIdx.y, blockDim.y,
                  running.maximum, running.sum, p.scale, p.log);
  }
}

/// f(i, y, dy) for four elements at a time, both loaded before the first is used.
template <class Sum, class P, class F>
__device__ __forceinline__ void for_each_gradient(const Rows<3>& rows, const P& p,
                                                  const std::int64_t (&at)[3], const Span& span,
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
__global__ void __launch_bounds__(threads)
    softmax_span_gradients(Rows<3> rows, P p, Spans spans, typename P::Sum* found) {
  start_dependent();
  using Sum = typename P::Sum;
  auto& scratch = shared<SplitShared<Sum>>();
  const Span span(spans, rows.length);
  for (std::int64_t group = blockIdx.y; group < spans.groups; group += gridDim.y) {
    const std::int64_t row = row_of(rows, spans, group);
    const bool exists = row < rows.count();
    std::int64_t at[3] = {0, 0, 0};
    if (exists) rows.offsets(row, at);
    Sum sum = 0;
    for_each_gradient<Sum>(rows, p, at, span, exists, !p.log,
                           [&](std::int64_t, Sum y, Sum dy) { sum += p.log ? dy : dy * y; });
    sum = meet(sum, Plus{}, scratch.sum);
    if (exists && threadIdx.y == 0) found[row * spans.count + blockIdx.x] = sum;
  }
}

template <class P>
__global__ void __launch_bounds__(threads)
    softmax_split_gradients(Rows<3> rows, P p, Spans spans, const typename P::Sum* found) {
  start_dependent();
  using Sum = typename P::Sum;
  auto& scratch = shared<SplitShared<Sum>>();
  const Span span(spans, rows.length);
  for (std::int64_t group = blockIdx.y; group < spans.groups; group += gridDim.y) {
    const std::int64_t row = row_of(rows, spans, group);
    const bool exists = row < rows.count();
    std::int64_t at[3] = {0, 0, 0};
    if (exists) rows.offsets(row, at);
    Sum sum = 0;
    for (std::int64_t i = threadIdx.y; exists && i < spans.count; i += blockDim.y) {
      sum += found[row * spans.count + i];
    }
    sum = meet(sum, Plus{}, scratch.sum);
    auto* dx = p.dx + at[2] + span.begin * rows.steps[2];
    for_each_gradient<Sum>(rows, p, at, span, exists, true, [&](std::int64_t i, Sum y, Sum dy) {
      dx[i * rows.steps[2]] = convert<typename P::Out>(gradient_of(y, dy, sum, p.scale, p.log));
    });
  }
}

/// What is launched: blocks of `across` adjacent rows, four for each SM, each with at least four
/// elements per thread.
struct Plan {
  int across;
  Spans spans;
};
Plan plan_of(const Softmax::Args& args, const Context& context) {
  Plan plan{.across = 1, .spans = {.run = 1, .groups = 0, .count = 1, .length = 0}};
  if (args.rows.are_adjacent() && !args.rows.are_contiguous()) plan.spans.run = args.rows.run();
  while (plan.across < warp_size && plan.across < plan.spans.run) plan.across *= 2;
  plan.spans.groups = args.count() / larger(plan.spans.run, std::int64_t{1}) *
                      ceil_div(plan.spans.run, std::int64_t{plan.across});
  const std::int64_t wanted = clamped(
      ceil_div(std::int64_t{4} * context.info().sms, larger(plan.spans.groups, std::int64_t{1})),
      std::int64_t{1}, std::int64_t{512});
  const std::int64_t least = std::int64_t{batch} * threads / plan.across;
  plan.spans.length = larger(ceil_div(args.length(), wanted), least);
  plan.spans.count = larger(ceil_div(args.length(), plan.spans.length), std::int64_t{1});
  return plan;
}

double estimate(const Softmax::Args& args, const Context& context) {
  const Plan plan = plan_of(args, context);
  const double blocks =
      static_cast<double>(plan.spans.groups) * static_cast<double>(plan.spans.count);
  const double rounds = static_cast<double>(plan.spans.length) * plan.across / (batch * threads);
  const bool backward = args.backward;
  return launch_seconds / 2 + waiting_seconds(Softmax::cost(args),
                                              {.bandwidth = backward ? 0.15 : 0.2,
                                               .blocks = blocks,
                                               .blocks_per_sm = 6,
                                               .rounds = 2 * rounds,
                                               .fixed = 3e-6},
                                              context);
}

void run(const Softmax::Args& args, Context& context) {
  constexpr std::int64_t max_blocks = 0xffff;
  if (args.empty()) return;
  const Plan plan = plan_of(args, context);
  const auto found = [&]<class Found>(Found*) {
    return static_cast<Found*>(context.workspace(
        static_cast<std::size_t>(args.count() * plan.spans.count) * sizeof(Found)));
  };
  const auto shape = [&]<class Sum>(Sum*) {
    return LaunchShape{.grid = {plan.spans.count, smaller(max_blocks, plan.spans.groups)},
                       .block = {plan.across, threads / plan.across},
                       .shared_bytes = sizeof(SplitShared<Sum>),
                       .dependent = can_depend(context)};
  };
  if (args.backward) {
    with_backward_types(args, [&]<class T, class Y>() {
      using Sum = Accumulator<T>;
      Sum* const sums = found(static_cast<Sum*>(nullptr));
      const auto p = backward_of<T, Y>(args);
      const LaunchShape blocks = shape(static_cast<Sum*>(nullptr));
      launch(context, blocks, softmax_span_gradients<Backward<T, Y>>, args.rows, p, plan.spans,
             sums);
      launch(context, blocks, softmax_split_gradients<Backward<T, Y>>, args.rows, p, plan.spans,
             sums);
    });
  } else {
    with_forward_types(args, [&]<class T, class Y>() {
      using Sum = Accumulator<T>;
      Running<Sum>* const sums = found(static_cast<Running<Sum>*>(nullptr));
      const auto p = forward_of<T, Y>(args);
      const LaunchShape blocks = shape(static_cast<Sum*>(nullptr));
      launch(context, blocks, softmax_span_sums<Forward<T, Y>>, forward_rows(args), p, plan.spans,
             sums);
      launch(context, blocks, softmax_split_rows<Forward<T, Y>>, forward_rows(args), p, plan.spans,
             sums);
    });
  }
}

const Rung<Softmax> self{{.name = "split_rows",
                          .step = 38,
                          .after = "online_columns",
                          .backend = device_backend,
                          .passes = {.loads = 2, .stores = 1},
                          .estimate = estimate,
                          .run = run}};

}  // namespace
}  // namespace rung
