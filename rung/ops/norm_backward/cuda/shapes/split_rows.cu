// SPDX-License-Identifier: Apache-2.0
// norm_backward / split rows
//
// Idea     Rows are split into spans of columns and grouped by eight; a block owns a span of eight
//          rows. It processes 256 columns at a time, one per thread, and accumulates in registers
//          the sums of dgamma and dbeta over the eight rows and the two sums of each row over its
//          columns. The next kernel combines the spans of a row, one warp per row.
// Changes  against block_per_row: a few long rows can fill the GPU.
// Cost     x is read twice, dy twice; x is read two more times if mean and rstd are not given.
// Limits   Scalar loads; any strides. Short rows leave most of a block idle.
// Source   CUB's segmented reductions for few segments; T. Chan, G. Golub and R. LeVeque, 1983, for
//          combining moments.
#include "rung/core/bounds.hpp"
#include "rung/device/row/row_spans.hpp"
#include "rung/ops/norm_backward/cuda/detail/norm_backward.hpp"

namespace rung {
namespace {

using namespace norm_backward_cuda;

constexpr int threads = 256;
constexpr int rows_a_share = 8;  // rows per block and iteration, a warp each
static_assert(rows_a_share == threads / warp_size);

/// Moments of a span of a row about the span's mean.
template <class W>
struct alignas(16) SpanMoments {
  W center;
  Moments<W> moments;
};

/// Partition of rows into spans, and the partial results, [rows][spans].
template <class W>
struct Spans {
  std::int64_t count;
  std::int64_t length;  // a multiple of `step`
  SpanMoments<W>* parts;
  Means<W>* means;
};

template <class W>
struct SplitShared {
  std::int64_t at[rows_a_share][5];  // offsets of each tensor's rows
  Means<W> of_warp[rows_a_share][threads / warp_size];
  W centers[rows_a_share];
  Scale<W> scales[rows_a_share];
  Means<W> means[rows_a_share];
};

/// A block's unit of work: its span, its eight rows and their offsets. Constructed by all threads
/// of the block.
template <class T>
struct Share {
  using W = Accumulator<T>;
  const NormGradientArguments<T>& call;
  SplitShared<W>& scratch;
  std::int64_t first;  // row
  std::int64_t begin;  // column
  std::int64_t end;
  int rows;

