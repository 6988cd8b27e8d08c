// SPDX-License-Identifier: Apache-2.0
// Pairs of halves: comparisons, masks, mathematics, atomics, shuffles.
#include <cuda_fp16.h>

#include "check.cuh"

__global__ void compute(float* out, __half* sum, __half2* pairs) {
  const int t = threadIdx.x;
  atomicAdd(sum, __float2half(1.0f));
  atomicAdd(pairs, __floats2half2_rn(1.0f, 2.0f));
  __half v = __int2half_rn(t);
  for (int offset = 16; offset > 0; offset /= 2)
    v = __hadd(v, __shfl_down_sync(0xffffffff, v, offset));
  if (t != 0) return;
  out[0] = __half2float(v);
  const __half2 a = __floats2half2_rn(1.0f, 4.0f), b = __floats2half2_rn(2.0f, 4.0f);
  out[1] = __hbeq2(a, b) + 2 * __hble2(a, b);
  out[2] = __low2float(__hlt2(a, b)) + 10 * __high2float(__hlt2(a, b));
  out[3] = __high2float(h2sqrt(a)) + __low2float(__hmax2(a, b));
  out[4] = __half2int_rn(__float2half(2.5f)) + 10 * __half2int_rz(__float2half(-2.5f));
  out[5] = __half2float(__habs(__float2half(-3.0f))) + __half2float(hfloor(__float2half(2.7f)));
  out[6] = __hisnan(__float2half(nanf(""))) + 2 * __hisinf(__float2half(1e10f));
}

int main() {
  Array<float> out(7);
  Array<__half> sum(1);
  Array<__half2> pairs(1);
  compute<<<1, 32>>>(out.device, sum.device, pairs.device);
  out.down();
  sum.down();
  pairs.down();
  CHECK(__half2float(sum[0]) == 32 && __low2float(pairs[0]) == 32 && __high2float(pairs[0]) == 64);
  CHECK(out[0] == 496 && out[1] == 2 && out[2] == 1 && out[3] == 4 && out[4] == 2 - 20 &&
        out[5] == 5 && out[6] == 3);
  return ok();
}
