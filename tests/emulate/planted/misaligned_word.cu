// SPDX-License-Identifier: Apache-2.0
// An int in a packed record.
#include "../programs/check.cuh"

__global__ void read(const char* in, int* out) {
#ifdef BUG
  out[threadIdx.x] = *reinterpret_cast<const int*>(in + 5 * threadIdx.x + 1);  // expect: misaligned
#else
  int v;
  memcpy(&v, in + 5 * threadIdx.x + 1, sizeof v);
  out[threadIdx.x] = v;
#endif
}

int main() {
  Array<char> in(192);
  Array<int> out(32);
  read<<<1, 32>>>(in.device, out.device);
  return ok();
}
