// SPDX-License-Identifier: Apache-2.0
// softmax / short rows
//
// Idea     where rows follow one another, a block copies many of them as one piece of memory, into
//          shared memory and out of it, 16 bytes at a time, wherever rows begin. A row has the
//          fewest lanes, from one to a warp, that leave at most 16 or 32 elements per lane, in
//          registers, and still fill the GPU.
// Changes  against warp_per_row: rows of a few elements do not leave most of a warp idle, and rows
//          of odd lengths are not loaded by elements; one read of x. A lane costs about as much as
//          an element does: a row of 13 elements is cheapest with one.
// Cost     1 read and 1 write per element, and twice as much of shared memory; a shuffle for each
//          halving of the lanes of a row, twice.
// Limits   rows of 2 to 1024 elements that follow one another in all tensors, and are short, or do
//          not begin at multiples of 16 bytes; results of the type of x.
#include "rung/device/row_chunk.hpp"
#include "rung/device/waiting.hpp"
#include "rung/ops/softmax/cuda/detail/softmax.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

constexpr int threads = 256;

/// A lane has elements lane, lane + lanes ... of a row, up to `kept` of them.
template <int kept, class T>
__global__ void __launch_bounds__(threads)
    softmax_short_rows(const T* all_x, T* all_y, RowChunks chunks, Accumulator<T> scale, bool log) {
  using Sum = Accumulator<T>;
  const std::int64_t first = std::int64_t{blockIdx.x} * chunks.group;
  const int rows = static_cast<int>(smaller<std::int64_t>(chunks.group, chunks.rows - first));
  const int count = rows * chunks.length;
  const int rounds = chunks.rounds();
  const T* const x = all_x + first * chunks.length;
  T* const staged = behind_as(&shared<T>(), x);
  copy_in(staged, x, count);
  ptx::async_wait_all();
  __syncthreads();
  for_each_row_of(chunks, rows, [&](int begin, int lane) {
    Sum values[kept];
    Sum maximum = no_maximum<Sum>;
#pragma unroll
    for (int k = 0; k < kept; ++k) {
      if (k >= rounds) break;
      const int i = lane + k * chunks.lanes;
      // Elements beyond the row are -infinity, whose exponential is 0.
      values[k] = -std::numeric_limits<Sum>::infinity();
      if (i < chunks.length) values[k] = convert<Sum>(staged[begin + i]);
      maximum = Larger{}(maximum, values[k]);
    }
    maximum = lanes_reduce(maximum, Larger{}, chunks.lanes);
    Sum sum = 0;
#pragma unroll
    for (int k = 0; k < kept; ++k) {
      if (k >= rounds) break;
      values[k] = (values[k] - maximum) * scale;
      const Sum raised = fast_exp(values[k]);
      sum += raised;
      if (!log) values[k] = raised;
    }
    sum = lanes_reduce(sum, Plus{}, chunks.lanes);
    const Sum last = log ? logarithm(sum) : reciprocal(sum);
#pragma unroll
    for (int k = 0; k < kept; ++k) {
      const int i = lane + k * chunks.lanes;
      if (i >= chunks.length) break;
      staged[begin + i] = convert<T>(log ? values[k] - last : values[k] * last);
    }
  });
  __syncthreads();
  copy_out(all_y + first * chunks.length, staged, count);
}

constexpr int longest = 1024;

Support supports(const Softmax::Args& args, const Context&) {
  if (args.x.dtype != args.y.dtype) return unsupported("the result's type must be that of x");
  if (args.length() < 2 || args.length() > longest)
    return unsupported("rows of 2 to 1024 elements");
  bool follow = args.rows.are_contiguous() && args.rows.others.rank <= 1;
  for (int tensor = 0; tensor < 2 && args.count() > 1; ++tensor) {
    follow = follow && args.rows.others.strides[tensor][0] == args.length();
  }
  if (!follow) return unsupported("rows must follow one another");
  const std::int64_t bytes = args.length() * static_cast<std::int64_t>(size_of(args.x.dtype));
  constexpr std::int64_t short_bytes = 128;
  const bool odd = bytes % 16 != 0 || reinterpret_cast<std::uintptr_t>(args.x.data) % 16 != 0;
  if (!odd && bytes > short_bytes) {
    return unsupported("rows from multiples of 16 bytes on are longer than 128 bytes");
  }
  return args.count() < std::int64_t{1} << 40 ? supported : unsupported("2^40 rows and more");
}

RowChunks chunks_of(const Softmax::Args& args, const Context& context) {
  const int kept = args.length() <= 256 ? 16 : 32;  // elements that a lane has at most
  const int group_bytes = kept > 16 ? 32 << 10 : 16 << 10;
  return short_row_chunks(args.count(), static_cast<int>(args.length()), size_of(args.x.dtype),
                          kept, threads, group_bytes, context);
}

double estimate(const Softmax::Args& args, const Context& context) {
  // A lane costs some 0.4 ns of an SM, and each of its elements as much; a block's loops run over
  // the elements of a lane.
  const RowChunks chunks = chunks_of(args, context);
  const double element = args.x.dtype == DType::f64 ? 1e-9 : 0.37e-9;
  const double lanes = static_cast<double>(chunks.group) * chunks.lanes;
  return waiting_seconds(
      Softmax::cost(args),
      {.bandwidth = 0.88,
       .blocks = static_cast<double>(ceil_div(chunks.rows, std::int64_t{chunks.group})),
       .blocks_per_sm = 6,
       .rounds = lanes / threads,
       .fixed = 1e-6,
       .round = 0.3e-6 + chunks.rounds() * 0.15e-6,
       .busy = lanes * (0.4e-9 + chunks.rounds() * element)},
      context);
}

template <int kept>
void launch_short_rows(const Softmax::Args& args, const RowChunks& chunks, Context& context) {
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    const auto elements = static_cast<std::size_t>(chunks.group) * chunks.length;
    const LaunchShape config{.grid = ceil_div(chunks.rows, std::int64_t{chunks.group}),
                             .block = threads,
                             .shared_bytes = round_up(elements * sizeof(T), std::size_t{16}) + 16};
    const auto scale = static_cast<Accumulator<T>>(args.scale);
    const auto p = call_of<T, T>(args);
    launch(context, config, softmax_short_rows<kept, T>, p.x, p.y, chunks, scale, args.log);
  });
}

void run(const Softmax::Args& args, Context& context) {
  if (args.empty()) return;
  // One instance per number of elements: a larger one fetches instructions only to skip them.
  const RowChunks chunks = chunks_of(args, context);
  const int rounds = chunks.rounds();
  if (rounds <= 4) return launch_short_rows<4>(args, chunks, context);
  if (rounds <= 16) return launch_short_rows<16>(args, chunks, context);
  launch_short_rows<32>(args, chunks, context);
}

const Rung<Softmax> self{{.name = "short_rows",
                          .after = "warp_per_row",
                          .backend = device_backend,
                          .supports = supports,
                          .passes = {.loads = 1, .stores = 1},
                          .estimate = estimate,
                          .run = run}};

}  // namespace
}  // namespace rung
