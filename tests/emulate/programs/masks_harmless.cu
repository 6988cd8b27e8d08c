// SPDX-License-Identifier: Apache-2.0
// Masks that name lanes which have returned, and values of absent lanes that nobody uses: CUDA
// defines all of it, and none is a finding.
#include "check.cuh"

/// 16 lanes, of which the upper 8 read lanes outside of the mask, in vain.
__global__ void half(const int* in, int* out) {
  const int t = threadIdx.x;
  if (t >= 16) return;
  int v = in[t];
  for (int d = 8; d > 0; d /= 2) v += __shfl_down_sync(0x0000ffffu, v, d);
  if (t == 0) out[0] = v;
}

/// Lanes behind the end return; others drop what they read from those.
__global__ void tail(const int* in, int* out, int n) {
  const int i = threadIdx.x;
  if (i >= n) {
    out[i] = 0;
    return;
  }
  int v = in[i];
  __syncwarp();
  for (int d = 16; d > 0; d /= 2) {
    const int other = __shfl_down_sync(0xffffffffu, v, d);
    if (i + d < n) v += other;
  }
  const int sum = __shfl_sync(0xffffffffu, v, 0);
  const int next = __shfl_down_sync(0xffffffffu, in[i], 1);
  out[i] = sum + (i + 1 < n ? next : 0);
}

/// The guard as a branch around all the rest: nobody goes on behind it.
__global__ void guarded(const float* in, float* out, int n) {
  const int i = threadIdx.x;
  if (i < n) {
    float v = in[i];
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    if (__any_sync(0xffffffffu, v > 1e9f)) v = 0;
    out[i] = v;
  }
}

/// Lanes that have fewer rounds than others end behind the loop.
__global__ void rounds(const int* in, int* out, int n) {
  const int t = threadIdx.x;
  for (int i = t; i < n; i += 32) {
    const unsigned same = __match_any_sync(__activemask(), in[i]);
    out[i] = __popc(same) > 0 ? in[i] : 0;
  }
}

int main() {
  const int n = 20, many = 84;
  Array<int> in(many), out(many);
  Array<float> values(32), results(32);
  for (int i = 0; i < many; ++i) in[i] = i;
  for (int i = 0; i < 32; ++i) values[i] = i;
  in.up();
  values.up();
  half<<<1, 32>>>(in.device, out.device);
  out.down();
  CHECK(out[0] == 15 * 16 / 2);
  tail<<<1, 32>>>(in.device, out.device, n);
  out.down();
  for (int i = 0; i < n; ++i) CHECK(out[i] == n * (n - 1) / 2 + (i + 1 < n ? i + 1 : 0));
  CHECK(out[n] == 0);
  guarded<<<1, 32>>>(values.device, results.device, n);
  results.down();
  for (int i = 0; i < n; ++i) CHECK(results[i] == i + (i ^ 1));
  rounds<<<1, 32>>>(in.device, out.device, many);
  out.down();
  for (int i = 0; i < many; ++i) CHECK(out[i] == i);
  return ok();
}
