// SPDX-License-Identifier: Apache-2.0
// elementwise / vectorized, 16 bytes: the kernels, which transform.cuh launches too. Problems of
// two axes have a kernel with a two-dimensional grid: a thread computes its offset without a
// division and needs half the registers.
//
// Part of the rung whose Idea, Changes, Cost and Limits are in 040_vectorized_16b.cu.
#pragma once

#include "rung/core/bounds.hpp"
#include "rung/device/dependent.hpp"
#include "rung/ops/elementwise/cuda/detail/packs.hpp"

namespace rung::elementwise_cuda::inline RUNG_TARGET {

template <int I, class T>
__device__ __forceinline__ auto load_input(const T& tensors, const Packing<T::all>& packing,
                                           std::int64_t at) {
  constexpr int wide = pack_elements<T>;
  const auto* from = tensors.template input<I>();
  if ((packing.repeats >> (I + 1) & 1) != 0) {
    Pack<typename T::template Input<I>, wide> same;
    const auto value = from[at];
#pragma unroll
    for (int lane = 0; lane < wide; ++lane) same[lane] = value;
    return raw(same);
  }
  return load_raw<wide>(from + packing.head + at * wide);
}

template <class T, int... I>
__device__ __forceinline__ void load_packs(const T& tensors, const Packing<T::all>& packing,
                                           const std::int64_t (&at)[T::all],
                                           typename PacksOf<pack_elements<T>, T>::Type& packs,
                                           std::integer_sequence<int, I...>) {
  ((packs.template get<I>() = load_input<I>(tensors, packing, at[I + 1])), ...);
}

/// Packs per operand that a thread loads before it computes: one for memory-bound functions, since
/// short-lived threads keep the blocks' accesses close together across the device.
template <class F, class T>
inline constexpr int packs_a_thread = 1;
template <class F, class T>
requires(F::busy) inline constexpr int packs_a_thread<F, T> = T::widest == 4 ? 4 : 2;

template <class F, class T>
__global__ void __launch_bounds__(block_threads)
    elementwise_vectorized_16b(F f, T tensors, Packing<T::all> packing) {
  constexpr int wide = pack_elements<T>;
  constexpr int deep = packs_a_thread<F, T>;
  using Indices = typename T::Indices;
  start_dependent();
  const std::int64_t first = std::int64_t{blockIdx.x} * (deep * block_threads) + threadIdx.x;
  const std::int64_t count = packing.layout.size();
  std::int64_t at[deep][T::all];
#pragma unroll
  for (int k = 0; k < deep; ++k) {
    const std::int64_t number = first + k * block_threads;
    if (packing.layout.rank <= 1) {
#pragma unroll
      for (int i = 0; i < T::all; ++i) at[k][i] = number * packing.layout.strides[i][0];
    } else {
      packing.place(number, at[k]);
    }
  }
  typename PacksOf<wide, T>::Type packs[deep];
#pragma unroll
  for (int k = 0; k < deep; ++k) {
    if (first + k * block_threads < count) {
      load_packs(tensors, packing, at[k], packs[k], Indices{});
    }
  }
#pragma unroll
  for (int k = 0; k < deep; ++k) {
    if (first + k * block_threads < count) {
      store_wide(tensors.out + packing.head + at[k][0] * wide,
                 apply_pack<T>(f, packs[k], Indices{}));
    }
  }
  // Computes the elements before the first pack and after the last: fewer than two packs in all.
  if (blockIdx.x == 0 && packing.layout.rank <= 1) {
    const std::int64_t behind = packing.head + count * wide;
    const std::int64_t outside = packing.head + (tensors.layout.size() - behind);
    if (threadIdx.x < outside) {
      compute_at(tensors, f,
                 threadIdx.x < packing.head ? threadIdx.x : behind + (threadIdx.x - packing.head));
    }
  }
}

/// Returns the number of blocks, at least one, which computes the elements outside packs.
template <class F, class T>
std::int64_t blocks_of(const Packing<T::all>& packing) {
  return larger<std::int64_t>(
      blocks_for(packing.layout.size(), packs_a_thread<F, T> * block_threads), 1);
}
template <class F, class T>
void launch_vectorized(Context& context, const F& f, const T& tensors,
                       const Packing<T::all>& packing) {
  launch(
      context,
      {.grid = blocks_of<F, T>(packing), .block = block_threads, .dependent = can_depend(context)},
      elementwise_vectorized_16b<F, T>, f, tensors, packing);
}

/// Computes one pack per thread; rows are along the second axis of the grid. Operands equal for
/// every row stay in the caches.
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

/// Returns whether few threads of a two-dimensional grid would be idle.
template <int All>
bool has_long_rows(const Packing<All>& packing) {
  if (packing.layout.rank != 2) return false;
  const std::int64_t columns = packing.layout.shape[1];
  return columns * 8 >= blocks_for(columns, block_threads) * block_threads * 7;
}

template <int All>
LaunchExtent rows_grid(const Packing<All>& packing) {
  constexpr std::int64_t max_down = 65535;  // maximum extent of a grid's second axis
  const std::int64_t rows = packing.layout.shape[0];
  return {blocks_for(packing.layout.shape[1], block_threads), smaller(rows, max_down),
          blocks_for(rows, max_down)};
}

template <class F, class T>
void launch_packs(Context& context, const F& f, const T& tensors, const Packing<T::all>& packing) {
  if (!has_long_rows(packing)) return launch_vectorized(context, f, tensors, packing);
  launch(context,
         {.grid = rows_grid(packing), .block = block_threads, .dependent = can_depend(context)},
         elementwise_rows_16b<F, T>, f, tensors, packing);
}

/// Launches the kernel for a type among Ts; the packs must fit.
template <class... Ts>
void launch_vectorized_16b(const Elementwise::Args& args, Context& context) {
  with_call<Ts...>(args, [&](const auto& f, const auto& tensors) {
    launch_packs(context, f, tensors, *pack(tensors));
  });
}

}  // namespace rung::elementwise_cuda::inline RUNG_TARGET
