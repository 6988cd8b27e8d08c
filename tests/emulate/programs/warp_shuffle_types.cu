// SPDX-License-Identifier: Apache-2.0
// Shuffles of every type, in segments, up, down and across.
#include <cuda_fp16.h>

#include "check.cuh"

__global__ void exchange(double* d, long long* l, unsigned short* h, float* f) {
  const int t = threadIdx.x;
  d[t] = __shfl_xor_sync(~0u, t + 0.25, 5);
  l[t] = __shfl_up_sync(~0u, (1ll << 40) + t, 3, 8);
  const __half half = __shfl_down_sync(~0u, __int2half_rn(t), 2, 16);
  h[t] = static_cast<unsigned short>(__half2int_rn(half));
  const __half2 pair = __shfl_sync(~0u, __floats2half2_rn(t, -t), 9);
  f[t] = __low2float(pair) - __high2float(pair);
}

int main() {
  Array<double> d(32);
  Array<long long> l(32);
  Array<unsigned short> h(32);
  Array<float> f(32);
  exchange<<<1, 32>>>(d.device, l.device, h.device, f.device);
  d.down();
  l.down();
  h.down();
  f.down();
  for (int t = 0; t < 32; ++t) {
    CHECK(d[t] == (t ^ 5) + 0.25);
    CHECK(l[t] == (1ll << 40) + (t % 8 < 3 ? t : t - 3));
    CHECK(h[t] == (t % 16 < 14 ? t + 2 : t) && f[t] == 18);
  }
  return ok();
}
