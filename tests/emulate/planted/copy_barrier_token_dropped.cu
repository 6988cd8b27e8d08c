// SPDX-License-Identifier: Apache-2.0
// A block's barrier does not wait for copies that an asynchronous barrier tracks: a wait for its
// token does.
#include <cooperative_groups.h>
#include <cuda/barrier>

#include "../programs/check.cuh"

__global__ void reverse(const int* in, int* out) {
  __shared__ alignas(16) int kept[128];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  const int t = threadIdx.x;
  if (t == 0) init(&barrier, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(&kept[t], &in[128 * blockIdx.x + t], sizeof(int), barrier);  // expect: race
  auto token = barrier.arrive();
#ifdef BUG
  (void)token;
#else
  barrier.wait(std::move(token));
#endif
  __syncthreads();
  out[128 * blockIdx.x + t] = kept[127 - t];  // expect: race
}

int main() {
  Array<int> in(512), out(512);
  for (int i = 0; i < 512; ++i) in[i] = i;
  in.up();
  reverse<<<4, 128>>>(in.device, out.device);
#ifndef BUG
  out.down();
  for (int i = 0; i < 512; ++i) CHECK(out[i] == i / 128 * 128 + 127 - i % 128);
#endif
  return ok();
}
