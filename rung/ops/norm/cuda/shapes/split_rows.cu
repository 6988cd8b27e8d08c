// SPDX-License-Identifier: Apache-2.0
// norm / split rows
//
// Idea     Split a few long rows into spans of one block each: one kernel computes the moments of
//          every span about its own mean; a second one moves the moments of a row to one center,
//          adds them up, and writes y.
// Changes  against warp_per_row: one row can fill the GPU. Against registers_single_read and
//          cluster_rows: rows of any length at any address.
// Cost     x is read three times, the second and third time from L1 or L2 if it fits; two launches.
// Limits   Contiguous rows. Many short rows leave most of a block idle.
// Source   T. Chan, G. Golub & R. LeVeque 1983, Algorithms for computing the sample variance, for
//          combining moments.
#include "rung/core/bounds.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/row/row_spans.hpp"
#include "rung/ops/norm/shared/cuda/parts.hpp"

namespace rung {
namespace {

using namespace norm_cuda;

constexpr int threads = 256;

/// Partition of rows into spans, and the partial results, [rows][spans].
template <class W>
struct Spans {
  std::int64_t count;
  std::int64_t length;  // packs
  WarpPart<W>* parts;
};

template <class W>
struct Shared {
  WarpValues<W, threads> sums;
  WarpValues<Moments<W>, threads> moments;
};

/// Range of a row's packs that this block owns.
template <class T>
struct Span {
  std::int64_t begin;
  std::int64_t end;

  template <class W>
  __device__ __forceinline__ Span(const PackedRow<T>& row, const Spans<W>& spans)
      : begin(std::int64_t{blockIdx.x} * spans.length),
        end(smaller(row.packs(), begin + spans.length)) {}
  /// Returns the number of elements in these packs: the first and the last pack of a row may be
  /// partial.
  [[nodiscard]] __device__ __forceinline__ std::int64_t elements(const PackedRow<T>& row) const {
    const std::int64_t from = larger<std::int64_t>(begin * vector_width<T> - row.lead, 0);
    const std::int64_t to = smaller(end * vector_width<T> - row.lead, row.call.n);
    return larger<std::int64_t>(to - from, 0);
  }
};

template <class T, class W = Accumulator<T>>
__global__ void __launch_bounds__(threads)
    norm_span_moments(const __grid_constant__ NormArguments<T> call, Spans<W> spans) {
  start_dependent();
  constexpr int width = vector_width<T>;
  auto& scratch = shared<Shared<W>>();
  for (std::int64_t row = blockIdx.y; row < call.rows; row += gridDim.y) {
    const PackedRow<T> packed(call, row);
    const Span<T> span(packed, spans);
    const auto count = static_cast<W>(span.elements(packed));
    W center = 0;
    if (call.layer || call.residual != nullptr) {
      W sum = 0;
#pragma unroll 2
      for (std::int64_t pack = span.begin + threadIdx.x; pack < span.end; pack += threads) {
        const Pack<T, width> s = packed.first(pack, true);
#pragma unroll
        for (int i = 0; i < width; ++i) {
          sum += convert<W>(s[i]) * call.factors.shrink;  // zero past the row
        }
      }
      sum = block_reduce(sum, Plus{}, W{0}, scratch.sums);
      if (call.layer && count > 0) center = center_near(sum / (count * call.factors.shrink));
    }
    Moments<W> moments{};
#pragma unroll 2
    for (std::int64_t pack = span.begin + threadIdx.x; pack < span.end; pack += threads) {
      const Pack<T, width> s = packed.again(pack);
      const bool whole = packed.whole(pack);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        if (whole || packed.exists(pack, i)) {
          moments.add(convert<W>(s[i]) - center, call.factors.shrink);
        }
      }
    }
    moments = block_reduce(moments, AddMoments{}, Moments<W>{}, scratch.moments);
    if (threadIdx.x == 0) {
      spans.parts[row * spans.count + blockIdx.x] = {center, count, moments};
    }
  }
}

/// Returns the moments of a row about its mean, combined from its parts, and sets `center` to the
/// mean; valid in every lane of the calling warp.
template <class Arguments, class W>
__device__ __forceinline__ Moments<W> join_about_mean(const Arguments& call,
                                                      const WarpPart<W>* parts, std::int64_t count,
                                                      W& center) {
  W sum = 0;
#pragma unroll 1
  for (std::int64_t i = lane_of_thread(); i < count; i += warp_size) {
    sum += parts[i].count * call.factors.shrink * parts[i].center;
  }
  center = call.layer ? warp_reduce(sum, Plus{}) * call.factors.shrunk_part : W{0};
  Moments<W> moments{};
#pragma unroll 1
  for (std::int64_t i = lane_of_thread(); i < count; i += warp_size) {
    const WarpPart<W> part = parts[i];
    moments = AddMoments{}(moments,
                           moved_by(part.moments, part.center - center, part.count, call.factors));
  }
  return warp_reduce(moments, AddMoments{});
}

template <class T, class W = Accumulator<T>>
__global__ void __launch_bounds__(threads)
    norm_split_rows(const __grid_constant__ NormArguments<T> call, Spans<W> spans) {
  start_dependent();
  for (std::int64_t row = blockIdx.y; row < call.rows; row += gridDim.y) {
    const PackedRow<T> packed(call, row);
    const Span<T> span(packed, spans);
    W center = 0;
    const Moments<W> moments =
        join_about_mean(call, spans.parts + row * spans.count, spans.count, center);
    const bool writes = blockIdx.x == 0 && threadIdx.x == 0;
    const Scale<W> scale = scale_of(call, packed.at, center, moments, writes);
    for (std::int64_t first = span.begin + threadIdx.x; first < span.end; first += 2 * threads) {
      // Load both before the first store, which may alias the second.
      const std::int64_t second = first + threads;
      const auto s = words_of<T>(packed.again(first));
      if (second >= span.end) {
        packed.write(first, s, scale);
        break;
      }
      const auto next = words_of<T>(packed.again(second));
      packed.write(first, s, scale);
      packed.write(second, next, scale);
    }
  }
}

RowSpans spans_of(const Norm::Args& args, const Context& context) {
  const auto width = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  return cut_rows(args.rows(), args.columns() / width + 2, threads, context);  // cut at either end
}

Work work(const Norm::Args& args, const Context& context) {
  const RowSpans spans = spans_of(args, context);
  return in_launches(
      2, span_work(spans, threads, ceil_div(spans.length, threads), pack_path(args), 64));
}

void run(const Norm::Args& args, Context& context) {
  constexpr std::int64_t max_blocks = 0xffff;
  const RowSpans plan = spans_of(args, context);
  with_call(args, [&]<class T>(const NormArguments<T>& call) {
    using W = Accumulator<T>;
    const Spans<W> spans{
        .count = plan.count,
        .length = plan.length,
        .parts = static_cast<WarpPart<W>*>(context.workspace(
            static_cast<std::size_t>(call.rows * plan.count) * sizeof(WarpPart<W>)))};
    const LaunchShape shape{.grid = {plan.count, smaller(max_blocks, call.rows)},
                            .block = threads,
                            .shared_bytes = sizeof(Shared<W>),
                            .dependent = can_depend(context)};
    launch(context, shape, norm_span_moments<T>, call, spans);
    launch(context, shape, norm_split_rows<T>, call, spans);
  });
}

const Rung<Norm> self{{.name = "split_rows",
                       .after = "warp_per_row",
                       .backend = device_backend,
                       .supports = require_contiguous_rows,
                       .passes = {.loads = 3, .stores = 1},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
