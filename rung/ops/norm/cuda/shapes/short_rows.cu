// SPDX-License-Identifier: Apache-2.0
// norm / short rows
//
// Idea     where rows follow one another, a block takes many of them as one piece of memory: into
//          shared memory and out of it by 16 bytes, wherever rows begin. There a row has as few
//          lanes, from one to a warp, as leave none with more than 16 or 32 elements, which it
//          keeps in registers, and as occupy the GPU.
// Changes  against warp_per_row: rows of a few elements do not leave most of a warp idle, and rows
//          of odd lengths are not loaded by elements; one read of x.
// Cost     1 read and 1 write per element, and twice as much of shared memory; three shuffles for
//          each halving of the lanes of a row; gamma and beta once per block.
// Limits   rows of 1 to 1024 elements that follow one another in all tensors, and are short, or do
//          not begin at multiples of 16 bytes; gamma and beta contiguous.
// Tried    -
// Source   -
#include "rung/device/row_chunk.hpp"
#include "rung/device/waiting.hpp"
#include "rung/ops/norm/shared/cuda/norm.hpp"

namespace rung {
namespace {

using namespace norm_cuda;

constexpr int threads = 256;

/// Elements lane, lane + lanes ... of a row, up to `kept` of them.
template <int kept, class T>
__global__ void __launch_bounds__(threads)
    norm_short_rows(const __grid_constant__ Call<T> call, RowChunks chunks, int weights_at) {
  using W = Accumulator<T>;
  constexpr int chunk = vector_width<T>;
  const std::int64_t first = std::int64_t{blockIdx.x} * chunks.group;
  const int rows = static_cast<int>(smaller<std::int64_t>(chunks.group, chunks.rows - first));
  const int count = rows * chunks.length;
  const int rounds = chunks.rounds();
  const std::int64_t offset = first * chunks.length;
  T* const memory = &shared<T>();
  T* const staged = behind_as(memory, call.x + offset);  // x, and then y
  T* sums = nullptr;                                     // the residual, and then the sum
  copy_in(staged, call.x + offset, count);
  if (call.residual != nullptr) {
    sums = behind_as(memory + round_up(chunks.group * chunks.length, chunk) + chunk,
                     call.residual + offset);
    copy_in(sums, call.residual + offset, count);
  }
  // gamma and beta come once for all rows of the block, while these are on their way.
  auto* const gamma = reinterpret_cast<W*>(reinterpret_cast<unsigned char*>(memory) + weights_at);
  W* const beta = gamma + chunks.length;
  for (int i = static_cast<int>(threadIdx.x); i < chunks.length; i += threads) {
    gamma[i] = weight(call, call.gamma, i, W{1});
    beta[i] = weight(call, call.beta, i, W{0});
  }
  ptx::async_wait_all();
  __syncthreads();
  for_each_row_of(chunks, rows, [&](int begin, int lane) {
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
      const auto row = static_cast<int>(first) + begin / chunks.length;
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
  copy_out(call.y + offset, staged, count);
  if (call.sum != nullptr) copy_out(call.sum + offset, sums, count);
}

constexpr std::int64_t longest = 1024;

Support supports(const Norm::Args& args, const Context&) {
  const norm_lines::Lines lines = norm_lines::lines_of(args);
  const std::int64_t length = args.columns();
  if (length < 1 || length > longest) return unsupported("rows of 1 to 1024 elements");
  if (!lines.contiguous_columns()) return unsupported("rows, gamma and beta must be contiguous");
  bool follow = lines.rows.rank <= 1;
  for (const int tensor :
       {norm_lines::row_x, norm_lines::row_residual, norm_lines::row_y, norm_lines::row_sum}) {
    follow = follow && (args.rows() <= 1 || lines.rows.strides[tensor][0] == length);
  }
  if (!follow) return unsupported("rows must follow one another");
  const std::int64_t bytes = length * static_cast<std::int64_t>(size_of(args.x.dtype));
  constexpr std::int64_t short_bytes = 128;
  const bool odd = bytes % 16 != 0 || reinterpret_cast<std::uintptr_t>(args.x.data) % 16 != 0;
  if (!odd && bytes > short_bytes) {
    return unsupported("rows from multiples of 16 bytes on are longer than 128 bytes");
  }
  return args.rows() <= 0x7fffffff ? supported : unsupported("2^31 rows and more");
}

RowChunks chunks_of(const Norm::Args& args, const Context& context) {
  const int kept = args.columns() <= 256 ? 16 : 32;  // elements that a lane has at most
  const int group_bytes = kept > 16 ? 32 << 10 : 16 << 10;
  const int tensors = args.residual.data != nullptr ? 2 : 1;  // that come into shared memory
  return short_row_chunks(args.rows(), static_cast<int>(args.columns()), size_of(args.x.dtype),
                          kept, threads, group_bytes / tensors, context);
}

template <int kept>
void launch_short_rows(const Norm::Args& args, const RowChunks& chunks, Context& context) {
  with_call(args, [&]<class T>(const Call<T>& call) {
    const int tensors = call.residual != nullptr ? 2 : 1;
    const auto elements = static_cast<std::size_t>(chunks.group) * chunks.length;
    const std::size_t weights_at = tensors * (round_up(elements * sizeof(T), std::size_t{16}) + 16);
    launch(context,
           {.grid = ceil_div(chunks.rows, std::int64_t{chunks.group}),
            .block = threads,
            .shared_bytes =
                weights_at + 2 * sizeof(Accumulator<T>) * static_cast<std::size_t>(chunks.length)},
           norm_short_rows<kept, T>, call, chunks, static_cast<int>(weights_at));
  });
}

double estimate(const Norm::Args& args, const Context& context) {
  // A lane takes some 0.4 ns of an SM, and for each element as much again; the loops of a block are
  // as long as a lane's elements, too.
  const RowChunks chunks = chunks_of(args, context);
  const double lanes = static_cast<double>(chunks.group) * chunks.lanes;
  return waiting_seconds(
      Norm::cost(args),
      {.bandwidth = 0.85,
       .blocks = static_cast<double>(ceil_div(chunks.rows, std::int64_t{chunks.group})),
       .blocks_per_sm = 6,
       .rounds = lanes / threads,
       .fixed = 1.5e-6,
       .round = 0.3e-6 + chunks.rounds() * 0.2e-6,
       .busy = lanes * (0.4e-9 + chunks.rounds() * 0.4e-9)},
      context);
}

void run(const Norm::Args& args, Context& context) {
  // Code for as many elements as lanes have: of more, much is loaded to be stepped over.
  const RowChunks chunks = chunks_of(args, context);
  const int rounds = chunks.rounds();
  if (rounds <= 4) return launch_short_rows<4>(args, chunks, context);
  if (rounds <= 16) return launch_short_rows<16>(args, chunks, context);
  launch_short_rows<32>(args, chunks, context);
}

const Rung<Norm> self{{.name = "short_rows",
                       .after = "warp_per_row",
                       .backend = device_backend,
                       .supports = supports,
                       .passes = {.loads = 1, .stores = 1},
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
