// SPDX-License-Identifier: Apache-2.0
// wmma: CUDA's warp matrix functions, under the same names in nvcc and the simulator.
//
// wmma::element<T> is the fragment element type for rung's T (__half for f16 under nvcc);
// wmma::native(p) casts a pointer to it. Fragments of tf32 (wmma::precision::tf32) hold floats,
// which wmma::to_tf32 rounds: tensor cores truncate.
#pragma once

#include <type_traits>

#include "rung/core/dtype.hpp"
#include "rung/device/device.hpp"

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
#else
#include "rung/simt/wmma.hpp"
#endif

namespace rung::inline RUNG_TARGET::wmma {

#if defined(__CUDACC__)
using namespace nvcuda::wmma;  // NOLINT: this namespace extends CUDA's by three names

template <class T>
using element = std::conditional_t<std::is_same_v<T, f16>, __half,
                                   std::conditional_t<std::is_same_v<T, bf16>, __nv_bfloat16, T>>;
__device__ __forceinline__ float to_tf32(float value) { return __float_to_tf32(value); }
#else
using namespace simt::wmma;  // NOLINT

template <class T>
using element = T;
inline float to_tf32(float value) { return simt::round_to_tf32(value); }
#endif

template <class T>
__device__ __forceinline__ element<T>* native(T* p) {
  return reinterpret_cast<element<T>*>(p);
}
template <class T>
__device__ __forceinline__ const element<T>* native(const T* p) {
  return reinterpret_cast<const element<T>*>(p);
}

}  // namespace rung::inline RUNG_TARGET::wmma
