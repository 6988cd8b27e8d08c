// SPDX-License-Identifier: Apache-2.0
// scan / short lines
//
// Idea     lines are contiguous in memory: a block copies many of them to shared memory and back
//          with 16-byte accesses, at any alignment. In shared memory a line has as many lanes as it
//          needs, from one to a warp.
// Changes  against coarsened and warp_a_line: lines of a few elements do not leave most of a block
//          or warp idle.
// Cost     each element read and written once in global memory, twice in shared memory; log2(lanes)
//          shuffles per round of a line's lanes.
// Limits   lines of 2 to 128 elements, without gaps between them in x and y, in either direction;
//          no segments.
// Source   as warp_shuffle.
#include "rung/device/row_chunk.hpp"
#include "rung/ops/scan/cuda/detail/scan.hpp"

namespace rung {
namespace {
using namespace scan_cuda;

constexpr int threads = 256;
constexpr int rounds = 4;  // elements of a lane: lane, lane + lanes ...

template <class T>
__global__ void __launch_bounds__(threads)
    scan_short_lines(const T* all_x, T* all_y, RowChunks chunks, ScanAny combine,
                     ScanState<T> identity, bool exclusive, bool reverse) {
  using State = ScanState<T>;
  const std::int64_t first = std::int64_t{blockIdx.x} * chunks.group;
  const int lines = static_cast<int>(smaller<std::int64_t>(chunks.group, chunks.rows - first));
  const int count = lines * chunks.length;
  const T* const x = all_x + first * chunks.length;
  T* const staged = behind_as(&shared<T>(), x);
  copy_in(staged, x, count);
  ptx::async_wait_all();
  __syncthreads();
  const int last_lane = chunks.lanes - 1;
  for_each_row_of(chunks, lines, [&](int begin, int lane) {
    const int of_lanes = static_cast<int>(threadIdx.x) % chunks.lanes;
    State carry = identity;
#pragma unroll
    for (int k = 0; k < rounds; ++k) {
      if (k * chunks.lanes >= chunks.length) break;
      const int i = lane + k * chunks.lanes;
      const int at = begin + (reverse ? chunks.length - 1 - i : i);
      State value = i < chunks.length ? convert<State>(staged[at]) : identity;
      for (int distance = 1; distance < chunks.lanes; distance *= 2) {
        const State before = shuffle_up(value, distance, chunks.lanes);
        if (of_lanes >= distance) value = combine(before, value);
      }
      value = combine(carry, value);
      const State before = shuffle_up(value, 1, chunks.lanes);
      const State result = !exclusive ? value : of_lanes == 0 ? carry : before;
      if (i < chunks.length) staged[at] = convert<T>(result);
      carry = shuffle(value, last_lane, chunks.lanes);
    }
  });
  __syncthreads();
  copy_out(all_y + first * chunks.length, staged, count);
}

constexpr std::int64_t longest = 32 * rounds;

/// Returns 1 if lines run forward in memory, -1 if backward, 0 if their elements are strided.
int direction_of(const Scan::Args& args) {
  for (const int direction : {1, -1}) {
    if (args.x_stride() == direction && args.y_stride() == direction) return direction;
  }
  return 0;
}

Support supports(const Scan::Args& args, const Context&) {
  if (args.has_segments()) return unsupported("no segments");
  const std::int64_t length = args.length();
  if (length < 2 || length > longest) return unsupported("lines of 2 to 128 elements");
  const Collapsed<2>& lines = args.lines;
  const bool follow = direction_of(args) != 0 && lines.rank == 1 && lines.strides[0][0] == length &&
                      lines.strides[1][0] == length;
  return follow ? supported : unsupported("several lines must follow one another");
}

RowChunks chunks_of(const Scan::Args& args, const Context& context) {
  constexpr int group_bytes = 16 << 10;
  return row_chunks(args.lines.size(), static_cast<int>(args.length()), size_of(args.x.dtype),
                    rounds, threads, group_bytes, context);
}

Work work(const Scan::Args& args, const Context& context) {
  return row_chunk_work(chunks_of(args, context), line_path(args));
}

void run(const Scan::Args& args, Context& context) {
  if (args.y.empty()) return;
  visit_scanned(args.x.dtype, [&]<class T>() {
    const auto length = static_cast<int>(args.length());
    const bool reverse = direction_of(args) < 0;
    // Reversed lines are addressed by the last of their elements in memory.
    const int back = reverse ? length - 1 : 0;
    const RowChunks chunks = chunks_of(args, context);
    const auto elements = static_cast<std::size_t>(chunks.group) * chunks.length;
    launch(context,
           {.grid = chunks.blocks(),
            .block = threads,
            .shared_bytes = round_up(elements * sizeof(T), std::size_t{16}) + 16},
           scan_short_lines<T>, static_cast<const T*>(args.x.data) - back,
           static_cast<T*>(args.y.data) - back, chunks, ScanAny{args.operation},
           scan_identity<T>(args.operation), args.exclusive, reverse);
  });
}

const Rung<Scan> self{{.name = "short_lines",
                       .after = "coarsened",
                       .backend = device_backend,
                       .supports = supports,
                       .passes = {.loads = 1, .stores = 1},
                       .work = work,
                       .run = run}};
}  // namespace
}  // namespace rung
