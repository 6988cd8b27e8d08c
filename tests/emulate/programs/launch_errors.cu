// SPDX-License-Identifier: Apache-2.0
// Launches that no device accepts.
#include "check.cuh"

__global__ void nothing(int* p) {
  if (p != nullptr) *p = 1;
}

int main() {
  Array<int> flag(1);
  nothing<<<1, 1025>>>(flag.device);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  nothing<<<1, dim3(1, 1, 65)>>>(flag.device);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  nothing<<<0, 1>>>(flag.device);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  nothing<<<dim3(1, 65536), 1>>>(flag.device);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  nothing<<<1, 1, 100000>>>(flag.device);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaSuccess);
  flag.down();
  CHECK(flag[0] == 0);
  nothing<<<1, 1, 48 << 10>>>(flag.device);
  CUDA(cudaGetLastError());
  flag.down();
  CHECK(flag[0] == 1);
  return ok();
}
