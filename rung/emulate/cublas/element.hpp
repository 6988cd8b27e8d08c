// SPDX-License-Identifier: Apache-2.0
// Elements whose type is a run-time value, converted to and from the compute type.
#pragma once

#include "cuda_fp8.h"
#include "rung/emulate/cublas/call.hpp"

namespace rung::cublas {

template <class Sum, class T>
Sum convert(const T& value) {
  if constexpr (std::is_same_v<Sum, T>) {
    return value;
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<Sum>(value);
  } else {
    return static_cast<Sum>(static_cast<float>(value));
  }
}

/// Calls use(p) with `data` cast to a pointer p to the element type, for types that convert to Sum.
template <class Sum, class Use>
auto with_type(cudaDataType type, const void* data, const Use& use) {
  void* const at = const_cast<void*>(data);
  if constexpr (std::is_same_v<Sum, float>) {
    switch (type) {
      case CUDA_R_16F:
        return use(static_cast<__half*>(at));
      case CUDA_R_16BF:
        return use(static_cast<__nv_bfloat16*>(at));
      case CUDA_R_8F_E4M3:
        return use(static_cast<__nv_fp8_e4m3*>(at));
      case CUDA_R_8F_E5M2:
        return use(static_cast<__nv_fp8_e5m2*>(at));
      case CUDA_R_8I:
        return use(static_cast<signed char*>(at));
      default:
        return use(static_cast<float*>(at));
    }
  } else if constexpr (std::is_same_v<Sum, int>) {
    if (type == CUDA_R_8I) return use(static_cast<signed char*>(at));
    return use(static_cast<int*>(at));
  } else {
    return use(static_cast<Sum*>(at));
  }
}

template <class Sum>
Sum get(cudaDataType type, const void* data, long long i) {
  return with_type<Sum>(type, data, [i](auto* of) { return convert<Sum>(of[i]); });
}
template <class Sum>
void put(cudaDataType type, void* data, long long i, Sum value) {
  with_type<Sum>(type, data, [i, value](auto* of) {
    using T = std::remove_cvref_t<decltype(*of)>;
    if constexpr (std::is_same_v<T, signed char> && std::is_same_v<Sum, float>) {
      const float nearest = rintf(value);
      of[i] = static_cast<T>(nearest < -128 ? -128 : nearest > 127 ? 127 : nearest);
    } else {
      of[i] = static_cast<T>(value);
    }
  });
}

}  // namespace rung::cublas
