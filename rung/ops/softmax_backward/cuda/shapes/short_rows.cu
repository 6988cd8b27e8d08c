// SPDX-License-Identifier: Apache-2.0
// softmax_backward / short rows
//
// Idea     Adjacent short rows: a block copies a contiguous chunk of many rows into and out of
//          shared memory, 16 bytes at a time, regardless of row boundaries. A row uses the fewest
//          lanes, from one to a warp, that leave at most 16 or 32 elements per lane and still fill
//          the GPU.
// Changes  against warp_per_row: short rows do not leave most of a warp idle, rows of odd lengths
//          use vector loads, and y and dy are read once.
// Cost     1 load each of y and dy and 1 store per element, and twice that traffic in shared
//          memory; log2(lanes) shuffles per row.
// Limits   Rows of 2 to 1024 elements, contiguous one after another in all tensors, that are short
//          or not 16-byte aligned; dx of the type of y.
#include "rung/device/row_chunk.hpp"
#include "rung/ops/softmax_backward/cuda/detail/softmax_backward.hpp"

namespace rung {
namespace {

using namespace softmax_backward_cuda;

/// Computes short rows; lane l of a row holds elements l, l + lanes, ..., at most `kept` of them.
template <int kept, class T>
__global__ void __launch_bounds__(row_chunk_threads)
    softmax_backward_short_rows(const T* all_y, const T* all_dy, T* all_dx, RowChunks chunks,
                                Accumulator<T> scale, bool log) {
  using Sum = Accumulator<T>;
  const RowChunk chunk(chunks);
  const int rounds = chunks.rounds();
  const T* const y = all_y + chunk.offset;
  const T* const dy = all_dy + chunk.offset;
  T* const memory = &shared<T>();
  T* const staged = behind_as(memory, y);
  T* const gradients = behind_as(memory + chunks.bytes<T>() / static_cast<int>(sizeof(T)), dy);
  copy_in(staged, y, chunk.count);
  copy_in(gradients, dy, chunk.count);
  ptx::async_wait_all();
  __syncthreads();
  for_each_row_of(chunks, chunk.rows, [&](int begin, int lane) {
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
  copy_out(all_dx + chunk.offset, gradients, chunk.count);
}

Support supports(const SoftmaxBackward::Args& args, const Context&) {
  if (args.y.dtype != args.dx.dtype) return unsupported("the result's type must be that of y");
  return require_row_chunks(args.rows, args.y.data, size_of(args.y.dtype));
}

RowChunks chunks_of(const SoftmaxBackward::Args& args, const Context& context) {
  return short_row_groups(args.count(), args.length(), size_of(args.y.dtype), 2, context);
}

Work work(const SoftmaxBackward::Args& args, const Context& context) {
  const RowChunks chunks = chunks_of(args, context);
  const double bytes = 2 * chunks.bytes(size_of(args.y.dtype));
  return in_shared(context.info().shared_per_sm / bytes,
                   row_chunk_work(chunks, type_path(args.y.dtype)));
}

void run(const SoftmaxBackward::Args& args, Context& context) {
  if (args.empty()) return;
  const RowChunks chunks = chunks_of(args, context);
  with_kept_elements(chunks, [&]<int kept>() {
    visit<float, double, f16, bf16>(args.y.dtype, [&]<class T>() {
      const auto p = call_of<T, T>(args);
      launch_row_chunks(context, chunks, 2 * chunks.bytes<T>(),
                        softmax_backward_short_rows<kept, T>, p.y, p.dy, p.dx, chunks, p.scale,
                        p.log);
    });
  });
}

const Rung<SoftmaxBackward> self{{.name = "short_rows",
                                  .after = "warp_per_row",
                                  .backend = device_backend,
                                  .supports = supports,
                                  .passes = {.loads = 1, .stores = 1},
                                  .work = work,
                                  .run = run}};

}  // namespace
}  // namespace rung
