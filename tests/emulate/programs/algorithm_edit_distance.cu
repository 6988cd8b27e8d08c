// SPDX-License-Identifier: Apache-2.0
// A table filled along its diagonals.
#include "check.cuh"

__global__ void distance(const char* a, const char* b, int* table, int n, int m) {
  const int t = threadIdx.x, width = m + 1;
  for (int i = t; i <= n; i += blockDim.x) table[i * width] = i;
  for (int j = t + 1; j <= m; j += blockDim.x) table[j] = j;
  __syncthreads();
  for (int diagonal = 2; diagonal <= n + m; ++diagonal) {
    const int i = t + 1, j = diagonal - i;
    if (i <= n && j >= 1 && j <= m) {
      const int changed = table[(i - 1) * width + j - 1] + (a[i - 1] != b[j - 1]);
      table[i * width + j] =
          min(changed, min(table[(i - 1) * width + j], table[i * width + j - 1]) + 1);
    }
    __syncthreads();
  }
}

int main() {
  const char one[] = "kitten", two[] = "sitting";
  Array<char> a(6), b(7);
  Array<int> table(7 * 8);
  for (int i = 0; i < 6; ++i) a[i] = one[i];
  for (int i = 0; i < 7; ++i) b[i] = two[i];
  a.up();
  b.up();
  distance<<<1, 32>>>(a.device, b.device, table.device, 6, 7);
  table.down();
  CHECK(table[6 * 8 + 7] == 3);
  return ok();
}
