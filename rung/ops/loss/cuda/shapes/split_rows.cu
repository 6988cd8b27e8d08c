// SPDX-License-Identifier: Apache-2.0
// loss / split rows
//
// Idea     Split a few long rows into spans of one block each: one kernel computes the sums of a
//          span relative to its own maximum; a second one rescales the spans of a row to the row's
//          maximum, adds them up, and writes the gradient.
// Changes  against block_per_row: one row can fill the GPU. Against shared_single_read: rows of any
//          length.
// Cost     x is read three times, the second and third time from L1 or L2 if it fits; one more
//          launch.
// Limits   All valid arguments. Many short rows leave most of a block idle.
// Source   norm's ladder (ops/norm/cuda/shapes/split_rows.cu).
#include "rung/ops/loss/cuda/detail/loss.hpp"

namespace rung {
namespace {

using namespace loss_cuda;

constexpr int threads = 256;

/// Partial sums of a span relative to its own maximum: of exponentials, of terms, and of the
/// weights q with which the maximum enters the terms.
template <class Sum>
struct SpanParts {
  Sum maximum;
  Sum powers;
  Sum terms;
  Sum shares;
};
struct AddSpans {
  template <class Sum>
  __device__ __forceinline__ SpanParts<Sum> operator()(const SpanParts<Sum>& a,
                                                       const SpanParts<Sum>& b) const {
    return {a.maximum, a.powers + b.powers, a.terms + b.terms, a.shares + b.shares};
  }
};

/// Partition of rows into spans; block index = row * count + span.
template <class Sum>
struct Spans {
  std::int64_t count;   // per row
  std::int64_t length;  // in classes
  SpanParts<Sum>* parts;
};

template <class Sum>
struct SplitShared {
  WarpValues<Sum, threads> maxima;
  WarpValues<SpanParts<Sum>, threads> parts;
  double sums[32];
};

template <class T, class Sum = Accumulator<T>>
__global__ void __launch_bounds__(threads)
    loss_span_parts(Rows<4> rows, RowLoss<T> p, Spans<Sum> spans) {
  auto& scratch = shared<SplitShared<Sum>>();
  const std::int64_t all = rows.count() * spans.count;
  for (std::int64_t number = blockIdx.x; number < all; number += gridDim.x) {
    const std::int64_t row_number = number / spans.count;
    const std::int64_t begin = (number - row_number * spans.count) * spans.length;
    const Row<T> row(rows, p, row_number, true);
    const std::int64_t end = row.works ? smaller(begin + spans.length, rows.length) : begin;
    const T* const x = p.x + row.at[Loss::row_x];
    const auto value = [&](std::int64_t c) { return convert<Sum>(x[c * rows.steps[Loss::row_x]]); };
    Sum maximum = no_maximum<Sum>;
    if (p.terms.has_maximum()) {
#pragma unroll 4
      for (std::int64_t c = begin + threadIdx.x; c < end; c += threads) {
        maximum = Larger{}(maximum, value(c));
      }
      maximum = block_reduce(maximum, Larger{}, no_maximum<Sum>, scratch.maxima);
    }
    SpanParts<Sum> parts{maximum, 0, 0, 0};
#pragma unroll 4
    for (std::int64_t c = begin + threadIdx.x; c < end; c += threads) {
      const Sum target = row.target(p, c, rows.steps[Loss::row_target]);
      if (p.terms.has_maximum()) {
        parts.powers += power(value(c) - maximum);
        parts.shares += p.terms.share(target);
      }
      parts.terms += p.terms.term(value(c), target, maximum);
    }
    parts = block_reduce(parts, AddSpans{}, SpanParts<Sum>{maximum, 0, 0, 0}, scratch.parts);
    if (threadIdx.x == 0) spans.parts[number] = parts;
  }
}

/// Returns the sums of a row relative to its maximum and sets `maximum`; valid in every lane of a
/// warp.
template <class Sum>
__device__ __forceinline__ Parts<Sum> join_spans(const SpanParts<Sum>* parts, std::int64_t count,
                                                 bool has_maximum, Sum& maximum) {
  maximum = no_maximum<Sum>;
  for (std::int64_t span = lane_of_thread(); has_maximum && span < count; span += warp_size) {
    maximum = Larger{}(maximum, parts[span].maximum);
  }
  maximum = warp_reduce(maximum, Larger{});
  Parts<Sum> sum{0, 0};
  for (std::int64_t span = lane_of_thread(); span < count; span += warp_size) {
    const SpanParts<Sum> part = parts[span];
    sum.terms += part.terms;
    if (!has_maximum) continue;
    sum.powers += part.powers * power(part.maximum - maximum);
    // The distance may be infinite if nothing was added.
    if (part.shares != 0) sum.terms += part.shares * (maximum - part.maximum);
  }
  return warp_reduce(sum, AddParts{});
}

template <class T, class Sum = Accumulator<T>>
__global__ void __launch_bounds__(threads)
    loss_split_rows(Rows<4> rows, RowLoss<T> p, Spans<Sum> spans) {
  start_dependent();
  auto& scratch = shared<SplitShared<Sum>>();
  const Sum factor = p.factor();
  const std::int64_t all = rows.count() * spans.count;
  double total = 0;
  for (std::int64_t number = blockIdx.x; number < all; number += gridDim.x) {
    const std::int64_t row_number = number / spans.count;
    const std::int64_t begin = (number - row_number * spans.count) * spans.length;
    const std::int64_t end = smaller(begin + spans.length, rows.length);
    const Row<T> row(rows, p, row_number, true);
    Sum maximum = 0;
    const Parts<Sum> parts = join_spans(spans.parts + row_number * spans.count, spans.count,
                                        p.terms.has_maximum(), maximum);
    if (begin == 0 && threadIdx.x == 0) {
      const Sum loss = row.works ? Row<T>::loss_of(p, parts) : row.otherwise;
      if (p.losses != nullptr) p.losses[row.at[Loss::row_losses]] = loss;
      total += static_cast<double>(loss);
    }
    if (p.dx == nullptr) continue;
    const Sum inverse = 1 / parts.powers;
    const T* const x = p.x + row.at[Loss::row_x];
    T* const dx = p.dx + row.at[Loss::row_dx];
#pragma unroll 4
    for (std::int64_t c = begin + threadIdx.x; c < end; c += threads) {
      Sum slope = row.otherwise;
      if (row.works) {
        const Sum value = convert<Sum>(x[c * rows.steps[Loss::row_x]]);
        const Sum probability = p.terms.has_maximum() ? power(value - maximum) * inverse : Sum(0);
        slope = p.terms.slope(value, row.target(p, c, rows.steps[Loss::row_target]), probability) *
                factor;
      }
      dx[c * rows.steps[Loss::row_dx]] = convert<T>(slope);
    }
  }
  leave_sum(total, scratch.sums, p.sums);
}

/// Partition: spans of at least eight elements per thread, four blocks per SM.
struct RowSplit {
  std::int64_t spans;
  std::int64_t length;
};
RowSplit split_of(const Loss::Args& args, const Context& context) {
  constexpr std::int64_t shortest = 8 * threads;
  const std::int64_t wanted =
      ceil_div(4 * std::int64_t{context.info().sms}, larger<std::int64_t>(args.count(), 1));
  const std::int64_t spans =
      clamped<std::int64_t>(wanted, 1, ceil_div(larger<std::int64_t>(args.classes(), 1), shortest));
  const std::int64_t length = ceil_div(larger<std::int64_t>(args.classes(), 1), spans);
  return {ceil_div(larger<std::int64_t>(args.classes(), 1), length), length};
}

Work work(const Loss::Args& args, const Context& context) {
  const RowSplit split = split_of(args, context);
  const Work spans =
      block_work(args.count() * split.spans, threads, ceil_div(split.length, 4 * threads),
                 args.contiguous() ? "" : "strided", 40);
  return with_result(args, in_launches(2, in_turns(max_blocks(context), spans)));
}

void run(const Loss::Args& args, Context& context) {
  const RowSplit split = split_of(args, context);
  const std::int64_t blocks = smaller(max_blocks(context), args.count() * split.spans);
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    using Sum = Accumulator<T>;
    const auto parts = static_cast<std::size_t>(args.count() * split.spans);
    run_blocks<T>(
        args, context, blocks,
        [&](const RowLoss<T>& p) {
          const Spans<Sum> spans{.count = split.spans,
                                 .length = split.length,
                                 .parts = reinterpret_cast<SpanParts<Sum>*>(p.sums + blocks + 1)};
          LaunchShape shape{
              .grid = blocks, .block = threads, .shared_bytes = sizeof(SplitShared<Sum>)};
          launch(context, shape, loss_span_parts<T>, args.rows, p, spans);
          shape.dependent = can_depend(context);
          launch(context, shape, loss_split_rows<T>, args.rows, p, spans);
        },
        parts * sizeof(SpanParts<Sum>));
  });
}

const Rung<Loss> self{{.name = "split_rows",
                       .after = "block_per_row",
                       .backend = device_backend,
                       .passes = {.loads = 3, .stores = 1},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
