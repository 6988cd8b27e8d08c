// SPDX-License-Identifier: Apache-2.0
// Dynamic shared memory that the launch does not give.
#include "check.cuh"

__global__ void reverse(int* data) {
  extern __shared__ int buffer[];
  const int t = threadIdx.x;
  buffer[t] = data[t];
  __syncthreads();
  data[t] = buffer[blockDim.x - 1 - t];
}

int main() {
  Array<int> data(128);
  for (int i = 0; i < 128; ++i) data[i] = i;
  data.up();
#ifdef BUG
  reverse<<<1, 128>>>(data.device);
#else
  reverse<<<1, 128, 128 * sizeof(int)>>>(data.device);
#endif
  data.down();
  for (int i = 0; i < 128; ++i) CHECK(data[i] == 127 - i);
  return ok();
}
