// SPDX-License-Identifier: Apache-2.0
// __managed__ variables that host and kernels share.
#include "check.cuh"

struct State {
  int count;
  float sum;
};
__managed__ State state;
__managed__ int values[16];
__global__ void use() {
  atomicAdd(&state.count, 1);
  atomicAdd(&state.sum, static_cast<float>(values[threadIdx.x]));
}

int main() {
  state.count = 100;
  for (int i = 0; i < 16; ++i) values[i] = i;
  use<<<2, 16>>>();
  CUDA(cudaDeviceSynchronize());
  CHECK(state.count == 132 && state.sum == 240);
  return ok();
}
