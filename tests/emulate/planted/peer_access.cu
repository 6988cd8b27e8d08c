// SPDX-License-Identifier: Apache-2.0
// A kernel reads memory of another device that was not enabled.
// Compiled alone, with
// Options: --devices 2
#include "../programs/check.cuh"

__global__ void copy(int* to, const int* from) {
  to[threadIdx.x] = from[threadIdx.x];  // expect: out_of_bounds
}

int main() {
  CUDA(cudaSetDevice(1));
  Array<int> there(32);
  CUDA(cudaSetDevice(0));
  Array<int> here(32);
#ifndef BUG
  CUDA(cudaDeviceEnablePeerAccess(1, 0));
#endif
  copy<<<1, 32>>>(here.device, there.device);
#ifdef BUG
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  CUDA(cudaDeviceReset());
  CUDA(cudaSetDevice(1));
  CUDA(cudaDeviceReset());
  there.device = here.device = nullptr;
#endif
  return ok();
}
