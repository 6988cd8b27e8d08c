// SPDX-License-Identifier: Apache-2.0
// Rows scaled in place though both pointers are __restrict__. Without the bug: halves of one
// workspace, elements that take turns, memory that is only read, and a pointer that is not used.
#include "../programs/check.cuh"

#define POINTER(T) T* __restrict__

template <class T>
__global__ void scale(POINTER(T) out, POINTER(const T) in, int width, int step) {
  const T* row = in + blockIdx.x * width;
  T* to = &out[blockIdx.x * width];
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    const T value = row[step * i];  // expect: overlap
    to[step * i] = 3 * value;
  }
}

__global__ void add(float* __restrict__ out, const float* __restrict__ a,
                    const float* __restrict__ b, bool both) {
  const int i = threadIdx.x;
  out[i] = both ? a[i] + b[i] : a[i];
}

int main() {
  Array<float> data(256);
  for (int i = 0; i < 256; ++i) data[i] = i;
  data.up();
  float* const second = data.device + 128;
#ifdef BUG
  scale<float><<<2, 32>>>(data.device, data.device, 64, 1);
  data.down();
  for (int i = 0; i < 128; ++i) CHECK(data[i] == 3 * i);
#else
  scale<float><<<2, 32>>>(second, data.device, 64, 1);
  scale<float><<<1, 32>>>(second + 1, second, 32, 2);
  add<<<1, 64>>>(second, data.device, data.device, true);
  add<<<1, 64>>>(second, data.device, second, false);
  data.down();
  for (int i = 0; i < 64; ++i) CHECK(data[128 + i] == i);
#endif
  return ok();
}
