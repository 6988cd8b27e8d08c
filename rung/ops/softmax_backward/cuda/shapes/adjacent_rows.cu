// SPDX-License-Identifier: Apache-2.0
// softmax_backward / adjacent rows
//
// Idea     Along any axis but the last, adjacent elements belong to adjacent rows: a warp handles
//          32 rows, one per lane, and loops over their length. Eight warps of a block split the
//          length and add their sums in shared memory.
// Changes  against any_strides: accesses to adjacent rows are coalesced, where any_strides moves
//          eight times the needed bytes.
// Cost     2 loads each of y and dy and 1 store per element.
// Limits   Rows adjacent in all tensors, in runs of at least 8; dx of the type of y. With 16-bit
//          types a warp moves only 64 bytes per load.
#include "rung/core/integer.hpp"
#include "rung/ops/softmax_backward/cuda/detail/softmax_backward.hpp"

namespace rung {
namespace {

using namespace softmax_backward_cuda;

constexpr int lanes = 32;
constexpr unsigned warps = 8;

template <class Sum>
struct WarpSums {
  Sum sum[warps][lanes];
};

template <class P>
__global__ void __launch_bounds__(lanes* warps)
    softmax_backward_columns(Rows<3> rows, P p, std::int64_t run, std::int64_t blocks) {
  using Sum = typename P::Sum;
  auto& sums = shared<WarpSums<Sum>>().sum;
  const std::int64_t blocks_per_run = (run + lanes - 1) / lanes;
  for (std::int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    // A block's 32 columns never span two runs.
    const std::int64_t column = block % blocks_per_run * lanes + threadIdx.x;
    const bool exists = column < run;
    std::int64_t at[3] = {0, 0, 0};
    if (exists) rows.offsets(block / blocks_per_run * run + column, at);
    const auto* y = p.y + at[0];
    const auto* dy = p.dy + at[1];
    auto* dx = p.dx + at[2];
    Sum mine = 0;
    for (std::int64_t i = threadIdx.y; exists && i < rows.length; i += warps) {
      const Sum gradient = convert<Sum>(dy[i * rows.steps[1]]);
      mine += p.log ? gradient : gradient * convert<Sum>(y[i * rows.steps[0]]);
    }
    sums[threadIdx.y][threadIdx.x] = mine;
    __syncthreads();
    Sum sum = 0;
    for (int w = 0; w < warps; ++w) sum += sums[w][threadIdx.x];
    __syncthreads();  // all warps have read; the next columns may overwrite
    for (std::int64_t i = threadIdx.y; exists && i < rows.length; i += warps) {
      const Sum result = gradient_of(convert<Sum>(y[i * rows.steps[0]]),
                                     convert<Sum>(dy[i * rows.steps[1]]), sum, p.scale, p.log);
      dx[i * rows.steps[2]] = convert<typename P::Out>(result);
    }
  }
}

Support supports(const SoftmaxBackward::Args& args, const Context&) {
  constexpr std::int64_t min_run = 8;
  if (!args.rows.are_adjacent() || args.rows.run() < min_run) {
    return unsupported("rows must be adjacent, in runs of at least 8");
  }
  if (args.y.dtype != args.dx.dtype) return unsupported("the result's type must be that of y");
  return supported;
}

/// Returns the number of blocks of `lanes` adjacent rows; the last of a run may be partial.
std::int64_t blocks_of(const SoftmaxBackward::Args& args) {
  const std::int64_t run = larger(args.rows.run(), std::int64_t{1});
  return args.count() / run * ceil_div(run, std::int64_t{lanes});
}

Work work(const SoftmaxBackward::Args& args, const Context&) {
  return block_work(blocks_of(args), lanes * warps, ceil_div(args.length(), warps),
                    type_path(args.y.dtype));
}

void run(const SoftmaxBackward::Args& args, Context& context) {
  constexpr std::int64_t max_blocks = 0x7fffffff;
  if (args.empty()) return;
  const std::int64_t blocks = blocks_of(args);
  visit<float, double, f16, bf16>(args.y.dtype, [&]<class T>() {
    launch(context,
           {.grid = smaller(blocks, max_blocks),
            .block = {lanes, warps},
            .shared_bytes = sizeof(WarpSums<Accumulator<T>>)},
           softmax_backward_columns<GradientCall<T, T>>, args.rows, call_of<T, T>(args),
           args.rows.run(), blocks);
  });
}

const Rung<SoftmaxBackward> self{{.name = "adjacent_rows",
                                  .after = "any_strides",
                                  .backend = device_backend,
                                  .supports = supports,
                                  .passes = {.loads = 2, .stores = 1},
                                  .work = work,
                                  .run = run}};

}  // namespace
}  // namespace rung
