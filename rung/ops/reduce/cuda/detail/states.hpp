// SPDX-License-Identifier: Apache-2.0
// States of reduce's CUDA rungs, which lanes, warps and blocks exchange: how they accumulate
// elements, combine, and convert to a result.
//
//   sum, mean    double for f32, f16 and bf16; two doubles for f64; 64 bits for integers
//   squares      as sums
//   extremes     the element, in a type of 4 or 8 bytes; negated for a maximum, so that one kernel
//                serves minimum and maximum (Flip)
//   positions    as extremes, with the index, -1 for no element
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "rung/device/collectives.hpp"
#include "rung/device/load.hpp"
#include "rung/ops/reduce/op/fold.hpp"

namespace rung::reduce_cuda::inline RUNG_TARGET {

using Index = std::int64_t;

/// The unevaluated sum value + rest, where rest is the accumulated rounding error of value.
struct TwoDoubles {
  double value;
  double rest;
};
__device__ __forceinline__ TwoDoubles join_sums(TwoDoubles a, TwoDoubles b) {
  // Two-sum [D. Knuth, TAOCP 4.2.2]; an infinite or NaN sum has no rounding error.
  const double sum = a.value + b.value;
  const double of_b = sum - a.value;
  const double lost = (a.value - (sum - of_b)) + (b.value - of_b);
  const bool finite = sum - sum == 0;
  return {sum, a.rest + b.rest + (finite ? lost : 0.0)};
}
__device__ __forceinline__ double join_sums(double a, double b) { return a + b; }
__device__ __forceinline__ Index join_sums(Index a, Index b) {
  return static_cast<Index>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

/// Types in which elements of T are accumulated within a pack and between packs. i32 is summed as
/// unsigned, which wraps; 32 bits hold the sum of a pack of smaller types.
template <class T>
using PackSum = std::conditional_t<std::is_integral_v<T>,
                                   std::conditional_t<sizeof(T) < 4, std::int32_t, std::uint64_t>,
                                   Accumulator<T>>;
template <class T>
using SumState =
    std::conditional_t<std::is_integral_v<T>, Index,
                       std::conditional_t<std::is_same_v<T, double>, TwoDoubles, double>>;

template <class State>
__device__ __forceinline__ State to_state(double value) {
  if constexpr (std::is_same_v<State, TwoDoubles>) {
    return {value, 0.0};
  } else {
    return static_cast<State>(value);
  }
}

/// Returns the sum of a pack's elements, added pairwise to bound the rounding error.
template <int N, class Sum>
__device__ __forceinline__ Sum pair_sum(Pack<Sum, N> v) {
#pragma unroll
  for (int half = N / 2; half > 0; half /= 2) {
#pragma unroll
    for (int i = 0; i < half; ++i) v[i] = v[i] + v[i + half];
  }
  return v[0];
}

/// Returns the sum of a pack of bytes, four per instruction: unpacking 16 bytes to registers takes
/// longer than loading them.
template <int N>
__device__ __forceinline__ std::int32_t byte_sum(const Pack<std::uint8_t, N>& v) {
#if defined(__CUDA_ARCH__)
  unsigned words[N / 4];
  memcpy(words, &v, sizeof(words));
  unsigned sum = 0;
#pragma unroll
  for (const unsigned word : words) sum = __dp4a(word, 0x01010101U, sum);
  return static_cast<std::int32_t>(sum);
#else
  std::int32_t sum = 0;
  for (int i = 0; i < N; ++i) sum += v[i];
  return sum;
#endif
}

template <class T, int N>
__device__ __forceinline__ PackSum<T> pack_sum(const Pack<T, N>& v) {
  if constexpr (std::is_same_v<T, std::uint8_t> && N % 4 == 0) {
    return byte_sum(v);
  } else {
    return pair_sum<N>(convert<PackSum<T>>(v));
  }
}

template <class T>
struct SumFold {
  using Element = T;
  using State = SumState<T>;
  static constexpr bool arg = false;
  __device__ __forceinline__ State identity() const { return State{}; }
  template <int N>
  __device__ __forceinline__ void take(State& state, const Pack<T, N>& elements, Index,
                                       Index = 1) const {
    const PackSum<T> sum = pack_sum(elements);
    if constexpr (std::is_same_v<State, TwoDoubles>) {
      state = join_sums(state, {sum, 0.0});
    } else {
      state = join_sums(state, static_cast<State>(sum));
    }
  }
  __device__ __forceinline__ State join(const State& a, const State& b) const {
    return join_sums(a, b);
  }
};

/// Sums of squares. Squares of f32 and bf16 are computed in f64, where they neither overflow nor
/// underflow; squares of f16 fit f32.
template <class T>
struct SquareFold {
  using Element = T;
  using State = SumState<T>;
  using Square = std::conditional_t<std::is_same_v<T, f16>, float, double>;
  static constexpr bool arg = false;
  __device__ __forceinline__ State identity() const { return State{}; }
  template <int N>
  __device__ __forceinline__ void take(State& state, const Pack<T, N>& elements, Index,
                                       Index = 1) const {
    Pack<Square, N> v;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const auto one = static_cast<Square>(convert<Accumulator<T>>(elements[i]));
      v[i] = one * one;
    }
    state = join_sums(state, to_state<State>(static_cast<double>(pair_sum<N>(v))));
  }
  __device__ __forceinline__ State join(const State& a, const State& b) const {
    return join_sums(a, b);
  }
};

template <class T>
struct ProductFold {
  using Element = T;
  using State = std::conditional_t<std::is_integral_v<T>, Index, double>;
  using Factor = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;
  static constexpr bool arg = false;
  __device__ __forceinline__ State identity() const { return 1; }
  template <int N>
  __device__ __forceinline__ void take(State& state, const Pack<T, N>& elements, Index,
                                       Index = 1) const {
    auto product = static_cast<Factor>(state);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      product *= static_cast<Factor>(convert<Accumulator<T>>(elements[i]));
    }
    state = static_cast<State>(product);
  }
  __device__ __forceinline__ State join(State a, State b) const {
    return static_cast<State>(static_cast<Factor>(a) * static_cast<Factor>(b));
  }
};

