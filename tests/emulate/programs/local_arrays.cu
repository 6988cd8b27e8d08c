// SPDX-License-Identifier: Apache-2.0
// Arrays of a thread's own with changing indices.
#include "check.cuh"

__global__ void order(const int* in, int* out) {
  int mine[8];
  for (int i = 0; i < 8; ++i) mine[i] = in[8 * threadIdx.x + i];
  for (int i = 1; i < 8; ++i) {
    const int v = mine[i];
    int k = i;
    for (; k > 0 && mine[k - 1] > v; --k) mine[k] = mine[k - 1];
    mine[k] = v;
  }
  for (int i = 0; i < 8; ++i) out[8 * threadIdx.x + i] = mine[i];
}

int main() {
  Array<int> in(256), out(256);
  for (int i = 0; i < 256; ++i) in[i] = i * 41 % 257;
  in.up();
  order<<<1, 32>>>(in.device, out.device);
  out.down();
  for (int i = 0; i < 256; ++i) CHECK(i % 8 == 0 || out[i - 1] <= out[i]);
  return ok();
}
