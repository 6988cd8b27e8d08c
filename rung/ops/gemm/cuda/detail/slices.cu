// SPDX-License-Identifier: Apache-2.0
// Combines the slices of k of few_rows and the tensor-core kernels.
#include "rung/ops/gemm/shared/cuda/slices.hpp"

#include "rung/device/collectives.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/tile/strip.hpp"
#include "rung/device/unwritten.hpp"
#include "rung/ops/gemm/cuda/detail/finish_group.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {
namespace {

constexpr int sum_threads = 256;
// Threads that share the slices of four adjacent elements of C, where there are few such groups: a
// single thread would serialize its loads. With several groups per thread of the device, slices are
// not shared.
constexpr int sum_shares = 8;
constexpr std::int64_t many_groups = 32768;

/// Combines the slices of 256 / Shares groups of four adjacent elements of C per block, for one
/// matrix of the batch. The order of additions is fixed: each thread adds every Shares-th slice,
/// then the threads' sums are added in order.
template <int Shares, class Out, class T>
__global__ void __launch_bounds__(sum_threads)
    gemm_add_slices(Product<T, Accumulator<T>> given, const Accumulator<T>* partial, int slices) {
  using Sum = Accumulator<T>;
  constexpr int sum_groups = sum_threads / Shares;
  struct Sums {
    alignas(16) Sum share[Shares][sum_groups][4];
  };
  start_dependent();
  auto& sums = shared<Sums>().share;
  const Product<T, Out> p = with_output<Out>(given);
  const auto group = static_cast<int>(threadIdx.x);
  const auto share = static_cast<int>(threadIdx.y);
  const std::int64_t pitch = partial_pitch(p.n());
  const std::int64_t at = std::int64_t{blockIdx.x} * sum_groups + group;
  const std::int64_t row = at / (pitch / 4);
  const std::int64_t column = at % (pitch / 4) * 4;
  const std::int64_t apart = p.c.shape[0] * p.m() * pitch;
  const bool wide = takes_wide_stores<4>(p);
  for (std::int64_t batch = blockIdx.y; batch < p.c.shape[0]; batch += gridDim.y) {
    Pack<Sum, 4> sum{};
    if (row < p.m()) {
      const Sum* from = partial + (batch * p.m() + row) * pitch + column;
#pragma unroll 4
      for (int slice = share; slice < slices; slice += Shares) {
        const Pack<Sum, 4> more = load_wide<4>(from + slice * apart);
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[i] += more[i];
      }
    }
    if constexpr (Shares > 1) {
      store_wide(sums[share][group], sum);
      __syncthreads();
    }
    if (share == 0 && row < p.m()) {
#pragma unroll
      for (int other = 1; other < Shares; ++other) {
        const Pack<Sum, 4> more = load_wide<4>(&sums[other][group][0]);
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[i] += more[i];
      }
      if constexpr (sizeof(Sum) == 4) {
        finish_group(p, wide, static_cast<int>(batch), row, column, sum);
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (column + i < p.n()) finish(p, static_cast<int>(batch), row, column + i, sum[i]);
        }
      }
    }
    if constexpr (Shares > 1) __syncthreads();
  }
}

template <int Shares, class T>
void launch_add_slices(Context& context, const Finish<T>& finish, const Accumulator<T>* partial,
                       int slices) {
  using Sum = Accumulator<T>;
  const auto& p = finish.p;
  constexpr std::int64_t most = 65535;
  constexpr int groups = sum_threads / Shares;
  const LaunchShape shape{
      .grid = {tiles_of(p.m() * partial_pitch(p.n()) / 4, groups), smaller(p.c.shape[0], most)},
      .block = {groups, Shares},
      .shared_bytes = sizeof(Sum) * 4 * sum_threads,
      .dependent = can_depend(context)};
  if constexpr (sizeof(T) == 2) {
    if (finish.narrow) {
      return launch(context, shape, gemm_add_slices<Shares, T, T>, p, partial, slices);
    }
  }
  launch(context, shape, gemm_add_slices<Shares, Sum, T>, p, partial, slices);
}

}  // namespace

template <class T>
void add_slices(Context& context, const Finish<T>& finish, const Accumulator<T>* partial,
                int slices) {
  const auto& p = finish.p;
  if (p.n() % 4 != 0) {  // the last pack of a row has padding
    allow_unwritten(partial, partial_bytes(finish, slices));
  }
  const bool many = p.c.shape[0] * p.m() * partial_pitch(p.n()) / 4 >= many_groups;
  many ? launch_add_slices<1>(context, finish, partial, slices)
       : launch_add_slices<sum_shares>(context, finish, partial, slices);
}

template void add_slices(Context&, const Finish<float>&, const float*, int);
template void add_slices(Context&, const Finish<double>&, const double*, int);
template void add_slices(Context&, const Finish<f16>&, const float*, int);
template void add_slices(Context&, const Finish<bf16>&, const float*, int);

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
