// SPDX-License-Identifier: Apache-2.0
// elementwise: the kernel that moves 16 bytes an instruction; the rung vectorised_16b and
// transform.cuh launch it.
#pragma once

#include <cstdint>
#include <optional>

#include "rung/ops/elementwise/cuda_rung.hpp"

namespace rung::elementwise_cuda::inline RUNG_TARGET {

/// How a call is cut into packs of P elements: `head` elements up to the first aligned address,
/// whole packs, and what is left. With several axes there is no head and no rest.
template <int All>
struct Packing {
  Collapsed<All> layout;  // of packs; operands that repeat along a row keep offsets of elements
  std::int64_t head = 0;
  unsigned repeats = 0;  // bit i: tensor i has one element for a whole pack
};

/// Elements a pack: 16 bytes of the widest type.
template <class T>
inline constexpr int pack_elements = 16 / T::widest;

/// Whether every tensor's packs are aligned, and if so how; nothing when they are not.
template <class T>
std::optional<Packing<T::all>> pack(const T& tensors) {
  constexpr std::int64_t wide = pack_elements<T>;
  const std::uintptr_t size[] = {sizeof(typename T::Out), T::template input_size<0>(),
                                 T::template input_size<1>(), T::template input_size<2>()};
  const Collapsed<T::all>& layout = tensors.layout;
  if (layout.rank == 0 || layout.count < wide) return {};
  const int last = layout.rank - 1;
  Packing<T::all> packing;
  packing.layout = layout;
  const auto address = [&](int i) {
    return reinterpret_cast<std::uintptr_t>(i == 0 ? tensors.out : tensors.in[i - 1]);
  };
  // The output's alignment says how many elements come first; the inputs must then fit.
  const std::uintptr_t past = address(0) / size[0] % wide;
  if (last == 0 && past != 0) packing.head = wide - static_cast<std::int64_t>(past);
  for (int i = 0; i < T::all; ++i) {
    const std::int64_t step = layout.strides[i][last];
    if (i > 0 && step == 0) {
      packing.repeats |= 1u << i;
      continue;
    }
    const std::uintptr_t first =
        address(i) + static_cast<std::uintptr_t>(packing.head) * size[static_cast<std::size_t>(i)];
    if (step != 1 || first % (size[i] * wide) != 0) return {};
    for (int axis = 0; axis < last; ++axis) {
      if (layout.strides[i][axis] % wide != 0) return {};
      packing.layout.strides[i][axis] /= wide;
    }
  }
  if (last > 0 && layout.shape[last] % wide != 0) return {};
  packing.layout.shape[last] = (layout.shape[last] - packing.head) / wide;
  packing.layout.count = last > 0 ? layout.count / wide : packing.layout.shape[0];
  return packing;
}

/// A pack of each input.
template <int P, class... In>
struct Packs {};
template <int P, class First, class... Rest>
struct Packs<P, First, Rest...> {
  Pack<First, P> first;
  Packs<P, Rest...> rest;
  template <int I>
  __device__ __forceinline__ auto& get() {
    if constexpr (I == 0) {
      return first;
    } else {
      return rest.template get<I - 1>();
    }
  }
};
template <int P, class T>
struct PacksOf;
template <int P, class Out, class... In>
struct PacksOf<P, Tensors<Out, In...>> {
  using Type = Packs<P, In...>;
};

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
    return same;
  }
  return load_wide<wide>(from + packing.head + at * wide);
}

template <class T, int... I>
__device__ __forceinline__ void load_packs(const T& tensors, const Packing<T::all>& packing,
                                           const std::int64_t (&at)[T::all],
                                           typename PacksOf<pack_elements<T>, T>::Type& packs,
                                           std::integer_sequence<int, I...>) {
  ((packs.template get<I>() = load_input<I>(tensors, packing, at[I + 1])), ...);
}

template <class T, class F, class P, int... I>
__device__ __forceinline__ typename T::Out apply_lane(const F& f, P& packs, int lane,
                                                      std::integer_sequence<int, I...>) {
  return apply<T>(f, packs.template get<I>()[lane]...);
}

