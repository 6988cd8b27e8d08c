// SPDX-License-Identifier: Apache-2.0
// Who has a copy complete at a cuda::barrier waits there before it reads what comes.
#include <cuda/barrier>

#include "../programs/check.cuh"

__global__ void reverse(const int* in, int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ alignas(16) int kept[64];
  const int t = threadIdx.x;
  if (t == 0) init(&barrier, 64);
  __syncthreads();
  cuda::memcpy_async(&kept[t], &in[t], cuda::aligned_size_t<4>(4), barrier);  // expect: race
  auto token = barrier.arrive();
#ifdef BUG
  __syncthreads();
  out[t] = kept[63 - t];  // expect: race
  barrier.wait(static_cast<decltype(token)&&>(token));
#else
  barrier.wait(static_cast<decltype(token)&&>(token));
  out[t] = kept[63 - t];
#endif
}

int main() {
  Array<int> in(64), out(64);
  reverse<<<1, 64>>>(in.device, out.device);
  return ok();
}
