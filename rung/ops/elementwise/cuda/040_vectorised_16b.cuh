// SPDX-License-Identifier: Apache-2.0
// elementwise: what the rung vectorised_16b and transform.cuh launch. Calls of two axes have a
// kernel of their own, whose grid has them too: a thread finds its place without a division, and
// needs half the registers.
#pragma once

#include "rung/core/bounds.hpp"
#include "rung/ops/elementwise/cuda/detail/vectorised.hpp"

namespace rung::elementwise_cuda::inline RUNG_TARGET {

/// A pack a thread, the rows down the grid. What is the same for every row stays in the caches.
template <class F, class T>
__global__ void __launch_bounds__(block_threads)
    elementwise_rows_16b(F f, T tensors, Packing<T::all> packing) {
  constexpr int wide = pack_elements<T>;
  using Indices = typename T::Indices;
  start_dependent();
  const std::int64_t row = std::int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
  const std::int64_t column = std::int64_t{blockIdx.x} * block_threads + threadIdx.x;
  if (row >= packing.layout.shape[0] || column >= packing.layout.shape[1]) return;
  std::int64_t at[T::all];
#pragma unroll
  for (int i = 0; i < T::all; ++i) {
    at[i] = row * packing.layout.strides[i][0] + column * packing.layout.strides[i][1];
  }
  typename PacksOf<wide, T>::Type packs;
  load_packs(tensors, packing, at, packs, Indices{});
  store_wide(tensors.out + at[0] * wide, apply_pack<T>(f, packs, Indices{}));
}

/// Whether few threads of such a grid would idle.
template <int All>
bool has_long_rows(const Packing<All>& packing) {
  if (packing.layout.rank != 2) return false;
  const std::int64_t columns = packing.layout.shape[1];
  return columns * 8 >= blocks_for(columns, block_threads) * block_threads * 7;
}

template <class F, class T>
void launch_packs(Context& context, const F& f, const T& tensors, const Packing<T::all>& packing) {
  if (!has_long_rows(packing)) return launch_vectorised(context, f, tensors, packing);
  constexpr std::int64_t most_down = 65535;  // of a grid's second axis
  const std::int64_t rows = packing.layout.shape[0];
  launch(context,
         {.grid = {blocks_for(packing.layout.shape[1], block_threads), smaller(rows, most_down),
                   blocks_for(rows, most_down)},
          .block = block_threads,
          .dependent = can_depend(context)},
         elementwise_rows_16b<F, T>, f, tensors, packing);
}

/// For calls whose type is among Ts, and whose packs fit.
template <class... Ts>
void run_vectorised(const Elementwise::Args& args, Context& context) {
  with_call<Ts...>(args, [&](const auto& f, const auto& tensors) {
    launch_packs(context, f, tensors, *pack(tensors));
  });
}

// The rung's types are spread over several files, as compiling all takes most of a minute.
void run_vectorised_f16(const Elementwise::Args& args, Context& context);
void run_vectorised_bf16(const Elementwise::Args& args, Context& context);
void run_vectorised_f64(const Elementwise::Args& args, Context& context);
void run_vectorised_integer(const Elementwise::Args& args, Context& context);

}  // namespace rung::elementwise_cuda::inline RUNG_TARGET
