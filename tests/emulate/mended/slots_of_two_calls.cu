// SPDX-License-Identifier: Apache-2.0
// A reduction of the block called twice: the second call fills slots that are still read.
#include "check.cuh"

template <class F>
__device__ int reduce(int v, int* slots, F f) {
#ifndef BUG
  __syncthreads();
#endif
  for (int d = 16; d; d /= 2) v = f(v, __shfl_down_sync(~0u, v, d));
  if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = v;  // expect: race
  __syncthreads();
  int result = slots[0];                                                    // expect: race
  for (int w = 1; w < blockDim.x / 32; w++) result = f(result, slots[w]);  // expect: race
  return result;
}
__global__ void above(int* out, const int* in) {
  __shared__ int slots[32];
  const int v = in[threadIdx.x];
  const int most = reduce(v, slots, [](int a, int b) { return a > b ? a : b; });
  out[threadIdx.x] = reduce(most - v, slots, [](int a, int b) { return a + b; });
}

int main() {
  Array<int> in(128), out(128);
  for (int i = 0; i < 128; i++) in[i] = i;
  in.up();
  above<<<1, 128>>>(out.device, in.device);
  out.down();
  for (int i = 0; i < 128; i++) CHECK(out[i] == 127 * 64);
  return ok();
}
// says: at the beginning of reduce
