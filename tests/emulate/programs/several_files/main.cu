// SPDX-License-Identifier: Apache-2.0
// Several files: kernels and variables of one are used in another; host code comes from a .cpp.
#include "../check.cuh"
#include "kernels.cuh"

__global__ void local_kernel(int* out) { out[threadIdx.x] += twice(threadIdx.x) + shared_factor; }

int main() {
  Array<int> out(32);
  const int factor = host_factor();
  CUDA(cudaMemcpyToSymbol(shared_factor, &factor, sizeof factor));
  local_kernel<<<1, 32>>>(out.device);
  launch_other(out.device);
  scale<float><<<1, 32>>>(reinterpret_cast<float*>(out.device), 0);
  out.down();
  for (int i = 0; i < 32; ++i) CHECK(out[i] == 2 * i + 7 + 100 * (31 - i));
  return ok();
}