/// Type in which extremes of T are compared.
template <class T>
using Compared = std::conditional_t<std::is_class_v<T>, float,
                                    std::conditional_t<sizeof(T) < 4, std::int32_t, T>>;

template <class V>
__device__ __forceinline__ bool is_nan(V v) {
  if constexpr (std::is_integral_v<V>) {
    return false;
  } else {
    return v != v;
  }
}

/// Returns the smaller value; NaN if either is NaN.
template <class V>
__device__ __forceinline__ V min_of(V a, V b) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<V, float>) {
    float result;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
  }
#endif
  return is_nan(a) || a < b ? a : b;
}

/// Order-reversing map: a maximum is the minimum of -v, or of ~v for integers, which cannot
/// overflow.
struct Flip {
  bool on = false;
  template <class V>
  __device__ __forceinline__ V operator()(V v) const {
    if constexpr (std::is_integral_v<V>) {
      return on ? static_cast<V>(~v) : v;
    } else {
      return on ? -v : v;
    }
  }
};

template <class V>
__device__ __forceinline__ V greatest_value() {
  if constexpr (std::is_same_v<V, float>) {
    return __builtin_bit_cast(float, 0x7f800000u);
  } else if constexpr (std::is_same_v<V, double>) {
    return __builtin_bit_cast(double, std::uint64_t{0x7ff0000000000000u});
  } else {
    return static_cast<V>(~(std::make_unsigned_t<V>{1} << (8 * sizeof(V) - 1)));
  }
}

template <class T>
struct ExtremeFold {
  using Element = T;
  using State = Compared<T>;
  static constexpr bool arg = false;
  Flip flip;
  __device__ __forceinline__ State identity() const { return greatest_value<State>(); }
  template <int N>
  __device__ __forceinline__ void take(State& state, const Pack<T, N>& elements, Index,
                                       Index = 1) const {
#pragma unroll
    for (int i = 0; i < N; ++i) state = min_of(state, flip(convert<State>(elements[i])));
  }
  __device__ __forceinline__ State join(State a, State b) const { return min_of(a, b); }
};

template <class V>
struct Position {
  V value;
  // Two 4-byte words: a position of f32 takes 12 bytes and three shuffles.
  std::uint32_t low, high;
  [[nodiscard]] __device__ __forceinline__ Index index() const {
    return static_cast<Index>(std::uint64_t{high} << 32 | low);
  }
};

template <class T>
struct PositionFold {
  using Element = T;
  using Value = Compared<T>;
  using State = Position<Value>;
  static constexpr bool arg = true;
  Flip flip;
  __device__ __forceinline__ State identity() const {
    return {greatest_value<Value>(), 0xffffffffu, 0xffffffffu};
  }
  __device__ __forceinline__ static State at(Value value, Index index) {
    return {value, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32)};
  }
  /// Accumulates a pack whose first element has index `first`; indices of its elements are `step`
  /// apart.
  template <int N>
  __device__ __forceinline__ void take(State& state, const Pack<T, N>& elements, Index first,
                                       Index step = 1) const {
    Value best = flip(convert<Value>(elements[0]));
    int where = 0;
#pragma unroll
    for (int i = 1; i < N; ++i) {
      const Value v = flip(convert<Value>(elements[i]));
      const bool better = !is_nan(best) && (is_nan(v) || v < best);
      best = better ? v : best;
      where = better ? i : where;
    }
    state = join(state, at(best, first + where * step));
  }
  /// Returns the smaller value, NaN before numbers, and the lower index of equal values;
  /// independent of the order of arguments.
  __device__ __forceinline__ State join(const State& a, const State& b) const {
    if (a.index() < 0) return b;
    if (b.index() < 0) return a;
    const bool a_nan = is_nan(a.value);
    const bool b_nan = is_nan(b.value);
    const bool tie = a_nan ? b_nan : a.value == b.value;
    const bool b_better = a_nan ? false : b_nan || b.value < a.value;
    return b_better || (tie && b.index() < a.index()) ? b : a;
  }
};

}  // namespace rung::reduce_cuda::inline RUNG_TARGET
