// SPDX-License-Identifier: Apache-2.0
// Conversion of states to y's type and their stores: the end of every CUDA reduction.
#pragma once

#include "rung/ops/reduce/cuda/detail/states.hpp"

namespace rung::reduce_cuda::inline RUNG_TARGET {

/// Destination of a result, and its conversion.
struct Result {
  void* y;
  DType dtype;
  Reduction operation;
  bool flipped;
};

inline Result result_of(const Reduce::Args& args) {
  return {args.y.data, args.y.dtype, args.operation,
          reduce_fold::fold_of(args.operation) == reduce_fold::Fold::greatest};
}

__device__ __forceinline__ void store_integer(const Result& to, Index at, Index value) {
  const bool extreme = to.operation == Reduction::min || to.operation == Reduction::max;
  // Only the extreme of an empty fold is out of range; other results keep their low bits.
  const auto put = [&](auto* y, Index lowest, Index highest) {
    if (extreme) value = value < lowest ? lowest : value > highest ? highest : value;
    using Y = std::remove_pointer_t<decltype(y)>;
    y[at] = static_cast<Y>(value);
  };
  switch (to.dtype) {
    case DType::i8:
      return put(static_cast<std::int8_t*>(to.y), -128, 127);
    case DType::u8:
      return put(static_cast<std::uint8_t*>(to.y), 0, 255);
    case DType::u16:
      return put(static_cast<std::uint16_t*>(to.y), 0, 65535);
    case DType::i32:
      return put(static_cast<std::int32_t*>(to.y), -Index{0x7fffffff} - 1, 0x7fffffff);
    default:
      static_cast<std::int64_t*>(to.y)[at] = value;
  }
}

__device__ __forceinline__ void store_floating(const Result& to, Index at, double value,
                                               Index terms) {
  if (to.operation == Reduction::mean) value /= static_cast<double>(terms);
  if (to.operation == Reduction::norm) value = sqrt(value);
  switch (to.dtype) {
    case DType::f32:
      static_cast<float*>(to.y)[at] = static_cast<float>(value);
      return;
    case DType::f64:
      static_cast<double*>(to.y)[at] = value;
      return;
    case DType::f16:
      static_cast<f16*>(to.y)[at] = convert<f16>(static_cast<float>(value));
      return;
    default:
      static_cast<bf16*>(to.y)[at] = convert<bf16>(static_cast<float>(value));
  }
}

/// Converts a state of `terms` terms and stores it to y[at].
template <class F>
__device__ __forceinline__ void store_state(const Result& to, Index at,
                                            const typename F::State& state, Index terms) {
  const Flip flip{to.flipped};
  if constexpr (F::arg) {
    store_integer(to, at, state.index());
  } else if constexpr (std::is_same_v<typename F::State, TwoDoubles>) {
    store_floating(to, at, state.value + state.rest, terms);
  } else if constexpr (std::is_integral_v<typename F::State>) {
    if (to.operation == Reduction::mean) {
      store_floating(to, at, static_cast<double>(state), terms);
    } else {
      store_integer(to, at, flip(state));
    }
  } else {
    store_floating(to, at, static_cast<double>(flip(state)), terms);
  }
}

}  // namespace rung::reduce_cuda::inline RUNG_TARGET
