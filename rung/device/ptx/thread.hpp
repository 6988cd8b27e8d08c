// SPDX-License-Identifier: Apache-2.0
// Small PTX features of a thread or block: lane index, named barriers, approximate functions.
#pragma once

#include "rung/device/device.hpp"

namespace rung::inline RUNG_TARGET::ptx {

#if defined(__CUDACC__)

__device__ __forceinline__ int lane_index() {
  int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

/// Waits at named barrier `id` (1 to 15; 0 is __syncthreads) until `threads` threads, a multiple of
/// 32, have arrived; synchronizes a subset of a block's warps.
__device__ __forceinline__ void barrier_sync(int id, int threads) {
  asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
/// Arrives at named barrier `id` without waiting, as a producer.
__device__ __forceinline__ void barrier_arrive(int id, int threads) {
  asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// Returns 1 / value with an error of at most 1 ulp; flushes subnormals to zero.
__device__ __forceinline__ float fast_reciprocal(float value) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}
/// Returns 2^value with a relative error of 2^-22; flushes subnormals to zero.
__device__ __forceinline__ float fast_exp2(float value) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}
/// Returns the maximum; NaN if either operand is NaN.
__device__ __forceinline__ float max_or_nan(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
/// Returns tanh(value) with an absolute error of about 2^-11.
__device__ __forceinline__ float fast_tanh(float value) {
  float result;
  asm("tanh.approx.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}

#else

inline int lane_index() { return simt::lane_index(); }
inline void barrier_sync(int id, int threads, simt::Place place = simt::Place::current()) {
  simt::named_barrier_sync(id, threads, place);
}
inline void barrier_arrive(int id, int threads, simt::Place place = simt::Place::current()) {
  simt::named_barrier_arrive(id, threads, place);
}
inline float fast_reciprocal(float value) { return 1.0f / value; }
inline float fast_exp2(float value) { return exp2f(value); }
inline float max_or_nan(float a, float b) { return a != a || a > b ? a : b; }
inline float fast_tanh(float value) { return tanhf(value); }

#endif

}  // namespace rung::inline RUNG_TARGET::ptx