/// Packs that a thread loads before it computes on any: 16 bytes each, an operand.
template <class T>
inline constexpr int packs_a_thread = T::inputs == 1 ? 4 : 2;

template <class Map, class T>
__global__ void __launch_bounds__(block_threads)
    elementwise_vectorised_16b(Map map, T tensors, Packing<T::all> packing) {
  constexpr int wide = pack_elements<T>;
  constexpr int deep = packs_a_thread<T>;
  using Indices = typename T::Indices;
  const std::int64_t first = std::int64_t{blockIdx.x} * (deep * block_threads) + threadIdx.x;
  map.with([&](const auto& f) {
    std::int64_t at[deep][T::all];
    if (packing.layout.rank <= 1) {
#pragma unroll
      for (int k = 0; k < deep; ++k) {
#pragma unroll
        for (int i = 0; i < T::all; ++i) {
          at[k][i] = (first + k * block_threads) * packing.layout.strides[i][0];
        }
      }
    } else {
      // Rolled: the divisions, once each, are most of the code. Registers cannot be indexed, so
      // that each place moves up until it is where it belongs.
#pragma unroll 1
      for (int k = 0; k < deep; ++k) {
#pragma unroll
        for (int next = 1; next < deep; ++next) {
#pragma unroll
          for (int i = 0; i < T::all; ++i) at[next - 1][i] = at[next][i];
        }
        packing.layout.offsets(first + k * block_threads, at[deep - 1]);
      }
    }
    typename PacksOf<wide, T>::Type packs[deep];
#pragma unroll
    for (int k = 0; k < deep; ++k) {
      if (first + k * block_threads >= packing.layout.size()) break;
      load_packs(tensors, packing, at[k], packs[k], Indices{});
    }
    // Rolled likewise: one copy of the function a lane, not `deep`.
#pragma unroll 1
    for (int k = 0; k < deep; ++k) {
      if (first + k * block_threads >= packing.layout.size()) break;
      Pack<typename T::Out, wide> result;
#pragma unroll
      for (int lane = 0; lane < wide; ++lane) {
        result[lane] = apply_lane<T>(f, packs[0], lane, Indices{});
      }
      store_wide(tensors.out + packing.head + at[0][0] * wide, result);
#pragma unroll
      for (int next = 1; next < deep; ++next) {
        packs[next - 1] = packs[next];
        at[next - 1][0] = at[next][0];
      }
    }
    // The elements before the first pack and behind the last: fewer than two packs in all.
    const std::int64_t behind = packing.head + packing.layout.size() * wide;
    if (blockIdx.x == 0 && packing.layout.rank <= 1) {
      if (threadIdx.x < packing.head) compute_at(tensors, f, threadIdx.x);
      if (threadIdx.x < tensors.layout.size() - behind) {
        compute_at(tensors, f, behind + threadIdx.x);
      }
    }
  });
}

template <class Map, class T>
void launch_vectorised(Context& context, const Map& map, const T& tensors,
                       const Packing<T::all>& packing) {
  const std::int64_t blocks = blocks_for(packing.layout.size(), packs_a_thread<T> * block_threads);
  // At least one block: the elements outside of packs are its.
  launch(context, {.grid = std::max<std::int64_t>(blocks, 1), .block = block_threads},
         elementwise_vectorised_16b<Map, T>, map, tensors, packing);
}

/// For calls whose type is among Ts, and whose packs fit.
template <class... Ts>
void run_vectorised(const Elementwise::Args& args, Context& context) {
  with_tensors<Ts...>(args, [&](const auto& map, const auto& tensors) {
    launch_vectorised(context, map, tensors, *pack(tensors));
  });
}

// The rung's types are spread over several files, as compiling all takes most of a minute.
void run_vectorised_f16(const Elementwise::Args& args, Context& context);
void run_vectorised_bf16(const Elementwise::Args& args, Context& context);
void run_vectorised_f64(const Elementwise::Args& args, Context& context);
void run_vectorised_integer(const Elementwise::Args& args, Context& context);

}  // namespace rung::elementwise_cuda::inline RUNG_TARGET
