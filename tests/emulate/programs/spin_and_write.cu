// SPDX-License-Identifier: Apache-2.0
// Threads that wait for neighbors of other blocks and write meanwhile: blocks that have not
// started yet must get their turn.
#include "check.cuh"

/// Each takes one more than its right neighbor has, once that has something; until then it writes
/// anew that it has nothing.
__global__ void chain(volatile int* value, int n) {
  const int i = static_cast<int>(threadIdx.x + blockIdx.x * blockDim.x);
  if (i >= n) return;
  bool again = true;
  while (again) {
    const int right = i + 1 < n ? value[i + 1] : 1;
    value[i] = right == 0 ? 0 : right + 1;
    again = right == 0;
  }
}

int main() {
  const int n = 300;
  Array<int> value(n);
  chain<<<5, 64>>>(value.device, n);
  value.down();
  for (int i = 0; i < n; ++i) CHECK(value[i] == n - i + 1);
  return ok();
}
