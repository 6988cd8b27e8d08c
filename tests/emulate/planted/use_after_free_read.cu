// SPDX-License-Identifier: Apache-2.0
// A copy of a pointer outlives the memory.
#include "../programs/check.cuh"

struct Table {
  int* values;
};
__global__ void sum(Table table, int* out) {
  atomicAdd(out, table.values[threadIdx.x]);  // expect: use_after_free
}

int main() {
  Table table;
  Array<int> out(1);
  CUDA(cudaMalloc(&table.values, 32 * sizeof(int)));
  CUDA(cudaMemset(table.values, 0, 32 * sizeof(int)));
  const Table copy = table;
  sum<<<1, 32>>>(copy, out.device);
#ifdef BUG
  CUDA(cudaFree(table.values));
  sum<<<1, 32>>>(copy, out.device);
#else
  sum<<<1, 32>>>(copy, out.device);
  CUDA(cudaFree(table.values));
#endif
  return ok();
}
