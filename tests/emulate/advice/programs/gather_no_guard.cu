// SPDX-License-Identifier: Apache-2.0
// A gather whose blocks cover more than there are indices.
#include "check.cuh"

__global__ void gather(const float* from, const int* index, float* to, int count) {
  const int k = threadIdx.x + blockIdx.x * blockDim.x;
#ifdef BUG
  to[k] = from[index[k]];
#else
  if (k < count) to[k] = from[index[k]];
#endif
}

int main() {
  const int count = 90;
  Array<float> from(50), to(count);
  Array<int> index(count);
  for (int i = 0; i < 50; ++i) from[i] = 3 * i;
  for (int i = 0; i < count; ++i) index[i] = i * 7 % 50;
  from.up(), index.up();
  gather<<<2, 64>>>(from.device, index.device, to.device, count);
  to.down();
  for (int i = 0; i < count; ++i) CHECK(to[i] == from[index[i]]);
  return ok();
}
