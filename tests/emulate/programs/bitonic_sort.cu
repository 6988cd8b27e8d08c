// SPDX-License-Identifier: Apache-2.0
// A bitonic sort of a block.
#include "check.cuh"

__global__ void sort(int* data) {
  __shared__ int keys[256];
  const unsigned t = threadIdx.x;
  keys[t] = data[t];
  for (unsigned size = 2; size <= 256; size *= 2) {
    for (unsigned stride = size / 2; stride > 0; stride /= 2) {
      __syncthreads();
      const unsigned other = t ^ stride;
      if (other > t) {
        const bool up = (t & size) == 0;
        if ((keys[t] > keys[other]) == up) {
          const int kept = keys[t];
          keys[t] = keys[other];
          keys[other] = kept;
        }
      }
    }
  }
  __syncthreads();
  data[t] = keys[t];
}

int main() {
  Array<int> data(256);
  for (int i = 0; i < 256; ++i) data[i] = i * 7919 % 1009;
  data.up();
  sort<<<1, 256>>>(data.device);
  data.down();
  for (int i = 1; i < 256; ++i) CHECK(data[i - 1] <= data[i]);
  return ok();
}
