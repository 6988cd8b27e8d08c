// SPDX-License-Identifier: Apache-2.0
// softmax_backward / short rows
//
// Idea     where rows follow one another, a block takes many of them as one piece of memory: into
//          shared memory and out of it by 16 bytes, wherever rows begin. There a row has as few
//          lanes, from one to a warp, as leave at most 16 or 32 elements per lane and still fill
//          the GPU.
// Changes  against warp_per_row: rows of a few elements do not leave most of a warp idle, rows of
//          odd lengths are not loaded by elements, and y and dy are read once.
// Cost     1 read and 1 write per element, and twice as much of shared memory; a shuffle for each
//          halving of the lanes of a row.
// Limits   rows of 2 to 1024 elements that follow one another in all tensors, and are short, or do
//          not begin at multiples of 16 bytes; dx of the type of y.
#include "rung/device/row_chunk.hpp"
#include "rung/device/waiting.hpp"
#include "rung/ops/softmax_backward/cuda/detail/softmax_backward.hpp"

namespace rung {
namespace {

using namespace softmax_backward_cuda;

constexpr int threads = 256;

/// A lane has elements lane, lane + lanes ... of a row, up to `kept` of them.
template <int kept, class T>
__global__ void __launch_bounds__(threads)
    softmax_backward_short_rows(const T* all_y, const T* all_dy, T* all_dx, RowChunks chunks,
                                Accumulator<T> scale, bool log) {
  using Sum = Accumulator<T>;
  constexpr int chunk = vector_width<T>;
  const std::int64_t first = std::int64_t{blockIdx.x} * chunks.group;
  const int rows = static_cast<int>(smaller<std::int64_t>(chunks.group, chunks.rows - first));
  const int count = rows * chunks.length;
  const int rounds = chunks.rounds();
  const T* const y = all_y + first * chunks.length;
  const T* const dy = all_dy + first * chunks.length;
  T* const memory = &shared<T>();
  T* const staged = behind_as(memory, y);
  T* const gradients =
      behind_as(memory + round_up(chunks.group * chunks.length, chunk) + chunk, dy);
  copy_in(staged, y, count);
  copy_in(gradients, dy, count);
  ptx::async_wait_all();
  __syncthreads();
  for_each_row_of(chunks, rows, [&](int begin, int lane) {
    Sum values[kept];
    Sum slopes[kept];
    Sum sum = 0;
#pragma unroll
    for (int k = 0; k < kept; ++k) {
      if (k >= rounds) break;
      const int i = lane + k * chunks.lanes;
      const bool exists = i < chunks.length;
      values[k] = exists ? convert<Sum>(staged[begin + i]) : Sum(0);
      slopes[k] = exists ? convert<Sum>(gradients[begin + i]) : Sum(0);
      sum += log ? slopes[k] : slopes[k] * values[k];
    }
    sum = lanes_reduce(sum, Plus{}, chunks.lanes);
#pragma unroll
    for (int k = 0; k < kept; ++k) {
      const int i = lane + k * chunks.lanes;
      if (i >= chunks.length) break;
      gradients[begin + i] = convert<T>(gradient_of(values[k], slopes[k], sum, scale, log));
    }
  });
  __syncthreads();
  copy_out(all_dx + first * chunks.length, gradients, count);
}

constexpr int longest = 1024;

Support supports(const SoftmaxBackward::Args& args, const Context&) {
  if (args.y.dtype != args.dx.dtype) return unsupported("the result's type must be that of y");
  if (args.length() < 2 || args.length() > longest)
    return unsupported("rows of 2 to 1024 elements");
  bool follow = args.rows.are_contiguous() && args.rows.others.rank <= 1;
  for (int tensor = 0; tensor < 3 && args.count() > 1; ++tensor) {
    follow = follow && args.rows.others.strides[tensor][0] == args.length();
  }
  if (!follow) return unsupported("rows must follow one another");
  const std::int64_t bytes = args.length() * static_cast<std::int64_t>(size_of(args.y.dtype));
  constexpr std::int64_t short_bytes = 128;
  const bool odd = bytes % 16 != 0 || reinterpret_cast<std::uintptr_t>(args.y.data) % 16 != 0;
  if (!odd && bytes > short_bytes) {
    return unsupported("rows from multiples of 16 bytes on are longer than 128 bytes");
  }
  return args.count() < std::int64_t{1} << 40 ? supported : unsupported("2^40 rows and more");
}

RowChunks chunks_of(const SoftmaxBackward::Args& args, const Context& context) {
  const int kept = args.length() <= 256 ? 16 : 32;   // elements per lane, at most
  const int bytes = kept > 16 ? 16 << 10 : 8 << 10;  // of y, and as many of dy
  return short_row_chunks(args.count(), static_cast<int>(args.length()), size_of(args.y.dtype),
                          kept, threads, bytes, context);
}

double estimate(const SoftmaxBackward::Args& args, const Context& context) {
  // A lane takes some 0.4 ns of an SM, and for each element as much again; the loops of a block are
  // as long as a lane's elements, too.
  const RowChunks chunks = chunks_of(args, context);
  const double element = args.y.dtype == DType::f64 ? 1e-9 : 0.37e-9;
  const double lanes = static_cast<double>(chunks.group) * chunks.lanes;
  return waiting_seconds(
      SoftmaxBackward::cost(args),
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
void launch_short_rows(const SoftmaxBackward::Args& args, const RowChunks& chunks,
                       Context& context) {
  visit<float, double, f16, bf16>(args.y.dtype, [&]<class T>() {
    const auto elements = static_cast<std::size_t>(chunks.group) * chunks.length;
    const auto p = call_of<T, T>(args);
    launch(context,
           {.grid = ceil_div(chunks.rows, std::int64_t{chunks.group}),
            .block = threads,
            .shared_bytes = 2 * (round_up(elements * sizeof(T), std::size_t{16}) + 16)},
           softmax_backward_short_rows<kept, T>, p.y, p.dy, p.dx, chunks, p.scale, p.log);
  });
}

void run(const SoftmaxBackward::Args& args, Context& context) {
  if (args.empty()) return;
  // Code for as many elements as lanes have: of more, much is loaded to be stepped over.
  const RowChunks chunks = chunks_of(args, context);
  const int rounds = chunks.rounds();
  if (rounds <= 4) return launch_short_rows<4>(args, chunks, context);
  if (rounds <= 16) return launch_short_rows<16>(args, chunks, context);
  launch_short_rows<32>(args, chunks, context);
}

const Rung<SoftmaxBackward> self{{.name = "short_rows",
                                  .after = "warp_per_row",
                                  .backend = device_backend,
                                  .supports = supports,
                                  .passes = {.loads = 1, .stores = 1},
                                  .estimate = estimate,
                                  .run = run}};

}  // namespace
}  // namespace rung
