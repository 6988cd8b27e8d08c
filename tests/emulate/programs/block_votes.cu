// SPDX-License-Identifier: Apache-2.0
// __syncthreads_count, _and and _or.
#include "check.cuh"

__global__ void vote(int* out) {
  const int t = threadIdx.x;
  const int count = __syncthreads_count(t % 3 == 0);
  const int all = __syncthreads_and(t < 100);
  const int not_all = __syncthreads_and(t != 50);
  const int any = __syncthreads_or(t == 77);
  const int none = __syncthreads_or(t == 1000);
  out[t] = count + 1000 * all + 2000 * not_all + 4000 * any + 8000 * none;
}

int main() {
  Array<int> out(96);
  vote<<<1, 96>>>(out.device);
  out.down();
  for (int i = 0; i < 96; ++i) CHECK(out[i] == 32 + 1000 + 4000);
  return ok();
}
