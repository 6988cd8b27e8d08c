// SPDX-License-Identifier: Apache-2.0
// optimizer on a GPU: the sum of squares of all gradients, per block and then over blocks in fixed
// order; the norm and the clipping factor from it.
#include "rung/ops/optimizer/cuda/detail/clip.hpp"

namespace rung::optimizer_cuda::inline RUNG_TARGET {
namespace {

constexpr int threads = 512;
constexpr int max_blocks = 1024;

struct Shared {
  double of_warp[threads / warp_size];
};

/// Returns the sum over the block in its first thread.
__device__ __forceinline__ double block_sum(double mine, Shared& scratch) {
  mine = lanes_reduce(mine, Plus{}, warp_size);
  if (threadIdx.x % warp_size == 0) scratch.of_warp[threadIdx.x / warp_size] = mine;
  __syncthreads();
  double all = 0;
  if (threadIdx.x == 0) {
    for (const double of_warp : scratch.of_warp) all += of_warp;
  }
  return all;
}

template <class T>
__global__ void __launch_bounds__(threads)
    optimizer_squares(const T* gradients, Collapsed<5> elements, bool flat, double* sums) {
  start_dependent();
  constexpr int width = vector_width<T>;
  auto& scratch = shared<Shared>();
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  const std::int64_t begin = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  double mine = 0;
  const auto add = [&](T g) {
    const auto value = static_cast<double>(convert<Accumulator<T>>(g));
    mine += value * value;
  };
  if (flat) {
    const RowPacks<const T, width> from(gradients, elements.size(), lead_of<width>(gradients));
    for (std::int64_t pack = begin; pack < from.packs(); pack += step) {
      const Pack<T, width> values = from.load(pack, zero<T>());
#pragma unroll
      for (int i = 0; i < width; ++i) add(values[i]);
    }
  } else {
    for (std::int64_t i = begin; i < elements.size(); i += step) {
      add(gradients[elements.template offset<Optimizer::element_gradients>(i)]);
    }
  }
  const double all = block_sum(mine, scratch);
  if (threadIdx.x == 0) sums[blockIdx.x] = all;
}

template <class Sum>
__global__ void __launch_bounds__(threads)
    optimizer_clip(const double* sums, int blocks, double max_norm, double* clip, Sum* norm) {
  start_dependent();
  auto& scratch = shared<Shared>();
  double mine = 0;
  for (int block = static_cast<int>(threadIdx.x); block < blocks; block += threads) {
    mine += sums[block];
  }
  const double all = block_sum(mine, scratch);
  if (threadIdx.x != 0) return;
  const double root = sqrt(all);
  *clip = clip_factor(max_norm, root);
  if (norm != nullptr) *norm = static_cast<Sum>(root);
}

}  // namespace

const double* launch_clip(const Optimizer::Args& args, Context& context) {
  if (!args.needs_norm()) return nullptr;
  auto* sums = static_cast<double*>(context.workspace((max_blocks + 1) * sizeof(double)));
  double* clip = sums + max_blocks;
  const bool flat = args.elements.is_contiguous<Optimizer::element_gradients>();
  int blocks = 0;
  visit<float, double, f16, bf16>(args.gradients.dtype, [&]<class T>() {
    constexpr auto width = std::int64_t{vector_width<T>};
    const std::int64_t work =
        flat ? ceil_div(args.elements.size(), width) + 1 : args.elements.size();
    if (args.elements.size() > 0) {
      blocks = static_cast<int>(smaller<std::int64_t>(max_blocks, ceil_div(work, threads)));
    }
    launch(context,
           {.grid = blocks,
            .block = threads,
            .shared_bytes = sizeof(Shared),
            .dependent = can_depend(context)},
           optimizer_squares<T>, static_cast<const T*>(args.gradients.data), args.elements, flat,
           sums);
    using Sum = Accumulator<T>;
    launch(context,
           {.grid = 1,
            .block = threads,
            .shared_bytes = sizeof(Shared),
            .dependent = can_depend(context)},
           optimizer_clip<Sum>, static_cast<const double*>(sums), blocks, args.options.max_norm,
           clip, static_cast<Sum*>(args.options.norm.data));
  });
  return clip;
}

}  // namespace rung::optimizer_cuda::inline RUNG_TARGET
