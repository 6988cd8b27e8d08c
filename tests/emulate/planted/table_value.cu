// SPDX-License-Identifier: Apache-2.0
// Whoever finds a key in a table reads its value: which must be there before the key.
#include "../programs/check.cuh"

__global__ void insert(int* keys, int* values, int* out) {
  const int key = 1 + threadIdx.x % 4;
#ifdef BUG
  const int old = atomicCAS(keys + key, 0, key);
  if (old == 0) {
    values[key] = 10 * key;  // expect: race
  } else {
    out[threadIdx.x] = values[key];  // expect: race
  }
#else
  const int old = atomicCAS(keys + key, 0, -key);
  if (old == 0) {
    values[key] = 10 * key;
    __threadfence();
    atomicExch(keys + key, key);
  } else {
    while (atomicAdd(keys + key, 0) < 0) {
    }
    out[threadIdx.x] = values[key];
  }
#endif
}

int main() {
  Array<int> keys(8), values(8), out(64);
  insert<<<1, 64>>>(keys.device, values.device, out.device);
  return ok();
}
