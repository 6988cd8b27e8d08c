// SPDX-License-Identifier: Apache-2.0
// Few long rows cut into spans, one block each, so that they fill the device: one kernel reduces
// every span to a value in global memory, a second one combines the values of a row and writes.
//
// Shapes   any strides. A block has a span of `across` rows: 1, or up to 32 adjacent ones, so that
//          both memory orders are read in full sectors. Grid (spans of a row, groups of rows),
//          block (across, row_span_threads / across); a loop over blockIdx.y covers further groups.
// Owners   the threads with the same threadIdx.x share a row; each of them gets its reductions.
// Cost     the operands are read twice, from L2 the second time where they fit; two launches.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/context.hpp"
#include "rung/core/integer.hpp"
#include "rung/core/rows.hpp"
#include "rung/device/collectives.hpp"
#include "rung/device/rows.hpp"

namespace rung::inline RUNG_TARGET {

inline constexpr int row_span_threads = 256;
inline constexpr int row_span_warps = row_span_threads / warp_size;

/// The partition of rows into spans.
struct RowSpans {
  std::int64_t run;     // adjacent rows in succession
  std::int64_t groups;  // of `across` rows, none of which crosses a run
  std::int64_t count;   // spans per row
  std::int64_t length;  // elements per span
};

/// The elements of this block's span: [begin, begin + length) of every row.
struct RowSpan {
  std::int64_t begin;
  std::int64_t length;
  __device__ __forceinline__ RowSpan(const RowSpans& spans, std::int64_t row_length)
      : begin(std::int64_t{blockIdx.x} * spans.length),
        length(smaller(spans.length, row_length - begin)) {}
};

/// Returns the row of this thread in a group; rows.count() if there is none.
template <int N>
__device__ __forceinline__ std::int64_t row_of_group(const Rows<N>& rows, const RowSpans& spans,
                                                     std::int64_t group) {
  const int across = static_cast<int>(blockDim.x);
  const std::int64_t groups_per_run = ceil_div(spans.run, std::int64_t{across});
  const std::int64_t place = group % groups_per_run * across + threadIdx.x;
  return place < spans.run ? group / groups_per_run * spans.run + place : rows.count();
}

/// One value per warp and row of the block.
template <class T>
struct RowSpanValues {
  T of_warp[row_span_warps][warp_size];
};

/// Returns f over the values of the threads of a row, in each of them: lanes of a warp, then warps.
/// f must commute; called by all threads of the block.
template <class T, class F>
__device__ __forceinline__ T row_span_reduce(T value, F f, RowSpanValues<T>& values) {
  const int across = static_cast<int>(blockDim.x);
  const int thread = static_cast<int>(threadIdx.y) * across + static_cast<int>(threadIdx.x);
  for (int distance = across; distance < warp_size; distance *= 2) {
    value = f(value, shuffle_xor(value, distance));
  }
  if (thread % warp_size < across) values.of_warp[thread / warp_size][thread % warp_size] = value;
  __syncthreads();
  value = values.of_warp[0][threadIdx.x];
#pragma unroll
  for (int warp = 1; warp < row_span_warps; ++warp) {
    value = f(value, values.of_warp[warp][threadIdx.x]);
  }
  __syncthreads();  // the buffer may be used again
  return value;
}

// --- on the host ---------------------------------------------------------------------------------

/// Cuts each of `rows` rows, or groups of rows, into spans: multiples of `step` long, at most 256
/// per row, and four blocks per SM.
inline RowSpans cut_rows(std::int64_t rows, std::int64_t length, int step, const Context& context) {
  const std::int64_t wanted =
      clamped(ceil_div(std::int64_t{4} * context.info().sms, larger(rows, std::int64_t{1})),
              std::int64_t{1}, std::int64_t{256});
  RowSpans spans{.run = 1, .groups = rows, .count = 1, .length = 0};
  spans.length = round_up(ceil_div(length, wanted), std::int64_t{step});
  spans.count = ceil_div(length, spans.length);
  return spans;
}

struct RowSpanLaunch {
  int across;  // rows per block
  RowSpans spans;
};

/// Cuts rows into spans: four blocks per SM, each with at least `batch` elements per thread.
template <int N>
RowSpanLaunch row_spans(const Rows<N>& rows, int batch, const Context& context) {
  RowSpanLaunch launch{.across = 1, .spans = {.run = 1, .groups = 0, .count = 1, .length = 0}};
  RowSpans& spans = launch.spans;
  if (rows.are_adjacent() && !rows.are_contiguous()) spans.run = rows.run();
  while (launch.across < warp_size && launch.across < spans.run) launch.across *= 2;
  spans.groups = rows.count() / larger(spans.run, std::int64_t{1}) *
                 ceil_div(spans.run, std::int64_t{launch.across});
  constexpr std::int64_t most = 512;
  const std::int64_t wanted =
      clamped(ceil_div(std::int64_t{4} * context.info().sms, larger(spans.groups, std::int64_t{1})),
              std::int64_t{1}, most);
  const std::int64_t least = std::int64_t{batch} * row_span_threads / launch.across;
  spans.length = larger(ceil_div(rows.length, wanted), least);
  spans.count = larger(ceil_div(rows.length, spans.length), std::int64_t{1});
  return launch;
}

/// The grid's second axis, which passes over further groups.
inline constexpr std::int64_t max_span_groups = 0xffff;

/// Returns the facts of kernels of `threads` threads per block, whose threads make `trips` trips
/// per span.
inline Work span_work(const RowSpans& spans, int threads, std::int64_t trips, std::string_view path,
                      int registers = 40) {
  return block_work(spans.count * smaller(spans.groups, max_span_groups), threads,
                    ceil_div(spans.groups, max_span_groups) * trips, path, registers);
}
/// Returns the facts of a pair of such kernels, which have `batch` loads of a thread in flight.
template <int N>
Work row_span_work(const Rows<N>& rows, const RowSpanLaunch& plan, int batch) {
  const std::int64_t trips = ceil_div(plan.spans.length * plan.across, batch * row_span_threads);
  return in_launches(2, span_work(plan.spans, row_span_threads, trips,
                                  rows.are_contiguous() ? ""
                                  : plan.across >= 8    ? "adjacent"
                                                        : "strided"));
}

}  // namespace rung::inline RUNG_TARGET
