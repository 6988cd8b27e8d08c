// SPDX-License-Identifier: Apache-2.0
// norm / short rows
//
// Idea     Adjacent short rows: a block copies a contiguous chunk of many rows into and out of
//          shared memory, 16 bytes at a time, regardless of row boundaries. A row uses the fewest
//          lanes, from one to a warp, that leave at most 16 or 32 elements per lane in registers
//          and still fill the GPU.
// Changes  against warp_per_row: short rows do not leave most of a warp idle, rows of odd lengths
//          use vector loads, and x is read once.
// Cost     1 load and 1 store per element, and twice that traffic in shared memory; three
//          reductions of log2(lanes) shuffles per row; gamma and beta once per block.
// Limits   Rows of 1 to 1024 elements, contiguous one after another in all tensors, that are short
//          or not 16-byte aligned; gamma and beta contiguous.
#include "rung/device/row_chunk.hpp"
#include "rung/ops/norm/shared/cuda/norm.hpp"

namespace rung {
namespace {

using namespace norm_cuda;

/// Computes short rows; lane l of a row holds elements l, l + lanes, ..., at most `kept` of them.
template <int kept, class T>
__global__ void __launch_bounds__(row_chunk_threads)
    norm_short_rows(const __grid_constant__ NormArguments<T> call, RowChunks chunks,
                    int weights_at) {
  using W = Accumulator<T>;
  const RowChunk chunk(chunks);
  const int rounds = chunks.rounds();
  T* const memory = &shared<T>();
  T* const staged = behind_as(memory, call.x + chunk.offset);  // x, and then y
  T* sums = nullptr;                                           // the residual, and then the sum
  copy_in(staged, call.x + chunk.offset, chunk.count);
  if (call.residual != nullptr) {
    sums = behind_as(memory + chunks.bytes<T>() / static_cast<int>(sizeof(T)),
                     call.residual + chunk.offset);
    copy_in(sums, call.residual + chunk.offset, chunk.count);
  }
  // Load gamma and beta once for all rows of the block while the copies are in flight.
  auto* const gamma = reinterpret_cast<W*>(reinterpret_cast<unsigned char*>(memory) + weights_at);
  W* const beta = gamma + chunks.length;
  for (int i = static_cast<int>(threadIdx.x); i < chunks.length; i += row_chunk_threads) {
    gamma[i] = weight(call, call.gamma, i, W{1});
    beta[i] = weight(call, call.beta, i, W{0});
  }
  ptx::async_wait_all();
  __syncthreads();
  for_each_row_of(chunks, chunk.rows, [&](int begin, int lane) {
    W values[kept];
    W sum = 0;
#pragma unroll
    for (int k = 0; k < kept; ++k) {
      if (k >= rounds) break;
      const int i = lane + k * chunks.lanes;
      values[k] = 0;
      if (i >= chunks.length) continue;
      T s = staged[begin + i];
      if (sums != nullptr) {
        s = add(s, sums[begin + i]);
        sums[begin + i] = s;
      }
      values[k] = convert<W>(s);
      sum += values[k] * call.factors.shrink;
    }
    W center = 0;
    if (call.layer) {
      center = center_near(lanes_reduce(sum, Plus{}, chunks.lanes) * call.factors.shrunk_part);
    }
    Moments<W> moments{};
#pragma unroll
    for (int k = 0; k < kept; ++k) {
      if (k >= rounds) break;
      if (lane + k * chunks.lanes < chunks.length) {
        moments.add(values[k] - center, call.factors.shrink);
      }
    }
    moments = lanes_reduce(moments, AddMoments{}, chunks.lanes);
    const Scale<W> scale = scale_about(call, center, moments);
    if (lane == 0) {
      const auto row = static_cast<int>(chunk.first) + begin / chunks.length;
      write_statistics<true>(call, row, center, moments, scale.rstd);
    }
#pragma unroll
    for (int k = 0; k < kept; ++k) {
      const int i = lane + k * chunks.lanes;
      if (i >= chunks.length) break;
      const W z = (values[k] - scale.center) * scale.rstd + scale.shift;
      staged[begin + i] = convert<T>(z * gamma[i] + beta[i]);
    }
  });
  __syncthreads();
  copy_out(call.y + chunk.offset, staged, chunk.count);
  if (call.sum != nullptr) copy_out(call.sum + chunk.offset, sums, chunk.count);
}

Support supports(const Norm::Args& args, const Context&) {
  const norm_lines::Lines lines = norm_lines::lines_of(args);
  const std::int64_t length = args.columns();
  if (length < 1 || length > longest_chunked_row) return unsupported("rows of 1 to 1024 elements");
  if (!lines.contiguous_columns()) return unsupported("rows, gamma and beta must be contiguous");
  bool follow = lines.rows.rank <= 1;
  for (const int tensor :
       {norm_lines::row_x, norm_lines::row_residual, norm_lines::row_y, norm_lines::row_sum}) {
    follow = follow && (args.rows() <= 1 || lines.rows.strides[tensor][0] == length);
  }
  if (!follow) return unsupported("rows must follow one another");
  if (args.rows() > 0x7fffffff) return unsupported("2^31 rows and more");
  return require_short_or_odd_rows(length * static_cast<std::int64_t>(size_of(args.x.dtype)),
                                   args.x.data);
}

RowChunks chunks_of(const Norm::Args& args, const Context& context) {
  const int staged = args.residual.data != nullptr ? 2 : 1;
  return short_row_groups(args.rows(), args.columns(), size_of(args.x.dtype), staged, context);
}

Work work(const Norm::Args& args, const Context& context) {
  return row_chunk_work(chunks_of(args, context), type_path(args.x.dtype));
}

void run(const Norm::Args& args, Context& context) {
  const RowChunks chunks = chunks_of(args, context);
  with_kept_elements(chunks, [&]<int kept>() {
    with_call(args, [&]<class T>(const NormArguments<T>& call) {
      const int weights_at = (call.residual != nullptr ? 2 : 1) * chunks.bytes<T>();
      const int weight_bytes = 2 * static_cast<int>(sizeof(Accumulator<T>)) * chunks.length;
      launch_row_chunks(context, chunks, weights_at + weight_bytes, norm_short_rows<kept, T>, call,
                        chunks, weights_at);
    });
  });
}

const Rung<Norm> self{{.name = "short_rows",
                       .after = "warp_per_row",
                       .backend = device_backend,
                       .supports = supports,
                       .passes = {.loads = 1, .stores = 1},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
