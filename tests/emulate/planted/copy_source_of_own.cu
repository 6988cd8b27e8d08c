// SPDX-License-Identifier: Apache-2.0
// A thread that updates the element of which its asynchronous copy is on the way waits first; the
// group committed last may stay in flight.
#include <cuda_pipeline.h>

#include "../programs/check.cuh"

__global__ void add_previous(float* data, int rounds) {
  __shared__ float kept[2][64];
  const int t = threadIdx.x;
  __pipeline_memcpy_async(&kept[0][t], &data[t], sizeof(float));
  __pipeline_commit();
  for (int i = 0; i < rounds; ++i) {
    if (i + 1 < rounds) {
      __pipeline_memcpy_async(&kept[(i + 1) % 2][t], &data[64 * (i + 1) + t],  // expect: race
                              sizeof(float));
    }
    __pipeline_commit();
    __pipeline_wait_prior(1);
    const float value = kept[i % 2][t];
#ifdef BUG
    if (i + 1 < rounds) data[64 * (i + 1) + t] = value;  // expect: race
#else
    data[64 * i + t] = value + 1;
#endif
  }
}

int main() {
  Array<float> data(4 * 64);
  for (int i = 0; i < 256; ++i) data[i] = static_cast<float>(i);
  data.up();
  add_previous<<<1, 64>>>(data.device, 4);
#ifndef BUG
  data.down();
  for (int i = 0; i < 256; ++i) CHECK(data[i] == i + 1);
#endif
  return ok();
}
