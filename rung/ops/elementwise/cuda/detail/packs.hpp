// SPDX-License-Identifier: Apache-2.0
// elementwise: partition of tensors into 16-byte packs, and the computation of one pack per
// operand, for vectorized_16b and bulk_copy_ring.
#pragma once

#include <cstdint>
#include <optional>

#include "rung/core/bounds.hpp"
#include "rung/ops/elementwise/cuda/detail/rung.hpp"

namespace rung::elementwise_cuda::inline RUNG_TARGET {

/// Division by an invariant divisor d, as a multiplication and a shift: for n up to 2^31 - 1 and
/// 2^(p - 31) >= d, n / d is n ceil(2^p / d) / 2^p, rounded down [H. Warren, Hacker's Delight, 2nd
/// ed., section 10-9].
struct Divisor {
  static constexpr std::int64_t most = 0x7fffffff;
  std::uint32_t multiplier = 0;
  std::uint32_t shift = 0;

  static Divisor of(std::int64_t d) {
    Divisor divisor;
    divisor.shift = 31;
    while (std::int64_t{1} << (divisor.shift - 31) < d) ++divisor.shift;
    const std::uint64_t power = std::uint64_t{1} << divisor.shift;
    const auto by = static_cast<std::uint64_t>(d);
    divisor.multiplier = static_cast<std::uint32_t>((power + by - 1) / by);
    return divisor;
  }
  __device__ __forceinline__ std::uint32_t quotient(std::uint32_t n) const {
    return static_cast<std::uint32_t>((std::uint64_t{n} * multiplier) >> shift);
  }
};

/// Partition of tensors into packs of P elements: `head` elements up to the first aligned address,
/// whole packs, and the remainder. With several axes, rows are whole packs: there is neither head
/// nor remainder.
template <int All>
struct Packing {
  Collapsed<All> layout;  // layout of packs; operands repeated along a row keep offsets in elements
  Divisor extents[max_rank];
  std::int64_t head = 0;
  unsigned repeats = 0;  // bit i: one element of tensor i is repeated in a pack

  /// Sets `at` to the offsets of pack `number` in every tensor.
  __device__ __forceinline__ void place(std::int64_t number, std::int64_t (&at)[All]) const {
    if (layout.count > Divisor::most) return layout.offsets(number, at);
#pragma unroll
    for (int i = 0; i < All; ++i) at[i] = 0;
    auto rest = static_cast<std::uint32_t>(number);
    if (layout.rank == 2) {
      const std::uint32_t row = extents[1].quotient(rest);
      const std::uint32_t column = rest - row * static_cast<std::uint32_t>(layout.shape[1]);
#pragma unroll
      for (int i = 0; i < All; ++i) {
        at[i] = row * layout.strides[i][0] + column * layout.strides[i][1];
      }
      return;
    }
#pragma unroll 1
    for (int axis = layout.rank - 1; axis >= 0; --axis) {
      const std::uint32_t quotient = axis == 0 ? 0 : extents[axis].quotient(rest);
      const std::uint32_t index = rest - quotient * static_cast<std::uint32_t>(layout.shape[axis]);
#pragma unroll
      for (int i = 0; i < All; ++i) at[i] += index * layout.strides[i][axis];
      rest = quotient;
    }
  }
};

/// Elements per pack: 16 bytes of the widest type.
template <class T>
inline constexpr int pack_elements = 16 / T::widest;

/// Returns the partition if every tensor's packs are aligned, else nullopt.
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
  // The output's alignment determines `head`; the inputs must have the same alignment.
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
  if (packing.layout.count <= Divisor::most) {
    for (int axis = 1; axis <= last; ++axis) {
      packing.extents[axis] = Divisor::of(packing.layout.shape[axis]);
    }
  }
  return packing;
}

/// Raw packs of each input. Elements are extracted later, since extraction at the load would make
/// each load complete before the next is issued.
template <int P, class... In>
struct Packs {};
template <int P, class First, class... Rest>
struct Packs<P, First, Rest...> {
  RawPack<First, P> first;
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

/// Returns f of each lane. The results are converted together: two per instruction for small
/// floats.
template <class T, class F, class P, int... I>
__device__ __forceinline__ Pack<typename T::Out, pack_elements<T>> apply_pack(
    const F& f, P& packs, std::integer_sequence<int, I...>) {
  constexpr int wide = pack_elements<T>;
  using Value = decltype(f(Accumulator<typename T::template Input<I>>()...));
  Pack<Value, wide> values;
#pragma unroll
  for (int lane = 0; lane < wide; ++lane) {
    values[lane] = f(convert<Accumulator<typename T::template Input<I>>>(
        unpack(packs.template get<I>())[lane])...);
  }
  return convert<typename T::Out>(values);
}

}  // namespace rung::elementwise_cuda::inline RUNG_TARGET
