// SPDX-License-Identifier: Apache-2.0
// softmax / online, across columns
//
// Idea     Along any axis but the last, adjacent elements belong to adjacent rows: a warp handles
//          32 rows, one per lane, and loops over their length. Eight warps of a block split the
//          length and combine their maxima and sums in shared memory.
// Changes  against any_strides: accesses to adjacent rows are coalesced, where any_strides moves
//          eight times the needed bytes.
// Cost     2 loads and 1 store per element.
// Limits   Rows adjacent in all tensors, in runs of at least 8; with 16-bit types a warp moves only
//          64 bytes per load.
#include "rung/core/bounds.hpp"
#include "rung/ops/softmax/cuda/detail/softmax.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

constexpr int lanes = 32;
constexpr unsigned warps = 8;

template <class Sum>
struct Partials {
  Sum maximum[warps][lanes];
  Sum sum[warps][lanes];
};

/// Returns the row of this lane, or rows.count() if none. A block's 32 columns never span two runs.
template <int N>
__device__ __forceinline__ std::int64_t row_of(const Rows<N>& rows, std::int64_t block,
                                               std::int64_t run, std::int64_t blocks_a_run) {
  const std::int64_t column = block % blocks_a_run * lanes + threadIdx.x;
  return column < run ? block / blocks_a_run * run + column : rows.count();
}

template <class P>
__global__ void __launch_bounds__(lanes* warps)
    softmax_online_columns(Rows<2> rows, P p, std::int64_t run, std::int64_t blocks) {
  using Sum = typename P::Sum;
  auto& partials = shared<Partials<Sum>>();
  const std::int64_t blocks_a_run = (run + lanes - 1) / lanes;
  for (std::int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const std::int64_t row = row_of(rows, block, run, blocks_a_run);
    const bool exists = row < rows.count();
    const auto* x = p.x + (exists ? rows.template offset<0>(row) : 0);
    auto* y = p.y + (exists ? rows.template offset<1>(row) : 0);
    Running<Sum> running;
    const std::int64_t length = exists ? rows.length : 0;
    for_each_batch<Sum>(
        x, length, rows.steps[0], threadIdx.y, warps,
        [&](std::int64_t, const Sum(&values)[batch]) { running.add(values, p.scale); });
    partials.maximum[threadIdx.y][threadIdx.x] = running.maximum;
    partials.sum[threadIdx.y][threadIdx.x] = running.sum;
    __syncthreads();
    Sum maximum = no_maximum<Sum>;
    Sum sum = 0;
    for (int w = 0; w < warps; ++w) {
      maximum = Larger{}(maximum, partials.maximum[w][threadIdx.x]);
    }
    for (int w = 0; w < warps; ++w) {
      const Sum down = fast_exp((partials.maximum[w][threadIdx.x] - maximum) * p.scale);
      sum += partials.sum[w][threadIdx.x] * down;
    }
    __syncthreads();  // all warps have read; the next columns may overwrite
    write_results(x, y, length, rows.steps, threadIdx.y, warps, maximum, sum, p.scale, p.log);
  }
}

Support supports(const Softmax::Args& args, const Context&) {
  constexpr std::int64_t min_run = 8;
  if (!args.rows.are_adjacent() || args.rows.run() < min_run) {
    return unsupported("rows must be adjacent, in runs of at least 8");
  }
  if (args.x.dtype != args.y.dtype) return unsupported("the result's type must be that of x");
  return supported;
}

/// Returns the number of blocks, of `lanes` adjacent rows each; a run's last block may be partial.
std::int64_t blocks_of(const Softmax::Args& args) {
  const std::int64_t run = larger(args.rows.run(), std::int64_t{1});
  return args.count() / run * ceil_div(run, std::int64_t{lanes});
}

Work work(const Softmax::Args& args, const Context&) {
  const std::int64_t trips = ceil_div(args.length(), batch * warps);
  return block_work(blocks_of(args), lanes * warps, trips, type_path(args.x.dtype));
}

void run(const Softmax::Args& args, Context& context) {
  constexpr std::int64_t max_blocks = 0x7fffffff;
  if (args.empty()) return;
  const std::int64_t run = args.rows.run();
  const std::int64_t blocks = blocks_of(args);
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    const LaunchShape shape{.grid = smaller(blocks, max_blocks),
                            .block = {lanes, warps},
                            .shared_bytes = sizeof(Partials<Accumulator<T>>)};
    launch(context, shape, softmax_online_columns<SoftmaxCall<T, T>>, args.rows,
           call_of<T, T>(args), run, blocks);
  });
}

const Rung<Softmax> self{{.name = "online_columns",
                          .after = "any_strides",
                          .backend = device_backend,
                          .supports = supports,
                          .passes = {.loads = 2, .stores = 1},
                          .work = work,
                          .run = run}};

}  // namespace
}  // namespace rung