  __device__ __forceinline__ Share(const NormGradientArguments<T>& call, const Spans<W>& spans,
                                   SplitShared<W>& scratch, std::int64_t share)
      : call(call),
        scratch(scratch),
        first(share * rows_a_share),
        begin(std::int64_t{blockIdx.x} * spans.length),
        end(smaller(call.n, begin + spans.length)),
        rows(static_cast<int>(smaller<std::int64_t>(rows_a_share, call.rows - first))) {
    __syncthreads();  // the previous rows have been processed
    if (threadIdx.x < static_cast<unsigned>(rows)) {
      std::int64_t at[5] = {};
      call.lines.rows.offsets(first + threadIdx.x, at);
#pragma unroll
      for (int tensor = 0; tensor < 5; ++tensor) scratch.at[threadIdx.x][tensor] = at[tensor];
    }
    __syncthreads();
  }
  /// Calls f(i) for the thread's columns of the span; the eight rows per column hide the latency of
  /// the loads.
  template <class F>
  __device__ __forceinline__ void for_columns(F&& f) const {
#pragma unroll 1
    for (std::int64_t i = begin + threadIdx.x; i < end; i += threads) f(i);
  }
  /// Calls f(r) for the unit's rows.
  template <class F>
  __device__ __forceinline__ void for_rows(F&& f) const {
#pragma unroll
    for (int r = 0; r < rows_a_share; ++r) {
      if (r < rows) f(r);
    }
  }
  template <int tensor>
  [[nodiscard]] __device__ __forceinline__ std::int64_t column(std::int64_t i) const {
    return call.lines.columns.template offset<tensor>(i);
  }
  [[nodiscard]] __device__ __forceinline__ W x(int r, std::int64_t column) const {
    return convert<W>(call.x[scratch.at[r][NormBackward::row_x] + column]);
  }
  [[nodiscard]] __device__ __forceinline__ W dy(int r, std::int64_t column) const {
    return convert<W>(call.dy[scratch.at[r][NormBackward::row_dy] + column]);
  }
  [[nodiscard]] __device__ __forceinline__ W gamma(std::int64_t i) const {
    return gamma_at(call, column<NormBackward::column_gamma>(i));
  }
};

/// Reduces the two sums of every row over the block; the lanes of warp r return those of row r.
template <class W>
__device__ __forceinline__ Means<W> reduce_rows(Means<W> (&values)[rows_a_share],
                                                SplitShared<W>& scratch) {
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const int lane = lane_of_thread();
#pragma unroll
  for (int r = 0; r < rows_a_share; ++r) {
    const Means<W> sum = warp_reduce(values[r], AddMeans{});
    if (lane == 0) scratch.of_warp[r][warp] = sum;
  }
  __syncthreads();
  const Means<W> sum = scratch.of_warp[warp][lane % (threads / warp_size)];
  const Means<W> reduced = lanes_reduce(sum, AddMeans{}, threads / warp_size);
  __syncthreads();
  return reduced;
}

/// Stores mean and rstd of the unit's rows in shared memory: the given ones, or those combined from
/// all spans. Called by all threads.
template <class T, class W = Accumulator<T>>
__device__ __forceinline__ void find_scales(const NormGradientArguments<T>& call,
                                            const Spans<W>& spans, const Share<T>& share,
                                            SplitShared<W>& scratch) {
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const int lane = lane_of_thread();
  if (warp < share.rows) {
    std::int64_t at[5] = {};
    call.lines.rows.offsets(share.first + warp, at);
    Scale<W> scale{};
    if (call.rstd != nullptr) {
      scale = given_scale(call, at);
    } else {
      const SpanMoments<W>* const parts = spans.parts + (share.first + warp) * spans.count;
      const auto length = [&](std::int64_t span) {
        return static_cast<W>(smaller(spans.length, call.n - span * spans.length));
      };
      W sum = 0;
      for (std::int64_t span = lane; span < spans.count; span += warp_size) {
        sum += length(span) * call.factors.shrink * parts[span].center;
      }
      const W center = call.layer ? warp_reduce(sum, Plus{}) * call.factors.shrunk_part : W{0};
      Moments<W> moments{};  // moved from the spans' centers to the row's mean
      for (std::int64_t span = lane; span < spans.count; span += warp_size) {
        const SpanMoments<W> part = parts[span];
        moments = AddMoments{}(
            moments, moved_by(part.moments, part.center - center, length(span), call.factors));
      }
      scale = scale_about(call, center, warp_reduce(moments, AddMoments{}));
    }
    if (lane == 0) scratch.scales[warp] = scale;
  }
  __syncthreads();
}

template <class T, class W = Accumulator<T>>
__global__ void __launch_bounds__(threads)
    norm_backward_span_moments(const __grid_constant__ NormGradientArguments<T> call,
                               Spans<W> spans) {
  start_dependent();
  auto& scratch = shared<SplitShared<W>>();
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  for (std::int64_t s = blockIdx.y; s * rows_a_share < call.rows; s += gridDim.y) {
    const Share<T> share(call, spans, scratch, s);
    const auto length = static_cast<W>(share.end - share.begin);
    Means<W> sums[rows_a_share] = {};
    if (call.layer) {
      share.for_columns([&](std::int64_t i) {
        const std::int64_t x = share.template column<NormBackward::column_x>(i);
        share.for_rows([&](int r) { sums[r].g += share.x(r, x) * call.factors.shrink; });
      });
    }
    const Means<W> sum = reduce_rows(sums, scratch);
    if (lane_of_thread() == 0) {
      scratch.centers[warp] = center_near(sum.g / (length * call.factors.shrink));
    }
    __syncthreads();
    Means<W> moments[rows_a_share] = {};
    share.for_columns([&](std::int64_t i) {
      const std::int64_t x = share.template column<NormBackward::column_x>(i);
      share.for_rows([&](int r) {
        const W distance = share.x(r, x) - scratch.centers[r];
        moments[r].g += distance * call.factors.shrink;
        moments[r].gz += distance * distance;
      });
    });
    const W center = scratch.centers[warp];
    const Means<W> reduced = reduce_rows(moments, scratch);
    if (warp < share.rows && lane_of_thread() == 0) {
      spans.parts[(share.first + warp) * spans.count + blockIdx.x] = {center,
                                                                      {reduced.g, reduced.gz}};
    }
  }
}

template <class T, class W = Accumulator<T>>
__global__ void __launch_bounds__(threads)
    norm_backward_span_sums(const __grid_constant__ NormGradientArguments<T> call, Spans<W> spans) {
  start_dependent();
  auto& scratch = shared<SplitShared<W>>();
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  for (std::int64_t s = blockIdx.y; s * rows_a_share < call.rows; s += gridDim.y) {
    const Share<T> share(call, spans, scratch, s);
    find_scales(call, spans, share, scratch);
    Means<W> means[rows_a_share] = {};
    share.for_columns([&](std::int64_t i) {
      const W gamma = share.gamma(i);
      const std::int64_t x_at = share.template column<NormBackward::column_x>(i);
      const std::int64_t dy_at = share.template column<NormBackward::column_dy>(i);
      W dgamma = 0;
      W dbeta = 0;
      share.for_rows([&](int r) {
        const Scale<W> scale = scratch.scales[r];
        const W z = (share.x(r, x_at) - scale.center) * scale.rstd + scale.shift;
        const W dy = share.dy(r, dy_at);
        means[r].g += dy * gamma;
        means[r].gz += dy * gamma * z;
        dgamma += dy * z;
        dbeta += dy;
      });
      if (call.sums == nullptr) return;
      call.sums[s * 2 * call.n + i] = dgamma;
      call.sums[(s * 2 + 1) * call.n + i] = dbeta;
    });
    const Means<W> reduced = reduce_rows(means, scratch);
    if (warp < share.rows && lane_of_thread() == 0) {
      spans.means[(share.first + warp) * spans.count + blockIdx.x] = reduced;
    }
  }
}

template <class T, class W = Accumulator<T>>
__global__ void __launch_bounds__(threads)
    norm_backward_split_rows(const __grid_constant__ NormGradientArguments<T> call,
                             Spans<W> spans) {
  start_dependent();
  auto& scratch = shared<SplitShared<W>>();
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  for (std::int64_t s = blockIdx.y; s * rows_a_share < call.rows; s += gridDim.y) {
    const Share<T> share(call, spans, scratch, s);
    Means<W> means{};
    if (warp < share.rows) {
      const Means<W>* const of_span = spans.means + (share.first + warp) * spans.count;
      for (std::int64_t span = lane_of_thread(); span < spans.count; span += warp_size) {
        means = AddMeans{}(means, of_span[span]);
      }
    }
    means = warp_reduce(means, AddMeans{});
    if (lane_of_thread() == 0) {
      scratch.means[warp] = {call.layer ? means.g * call.factors.part : W{0},
                             means.gz * call.factors.part};
    }
    find_scales(call, spans, share, scratch);
    share.for_columns([&](std::int64_t i) {
      const W gamma = share.gamma(i);
      const std::int64_t x_at = share.template column<NormBackward::column_x>(i);
      const std::int64_t dy_at = share.template column<NormBackward::column_dy>(i);
      const std::int64_t dx_at = share.template column<NormBackward::column_dx>(i);
      W x[rows_a_share];
      W dy[rows_a_share];
      share.for_rows([&](int r) {  // issue all loads before the first store, which may alias them
        x[r] = share.x(r, x_at);
        dy[r] = share.dy(r, dy_at);
      });
      share.for_rows([&](int r) {
        const Scale<W> scale = scratch.scales[r];
        const W z = (x[r] - scale.center) * scale.rstd + scale.shift;
        const W g = dy[r] * gamma;
        const W dx = scale.rstd * (g - scratch.means[r].g - z * scratch.means[r].gz);
        call.dx[scratch.at[r][NormBackward::row_dx] + dx_at] = convert<T>(dx);
      });
    });
  }
}

/// Granularity of spans in columns. spans_of() returns the partition.
constexpr int step = 4 * threads;
RowSpans spans_of(std::int64_t rows, std::int64_t n, const Context& context) {
  return cut_rows(ceil_div(rows, std::int64_t{rows_a_share}), n, step, context);
}

Support supports(const NormBackward::Args& args, const Context&) {
  return NormBackward::lines_of(args).columns.size() > 0 ? supported
                                                         : unsupported("rows have no elements");
}

Work work(const NormBackward::Args& args, const Context& context) {
  const NormBackward::Lines lines = NormBackward::lines_of(args);
  const RowSpans plan = spans_of(lines.rows.size(), lines.columns.size(), context);
  const int kernels = args.rstd.data == nullptr ? 3 : 2;
  const Work spans = span_work(plan, threads, kernels * ceil_div(plan.length, step),
                               lines.contiguous_columns() ? "" : "strided", 128);
  return with_finish(args, in_launches(kernels, spans), plan.groups);
}

void run(const NormBackward::Args& args, Context& context) {
  constexpr std::int64_t max_blocks = 0xffff;
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    using W = Accumulator<T>;
    NormGradientArguments<T> call = call_of<T>(args);
    const RowSpans plan = spans_of(call.rows, call.n, context);
    call.chunks = plan.groups;
    const std::int64_t sums = wants_sums(args) ? 2 * call.chunks * call.n : 0;
    const std::int64_t parts = call.rstd == nullptr ? call.rows * plan.count : 0;
    const std::int64_t means = call.rows * plan.count;
    auto* const memory = static_cast<W*>(
        context.workspace(static_cast<std::size_t>(sums + 4 * parts + 2 * means) * sizeof(W)));
    // Structs come first, because their alignment is larger than that of the sums, whose number may
    // be odd.
    if (sums > 0) call.sums = memory + 4 * parts + 2 * means;
    const Spans<W> spans{.count = plan.count,
                         .length = plan.length,
                         .parts = reinterpret_cast<SpanMoments<W>*>(memory),
                         .means = reinterpret_cast<Means<W>*>(memory + 4 * parts)};
    const LaunchShape shape{.grid = {plan.count, smaller(max_blocks, plan.groups)},
                            .block = threads,
                            .shared_bytes = sizeof(SplitShared<W>),
                            .dependent = can_depend(context)};
    if (call.rstd == nullptr) launch(context, shape, norm_backward_span_moments<T>, call, spans);
    launch(context, shape, norm_backward_span_sums<T>, call, spans);
    // dx comes last, because it may overwrite dy or x.
    launch(context, shape, norm_backward_split_rows<T>, call, spans);
    if (wants_sums(args)) launch_finish(context, call, can_depend(context));
  });
}

const Rung<NormBackward> self{{.name = "split_rows",
                               .after = "block_per_row",
                               .backend = device_backend,
                               .supports = supports,
                               .passes = {.loads = 2, .stores = 1},
                               .work = work,
                               .run = run}};

}  // namespace
}  // namespace rung
