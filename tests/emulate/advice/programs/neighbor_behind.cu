// SPDX-License-Identifier: Apache-2.0
// Differences to the next element, which the last one has not.
#include "check.cuh"

__global__ void differences(const int* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
#ifdef BUG
  out[i] = in[i + 1] - in[i];
#else
  out[i] = (i + 1 < n ? in[i + 1] : 0) - in[i];
#endif
}

int main() {
  const int n = 256;
  Array<int> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = i * i;
  in.up();
  differences<<<2, 128>>>(in.device, out.device, n);
  out.down();
  for (int i = 0; i + 1 < n; ++i) CHECK(out[i] == 2 * i + 1);
  return ok();
}
