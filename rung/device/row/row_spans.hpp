// SPDX-License-Identifier: Apache-2.0
// Partition of few long rows into spans, one block per span, to fill the device: one kernel reduces
// every span to a value in global memory, a second kernel combines the values of a row and writes.
//
// Shapes   any strides. A block has a span of `across` rows: 1, or up to 32 adjacent rows, so that
//          row-major and column-major operands are read in full sectors. Grid (spans per row,
//          groups of rows), block (across, row_span_threads / across); kernels loop over further
//          groups.
// Owners   the threads with the same threadIdx.x share a row; each gets the row's reductions.
// Cost     two loads of each operand, the second from L2 if it fits; two launches.
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

/// Partition of rows into spans.
struct RowSpans {
  std::int64_t run;     // rows in a run of adjacent rows
  std::int64_t groups;  // groups of up to `across` rows, each within one run
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

/// Reduces the values of a row's threads by f, which must commute: lanes of a warp, then warps.
/// Returns the result in each of the threads. All threads of the block call it.
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
  __syncthreads();  // the buffer can be reused
  return value;
}

// --- on the host ---------------------------------------------------------------------------------

/// Partitions each of `rows` rows (or groups of rows) into spans of a multiple of `step` elements:
/// at most 256 spans per row, and about four blocks per SM.
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

/// Partitions rows into spans: about four blocks per SM, at most 512 spans per row, and at least
/// `batch` elements per thread.
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

/// Maximum extent of the grid along y; kernels loop over further groups.
inline constexpr std::int64_t max_span_groups = 0xffff;

/// Returns the work of a kernel of `threads` threads per block, whose threads run `trips` dependent
/// loop iterations per span.
inline Work span_work(const RowSpans& spans, int threads, std::int64_t trips, std::string_view path,
                      int registers = 40) {
  return block_work(spans.count * smaller(spans.groups, max_span_groups), threads,
                    ceil_div(spans.groups, max_span_groups) * trips, path, registers);
}
/// Returns the work of the two kernels, with `batch` loads in flight per thread.
template <int N>
Work row_span_work(const Rows<N>& rows, const RowSpanLaunch& plan, int batch) {
  const std::int64_t trips = ceil_div(plan.spans.length * plan.across, batch * row_span_threads);
  return in_launches(2, span_work(plan.spans, row_span_threads, trips,
                                  rows.are_contiguous() ? ""
                                  : plan.across >= 8    ? "adjacent"
                                                        : "strided"));
}

}  // namespace rung::inline RUNG_TARGET
