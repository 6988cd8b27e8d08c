// SPDX-License-Identifier: Apache-2.0
// A sum of doubles to which every thread adds.
#include "check.cuh"

__global__ void norm(const double* v, double* sum, int n) {
  double mine = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    mine += v[i] * v[i];
#ifdef BUG
  sum[0] += mine;
#else
  atomicAdd(&sum[0], mine);
#endif
}
int main() {
  Array<double> v(200), sum(1);
  double e = 0;
  for (int i = 0; i < 200; ++i) v[i] = i % 5, e += v[i] * v[i];
  v.up();
  norm<<<2, 32>>>(v.device, sum.device, 200);
  sum.down();
  CHECK(sum[0] == e);
  return ok();
}
