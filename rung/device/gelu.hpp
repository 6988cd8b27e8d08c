// SPDX-License-Identifier: Apache-2.0
// GELU on a GPU: in full f32 accuracy, for 16-bit results, and in f64.
//
//   gelu(x) = x Phi(x) = max(x, 0) - |x| Phi(-|x|)          without cancellation
//   Phi(-u) = e^(-u^2 / 2) t P(t)                           t = 1 / (1 + c u), P a polynomial
//
// The power of two is multiplied last: Phi(-|x|) may be subnormal although |x| Phi(-|x|) is normal.
#pragma once

#include <cmath>

#include "rung/device/device.hpp"
#include "rung/device/ptx/thread.hpp"

namespace rung::inline RUNG_TARGET {

/// Computes GELU with an error of at most 7 ulp if the result is a normal number.
__device__ __forceinline__ float gelu_f32(float x) {
  // P interpolates at Chebyshev nodes for u up to 14, with a relative error of 4.4e-9.
  constexpr float p[] = {0.119687693145F,  0.119551763229F,   0.110405179847F, 0.0775890643774F,
                         0.0984807401835F, -0.0837425490162F, 0.196940677017F, -0.232038482936F,
                         0.114040272074F,  -0.0209143597288F};
  const float u = fminf(fabsf(x), 14.6F);  // beyond, the tail is 0
  const float t = 1.0F / fmaf(0.3F, u, 1.0F);
  float sum = p[9];
#pragma unroll
  for (int i = 8; i >= 0; --i) sum = fmaf(sum, t, p[i]);
  // `lost` is the rounding error of u * u, which the exponential would amplify by u^2 / 2. ln 2 is
  // in two parts, the first with few significant bits: its product with n is exact.
  const float square = u * u;
  const float lost = fmaf(u, u, -square);
  const float n = rintf(square * -0.72134752F);
  float rest = fmaf(n, -0.693359375F, square * -0.5F);
  rest = fmaf(n, 2.12194440e-4F, rest);
  rest = fmaf(lost, -0.5F, rest);
  const float tail = u * t * sum * ptx::fast_exp2(rest * 1.44269504F);
  // 2^n, n >= -154, as a product of two normal numbers.
  const int half = static_cast<int>(n) / 2;
  const int other = static_cast<int>(n) - half;
  const auto power = [](int exponent) { return __int_as_float((exponent + 127) << 23); };
  return (x < 0.0F ? 0.0F : x) - tail * power(half) * power(other);
}

/// Computes GELU for 16-bit results: relative error below 2^-16 if |x| has at most 11 significant
/// bits.
__device__ __forceinline__ float gelu_brief(float x) {
  // Minimax P for u up to 14, relative error 4.7e-6, times 2^-32: e^(-u^2 / 2) is scaled by 2^32,
  // since fast_exp2 flushes subnormal numbers to zero.
  constexpr float scale = 0x1p-32F;
  constexpr float p[] = {0.123860702F * scale,  0.12044128F * scale,  0.133429762F * scale,
                         0.0157447608F * scale, 0.180450298F * scale, -0.0739291245F * scale};
  const float u = fminf(fabsf(x), 30.0F);  // beyond, the tail is 0; infinity times 0 would be NaN
  const float t = ptx::fast_reciprocal(fmaf(0.31F, u, 1.0F));
  const float power = ptx::fast_exp2(fmaf(u * u, -0.72134752F, 32.0F));
  float sum = p[5];
#pragma unroll
  for (int i = 4; i >= 0; --i) sum = fmaf(sum, t, p[i]);
  // u * t * power is still scaled by 2^32; only the product with sum may underflow.
  return fmaf(-sum, u * t * power, ptx::max_or_nan(x, 0.0F));
}

/// Computes x Phi(x), by normcdf on the GPU, which is accurate in the tail, else by erfc in long
/// double.
__device__ __forceinline__ double gelu_f64(double x) {
  if (x < -40) return 0;  // as the limit; -infinity * 0 would be NaN
#if defined(__CUDA_ARCH__)
  return x * normcdf(x);
#else
  const long double wide = x;
  return static_cast<double>(wide * erfcl(wide * -0.70710678118654752440L) * 0.5L);
#endif
}

}  // namespace rung::inline RUNG_TARGET
