// SPDX-License-Identifier: Apache-2.0
// A pointer into constant memory is no license to write there.
#include "../programs/check.cuh"

struct Table {
  int rows, columns;
};
namespace tables {
__constant__ Table shape = {2, 3}, other = {4, 5};
}

__device__ void widen(Table* table) {
  table->columns += 1;  // expect: read_only
}
__global__ void change(int* out) {
#ifdef BUG
  widen(&tables::other);
#else
  Table mine = tables::other;
  widen(&mine);
  *out = mine.columns;
#endif
}

int main() {
  Array<int> out(1);
  change<<<1, 1>>>(out.device);
  out.down();
#ifndef BUG
  CHECK(out[0] == 6);
#endif
  return ok();
}
