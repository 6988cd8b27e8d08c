// SPDX-License-Identifier: Apache-2.0
// Adds up the slices of k that few_rows and the tensor-core kernels leave behind.
#include "rung/ops/gemm/cuda/detail/slices.hpp"

#include "rung/device/collectives.hpp"
#include "rung/device/dependent.hpp"
#include "rung/ops/gemm/cuda/detail/strip.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {
namespace {

// Groups of four columns, and how many threads share the slices of one: few sums must not wait for
// one load after another.
constexpr int sum_groups = 32;
constexpr int sum_shares = 8;

/// Four neighbours along a row of C, as far as they exist. Wide: takes_wide_stores<4>(p).
template <class P>
__device__ void finish_group(const P& p, bool wide, int batch, std::int64_t row,
                             std::int64_t column, const Pack<typename P::Sum, 4>& sums) {
  using Out = typename P::Out;
  using Sum = typename P::Sum;
  const std::int64_t left = p.n() - column;
  if (row >= p.m() || left <= 0) return;
  const bool whole = wide && left >= 4;
  Out* const c = &p.c(batch, row, column);
  Pack<Sum, 4> values;
#pragma unroll
  for (int i = 0; i < 4; ++i) values[i] = p.alpha * sums[i];
  if (p.beta != 0) {
    Pack<Out, 4> old;
    if (whole) {
      old = load_wide<4>(c);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) old[i] = i < left ? c[i * p.c.strides[2]] : zero<Out>();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) values[i] += p.beta * convert<Sum>(old[i]);
  }
  if (p.bias.data != nullptr) {
    const Out* const bias = &p.bias(batch, row, column);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i < left) values[i] += convert<Sum>(bias[i * p.bias.strides[2]]);
    }
  }
  if constexpr (std::is_unsigned_v<Sum>) {
#pragma unroll
    for (int i = 0; i < 4; ++i) values[i] = activated<Out>(p.activation, values[i]);
  } else {
    activate_all<Out>(p.activation, values);
  }
  if (p.residual.data != nullptr) {
    const Out* const residual = &p.residual(batch, row, column);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i < left) values[i] += convert<Sum>(residual[i * p.residual.strides[2]]);
    }
  }
  const Pack<Out, 4> finished = convert<Out>(values);
  if (whole) {
    store_wide(c, finished);
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (i < left) c[i * p.c.strides[2]] = finished[i];
  }
}

/// A block makes 32 groups of four neighbours of C, of one matrix of the batch. The order of
/// additions is fixed: each thread every eighth slice, then the eight sums one after another.
template <class Out, class T>
__global__ void __launch_bounds__(sum_groups* sum_shares)
    gemm_add_slices(Product<T, Accumulator<T>> given, const Accumulator<T>* partial, int slices) {
  using Sum = Accumulator<T>;
  struct Sums {
    alignas(16) Sum share[sum_shares][sum_groups][4];
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
      for (int slice = share; slice < slices; slice += sum_shares) {
        const Pack<Sum, 4> more = load_wide<4>(from + slice * apart);
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[i] += more[i];
      }
    }
    store_wide(sums[share][group], sum);
    __syncthreads();
    if (share == 0 && row < p.m()) {
#pragma unroll
      for (int other = 1; other < sum_shares; ++other) {
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
    __syncthreads();
  }
}

}  // namespace

template <class T>
void add_slices(Context& context, const Finish<T>& finish, const Accumulator<T>* partial,
                int slices) {
  using Sum = Accumulator<T>;
  const auto& p = finish.p;
  constexpr std::int64_t most = 65535;
  const LaunchShape shape{
      .grid = {tiles_of(p.m() * partial_pitch(p.n()) / 4, sum_groups), smaller(p.c.shape[0], most)},
      .block = {sum_groups, sum_shares},
      .shared_bytes = sizeof(Sum) * 4 * sum_groups * sum_shares,
      .dependent = can_depend(context)};
  if constexpr (sizeof(T) == 2) {
    if (finish.narrow) return launch(context, shape, gemm_add_slices<T, T>, p, partial, slices);
  }
  launch(context, shape, gemm_add_slices<Sum, T>, p, partial, slices);
}

template void add_slices(Context&, const Finish<float>&, const float*, int);
template void add_slices(Context&, const Finish<double>&, const double*, int);
template void add_slices(Context&, const Finish<f16>&, const float*, int);
template void add_slices(Context&, const Finish<bf16>&, const float*, int);

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
