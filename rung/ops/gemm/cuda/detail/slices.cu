// SPDX-License-Identifier: Apache-2.0
// Adds up the slices of k that tensor-core kernels leave behind.
#include "rung/ops/gemm/cuda/detail/slices.hpp"

#include "rung/device/collectives.hpp"
#include "rung/ops/gemm/cuda/detail/strip.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {
namespace {

constexpr int sum_threads = 256;

/// A thread makes four neighbours of a row of C, a block a part of one matrix of the batch.
template <class Out, class T>
__global__ void __launch_bounds__(sum_threads)
    gemm_add_slices(Product<T, float> given, const float* partial, int slices) {
  const Product<T, Out> p = with_output<Out>(given);
  const std::int64_t groups = (p.n() + 3) / 4;
  const std::int64_t at = std::int64_t{blockIdx.x} * sum_threads + threadIdx.x;
  const std::int64_t row = at / groups;
  const std::int64_t column = at % groups * 4;
  if (row >= p.m()) return;
  const bool wide = takes_wide_stores<4>(p);
  for (std::int64_t batch = blockIdx.y; batch < p.c.shape[0]; batch += gridDim.y) {
    const float* from = partial + (batch * p.m() + row) * p.n() + column;
    const std::int64_t apart = p.c.shape[0] * p.m() * p.n();
    const std::int64_t left = p.n() - column;
    Pack<float, 4> sums{};
#pragma unroll 4
    for (int slice = 0; slice < slices; ++slice, from += apart) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (i < left) sums[i] += from[i];
      }
    }
    finish_group(p, wide, static_cast<int>(batch), row, column, sums);
  }
}

}  // namespace

template <class T>
void add_slices(Context& context, const Finish<T>& finish, const float* partial, int slices) {
  const Product<T, float>& p = finish.p;
  constexpr std::int64_t most = 65535;
  const LaunchShape shape{.grid = {(p.m() * ((p.n() + 3) / 4) + sum_threads - 1) / sum_threads,
                                   smaller(p.c.shape[0], most)},
                          .block = sum_threads};
  if constexpr (sizeof(T) == 2) {
    if (finish.narrow) return launch(context, shape, gemm_add_slices<T, T>, p, partial, slices);
  }
  launch(context, shape, gemm_add_slices<float, T>, p, partial, slices);
}

template void add_slices(Context&, const Finish<float>&, const float*, int);
template void add_slices(Context&, const Finish<f16>&, const float*, int);
template void add_slices(Context&, const Finish<bf16>&, const float*, int);

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
