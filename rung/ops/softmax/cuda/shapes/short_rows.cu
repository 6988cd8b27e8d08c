// SPDX-License-Identifier: Apache-2.0
// softmax / short rows
//
// Idea     Adjacent short rows: a block copies a contiguous chunk of many rows into and out of
//          shared memory, 16 bytes at a time, regardless of row boundaries. A row uses the fewest
//          lanes, from one to a warp, that leave at most 16 or 32 elements per lane in registers
//          and still fill the GPU.
// Changes  against warp_per_row: short rows do not leave most of a warp idle, rows of odd lengths
//          use vector loads, and x is read once. A lane costs about as much as an element: a row of
//          13 elements is cheapest with one lane.
// Cost     1 load and 1 store per element, and twice that traffic in shared memory; two reductions
//          of log2(lanes) shuffles per row.
// Limits   Rows of 2 to 1024 elements, contiguous one after another in all tensors, that are short
//          or not 16-byte aligned; results of the type of x.
#include "rung/device/row_chunk.hpp"
#include "rung/ops/softmax/cuda/detail/softmax.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

/// Computes short rows; lane l of a row holds elements l, l + lanes, ..., at most `kept` of them.
template <int kept, class T>
__global__ void __launch_bounds__(row_chunk_threads)
    softmax_short_rows(const T* all_x, T* all_y, RowChunks chunks, Accumulator<T> scale, bool log) {
  using Sum = Accumulator<T>;
  const RowChunk chunk(chunks);
  const int rounds = chunks.rounds();
  const T* const x = all_x + chunk.offset;
  T* const staged = behind_as(&shared<T>(), x);
  copy_in(staged, x, chunk.count);
  ptx::async_wait_all();
  __syncthreads();
  for_each_row_of(chunks, chunk.rows, [&](int begin, int lane) {
    Sum values[kept];
    Sum maximum = no_maximum<Sum>;
#pragma unroll
    for (int k = 0; k < kept; ++k) {
      if (k >= rounds) break;
      const int i = lane + k * chunks.lanes;
      // Elements past the row are -infinity, whose exponential is 0.
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
  copy_out(all_y + chunk.offset, staged, chunk.count);
}

Support supports(const Softmax::Args& args, const Context&) {
  if (args.x.dtype != args.y.dtype) return unsupported("the result's type must be that of x");
  return require_row_chunks(args.rows, args.x.data, size_of(args.x.dtype));
}

RowChunks chunks_of(const Softmax::Args& args, const Context& context) {
  return short_row_groups(args.count(), args.length(), size_of(args.x.dtype), 1, context);
}

Work work(const Softmax::Args& args, const Context& context) {
  return row_chunk_work(chunks_of(args, context), type_path(args.x.dtype));
}

void run(const Softmax::Args& args, Context& context) {
  if (args.empty()) return;
  const RowChunks chunks = chunks_of(args, context);
  with_kept_elements(chunks, [&]<int kept>() {
    visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
      const auto p = call_of<T, T>(args);
      launch_row_chunks(context, chunks, chunks.bytes<T>(), softmax_short_rows<kept, T>, p.x, p.y,
                        chunks, p.scale, p.log);
    });
  });
}

const Rung<Softmax> self{{.name = "short_rows",
                          .after = "warp_per_row",
                          .backend = device_backend,
                          .supports = supports,
                          .passes = {.loads = 1, .stores = 1},
                          .work = work,
                          .run = run}};

}  // namespace
}  // namespace rung
