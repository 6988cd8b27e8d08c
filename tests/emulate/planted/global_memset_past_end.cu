// SPDX-License-Identifier: Apache-2.0
// Rows cleared by memset, the last of them farther than the array goes.
#include "../programs/check.cuh"

struct Row {
  float values[12];
};

__global__ void clear(Row* rows, float* total, int n) {
  const int t = threadIdx.x;
#ifdef BUG
  const bool mine = t <= n;
#else
  const bool mine = t < n;
#endif
  if (mine) memset(&rows[t], 0, sizeof(Row));  // expect: out_of_bounds
  float sums[4];
  memset(sums, 0, sizeof(sums));
  for (int i = 0; i < 12 && t < n; ++i) sums[i % 4] += rows[t].values[i];
  total[t] = sums[0] + sums[1] + sums[2] + sums[3];
}

int main() {
  Array<Row> rows(20);
  Array<float> total(32);
  clear<<<1, 32>>>(rows.device, total.device, 20);
  total.down();
  for (int i = 0; i < 32; ++i) CHECK(total[i] == 0);
  return ok();
}
