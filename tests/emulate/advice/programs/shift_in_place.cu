// SPDX-License-Identifier: Apache-2.0
// A shift by one within one array.
#include "check.cuh"

__global__ void shift(int* v) {
  __shared__ int s[96];
  const int t = threadIdx.x;
  s[t] = v[t];
  __syncthreads();
#ifdef BUG
  if (t < 95) s[t] = s[t + 1];
#else
  int next = t < 95 ? s[t + 1] : s[t];
  __syncthreads();
  s[t] = next;
#endif
  __syncthreads();
  v[t] = s[t];
}
int main() {
  Array<int> v(96);
  for (int i = 0; i < 96; ++i) v[i] = i;
  v.up();
  shift<<<1, 96>>>(v.device);
  v.down();
  for (int i = 0; i < 95; ++i) CHECK(v[i] == i + 1);
  return ok();
}
