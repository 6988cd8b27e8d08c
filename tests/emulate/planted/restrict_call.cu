// SPDX-License-Identifier: Apache-2.0
// A histogram whose counts are where its keys do: the reads of an argument, the writes by atomics.
#include "../programs/check.cuh"

__global__ void count(int* __restrict bins, const int* __restrict keys, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[i], __ldg(&keys[i]) % 8);  // expect: overlap
}

int main() {
  Array<int> data(128);
  for (int i = 0; i < 128; ++i) data[i] = i;
  data.up();
#ifdef BUG
  count<<<1, 64>>>(data.device + 63, data.device, 64);
#else
  count<<<1, 64>>>(data.device + 64, data.device, 64);
#endif
  data.down();
  CHECK(data[127] == 127 || data[127] == 127 + 63 % 8);
  return ok();
}
