// SPDX-License-Identifier: Apache-2.0
// What a kernel has allocated it frees once.
#include "../programs/check.cuh"

__global__ void sum(int* out) {
  int* own = static_cast<int*>(malloc(2 * sizeof(int)));
  own[0] = threadIdx.x;
  own[1] = 5;
  const int total = own[0] + own[1];
  free(own);
#ifdef BUG
  free(own);  // expect: use_after_free
#endif
  out[threadIdx.x] = total;
}

int main() {
  Array<int> out(8);
  sum<<<1, 8>>>(out.device);
  out.down();
  CHECK(out[3] == 8);
  return ok();
}
