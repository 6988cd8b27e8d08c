// SPDX-License-Identifier: Apache-2.0
// elementwise: typed tensors as kernel arguments, and the computation of one element.
#pragma once

#include <cstdint>
#include <tuple>
#include <utility>

#include "rung/core/collapse.hpp"
#include "rung/device/load.hpp"

namespace rung::elementwise_cuda::inline RUNG_TARGET {

/// One output and up to three inputs under one index. Small floats are computed in f32.
template <class OutType, class... In>
struct Tensors {
  using Out = OutType;
  static constexpr int inputs = sizeof...(In);
  static constexpr int all = inputs + 1;
  template <int I>
  using Input = std::tuple_element_t<static_cast<std::size_t>(I), std::tuple<In...>>;
  using Indices = std::make_integer_sequence<int, inputs>;
  static constexpr int widest = []() {
    int most = sizeof(Out);
    ((most = static_cast<int>(sizeof(In)) > most ? static_cast<int>(sizeof(In)) : most), ...);
    return most;
  }();

  /// Returns the element size of input I; 1 for a missing input.
  template <int I>
  static constexpr std::size_t input_size() {
    if constexpr (I < inputs) {
      return sizeof(Input<I>);
    } else {
      return 1;
    }
  }

  Out* out;
  const void* in[inputs];
  Collapsed<all> layout;  // strides of the output, then of the inputs

  template <int I>
  __device__ __forceinline__ const Input<I>* input() const {
    return static_cast<const Input<I>*>(in[I]);
  }
  [[nodiscard]] std::int64_t size() const { return layout.size(); }
};

/// Returns f of one value per input. Inputs are converted to the type of their arithmetic (f32 for
/// small floats), the result to the output's type.
template <class T, class F, class... Values>
__device__ __forceinline__ typename T::Out apply(const F& f, const Values&... values) {
  return convert<typename T::Out>(f(convert<Accumulator<Values>>(values)...));
}

namespace detail {
template <class T, class F, int... I>
__device__ __forceinline__ void compute(const T& tensors, const F& f,
                                        const std::int64_t (&at)[T::all],
                                        std::integer_sequence<int, I...>) {
  tensors.out[at[0]] = apply<T>(f, tensors.template input<I>()[at[I + 1]]...);
}
}  // namespace detail

/// Computes the element at these offsets, one per tensor.
template <class T, class F>
__device__ __forceinline__ void compute(const T& tensors, const F& f,
                                        const std::int64_t (&at)[T::all]) {
  detail::compute(tensors, f, at, typename T::Indices{});
}

/// Computes element `index` of tensors that are contiguous in the same order.
template <class T, class F>
__device__ __forceinline__ void compute_flat(const T& tensors, const F& f, std::int64_t index) {
  std::int64_t at[T::all];
#pragma unroll
  for (int i = 0; i < T::all; ++i) at[i] = index;
  compute(tensors, f, at);
}

/// Computes element `index` in the order of the layout; without a division if one axis remains.
template <class T, class F>
__device__ __forceinline__ void compute_at(const T& tensors, const F& f, std::int64_t index) {
  std::int64_t at[T::all];
  if (tensors.layout.rank <= 1) {
#pragma unroll
    for (int i = 0; i < T::all; ++i) at[i] = index * tensors.layout.strides[i][0];
  } else {
    tensors.layout.offsets(index, at);
  }
  compute(tensors, f, at);
}

}  // namespace rung::elementwise_cuda::inline RUNG_TARGET
