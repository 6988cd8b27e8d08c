// SPDX-License-Identifier: Apache-2.0
// Threads that have returned are not waited for: since compute capability 7.0 a barrier is
// complete when all that are left have come.
#include "check.cuh"

__global__ void first_half(const int* in, int* out) {
  __shared__ int kept[32];
  const int t = threadIdx.x;
  if (t >= 32) return;
  kept[t] = in[t];
  __syncthreads();
  out[t] = kept[31 - t];
}
__global__ void parted(const int* in, int* out) {
  __shared__ int kept[64];
  const int t = threadIdx.x;
  if (t % 2 == 1) return;
  kept[t] = in[t];
  __syncthreads();
  out[t] = kept[62 - t];
}

int main() {
  Array<int> in(64), out(64);
  for (int i = 0; i < 64; ++i) in[i] = 3 * i;
  in.up();
  first_half<<<1, 64>>>(in.device, out.device);
  out.down();
  for (int i = 0; i < 32; ++i) CHECK(out[i] == 3 * (31 - i));
  parted<<<1, 64>>>(in.device, out.device);
  out.down();
  for (int i = 0; i < 64; i += 2) CHECK(out[i] == 3 * (62 - i));
  return ok();
}
