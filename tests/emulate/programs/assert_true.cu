// SPDX-License-Identifier: Apache-2.0
// Assertions that hold.
#include <cassert>

#include "check.cuh"

__global__ void checked(int* p, int n) {
  assert(n == 32);
  assert(threadIdx.x < static_cast<unsigned>(n) && "in range");
  p[threadIdx.x] = 1;
}

int main() {
  Array<int> data(32);
  checked<<<1, 32>>>(data.device, 32);
  data.down();
  CHECK(data[31] == 1);
  return ok();
}
