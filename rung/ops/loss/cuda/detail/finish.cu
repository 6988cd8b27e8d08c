// SPDX-License-Identifier: Apache-2.0
// loss on a GPU: kernels that run before and after a rung's kernel. The first counts the rows that
// are not ignored, the divisor of the mean; the second adds up the blocks' sums in a fixed order.
#include "rung/ops/loss/cuda/detail/loss.hpp"

namespace rung::loss_cuda::inline RUNG_TARGET {
namespace {

constexpr int count_threads = 256;
constexpr int result_threads = 1024;

struct CountShared {
  std::int64_t counts[count_threads / warp_size];
};

__global__ void __launch_bounds__(count_threads)
    loss_count(Rows<4> rows, LossLabels labels, std::int64_t* counted) {
  auto& scratch = shared<CountShared>();
  const std::int64_t step = std::int64_t{gridDim.x} * count_threads;
  std::int64_t mine = 0;
  for (std::int64_t row = std::int64_t{blockIdx.x} * count_threads + threadIdx.x;
       row < rows.count(); row += step) {
    mine += labels.counts(labels.at(rows.template offset<Loss::row_target>(row))) ? 1 : 0;
  }
  mine = lanes_reduce(mine, Plus{}, warp_size);
  if (threadIdx.x % warp_size == 0) scratch.counts[threadIdx.x / warp_size] = mine;
  __syncthreads();
  if (threadIdx.x != 0) return;
  std::int64_t all = 0;
  for (const std::int64_t of_warp : scratch.counts) all += of_warp;
  counted[blockIdx.x] = all;
}

struct ResultShared {
  double sums[result_threads / warp_size];
};

template <class Sum>
__global__ void __launch_bounds__(result_threads)
    loss_result(const double* sums, std::int64_t blocks, const std::int64_t* counted,
                int count_blocks, std::int64_t rows, bool mean, Sum* result) {
  start_dependent();
  auto& scratch = shared<ResultShared>();
  double mine = 0;
  for (std::int64_t block = threadIdx.x; block < blocks; block += result_threads) {
    mine += sums[block];
  }
  mine = lanes_reduce(mine, Plus{}, warp_size);
  if (threadIdx.x % warp_size == 0) scratch.sums[threadIdx.x / warp_size] = mine;
  __syncthreads();
  if (threadIdx.x != 0) return;
  double all = 0;
  for (const double of_warp : scratch.sums) all += of_warp;
  if (counted != nullptr) {
    rows = 0;
    for (int block = 0; block < count_blocks; ++block) rows += counted[block];
  }
  *result = static_cast<Sum>(mean && rows > 0 ? all / static_cast<double>(rows) : all);
}

}  // namespace

int launch_count(const Loss::Args& args, Context& context, std::int64_t* counted) {
  const int blocks = static_cast<int>(
      smaller<std::int64_t>(max_count_blocks, ceil_div(args.count(), 4 * count_threads)));
  launch(context, {.grid = blocks, .block = count_threads, .shared_bytes = sizeof(CountShared)},
         loss_count, args.rows, LossLabels::of(args), counted);
  return blocks;
}

void launch_result(const Loss::Args& args, Context& context, const double* sums,
                   std::int64_t blocks, const std::int64_t* counted, int count_blocks) {
  const bool mean = args.options.reduction == LossReduction::mean;
  visit<float, double>(args.result.dtype, [&]<class Sum>() {
    launch(context,
           {.grid = 1,
            .block = result_threads,
            .shared_bytes = sizeof(ResultShared),
            .dependent = can_depend(context)},
           loss_result<Sum>, sums, blocks, counted, count_blocks, args.count(), mean,
           static_cast<Sum*>(args.result.data));
  });
}

}  // namespace rung::loss_cuda::inline RUNG_TARGET
