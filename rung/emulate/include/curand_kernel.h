// SPDX-License-Identifier: Apache-2.0
// cuRAND device interface: Philox4x32-10 (Salmon et al. 2011), XORWOW (Marsaglia 2003) and MRG32k3a
// (L'Ecuyer 1999) with uniform, normal, log-normal and Poisson distributions; Sobol sequences.
// Sequences are 2^64 blocks of four numbers apart for Philox, 2^67 numbers for XORWOW, 2^76 for
// MRG32k3a.
#pragma once

#include "cuda_runtime.h"
#include "rung_cuda/mrg32k3a.h"
#include "rung_cuda/random_engines.h"
#include "rung_cuda/sobol.h"

template <class State>
inline float curand_uniform(State* state) {
  return rung::cuda::uniform_float(curand(state));
}
template <class State>
inline double curand_uniform_double(State* state) {
  const unsigned x = curand(state), y = curand(state);
  return rung::cuda::uniform_double(x, y);
}
template <class State>
inline float2 curand_normal2(State* state) {
  const unsigned x = curand(state), y = curand(state);
  return rung::cuda::normal_pair(x, y);
}
/// Returns a normally distributed number. Numbers are generated in pairs; the second one is cached
/// for the next call.
template <class State>
inline float curand_normal(State* state) {
  if (state->boxmuller_flag != 0) {
    state->boxmuller_flag = 0;
    return state->boxmuller_extra;
  }
  const float2 pair = curand_normal2(state);
  state->boxmuller_extra = pair.y;
  state->boxmuller_flag = 1;
  return pair.x;
}
template <class State>
inline double2 curand_normal2_double(State* state) {
  const double u = curand_uniform_double(state), v = curand_uniform_double(state);
  const double radius = sqrt(-2 * log(u));
  return {radius * sin(2 * CUDART_PI * v), radius * cos(2 * CUDART_PI * v)};
}
template <class State>
inline double curand_normal_double(State* state) {
  if (state->boxmuller_flag_double != 0) {
    state->boxmuller_flag_double = 0;
    return state->boxmuller_extra_double;
  }
  const double2 pair = curand_normal2_double(state);
  state->boxmuller_extra_double = pair.y;
  state->boxmuller_flag_double = 1;
  return pair.x;
}
template <class State>
inline float curand_log_normal(State* state, float mean, float deviation) {
  return expf(mean + deviation * curand_normal(state));
}
template <class State>
inline double curand_log_normal_double(State* state, double mean, double deviation) {
  return exp(mean + deviation * curand_normal_double(state));
}
/// Returns a Poisson-distributed number: for rates up to 4000 by Knuth's product of uniform
/// numbers, else by a normal approximation.
template <class State>
inline unsigned curand_poisson(State* state, double rate) {
  if (rate > 4000) {
    const double x = rate + sqrt(rate) * curand_normal_double(state);
    return x < 0 ? 0u : static_cast<unsigned>(x + 0.5);
  }
  double left = rate;
  unsigned count = 0;
  double product = curand_uniform_double(state);
  for (;;) {
    // Multiplies in steps, since exp(-rate) underflows for large rates.
    while (product < 1 && left > 0) {
      const double step = left < 500 ? left : 500;
      product *= exp(step);
      left -= step;
    }
    if (product <= 1) return count;
    ++count;
    product *= curand_uniform_double(state);
  }
}

inline uint4 curand4(curandStatePhilox4_32_10_t* state) {
  const unsigned x = curand(state), y = curand(state), z = curand(state), w = curand(state);
  return {x, y, z, w};
}
inline float4 curand_uniform4(curandStatePhilox4_32_10_t* state) {
  using rung::cuda::uniform_float;
  const uint4 x = curand4(state);
  return {uniform_float(x.x), uniform_float(x.y), uniform_float(x.z), uniform_float(x.w)};
}
inline double2 curand_uniform2_double(curandStatePhilox4_32_10_t* state) {
  const uint4 x = curand4(state);
  return {rung::cuda::uniform_double(x.x, x.y), rung::cuda::uniform_double(x.z, x.w)};
}
inline float4 curand_normal4(curandStatePhilox4_32_10_t* state) {
  const uint4 x = curand4(state);
  const float2 a = rung::cuda::normal_pair(x.x, x.y), b = rung::cuda::normal_pair(x.z, x.w);
  return {a.x, a.y, b.x, b.y};
}
