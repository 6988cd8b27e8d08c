// SPDX-License-Identifier: Apache-2.0
// Questions about other devices.
#include "check.cuh"

int main() {
  int count = 0, can = -1;
  CUDA(cudaGetDeviceCount(&count));
  CUDA(cudaDeviceCanAccessPeer(&can, 0, 0));
  CHECK(can == 0);
  CHECK(cudaDeviceCanAccessPeer(&can, 0, count) == cudaErrorInvalidDevice);
  CHECK(cudaDeviceEnablePeerAccess(0, 0) != cudaSuccess);
  cudaGetLastError();
  char id[32] = {};
  int device = -1;
  CUDA(cudaDeviceGetPCIBusId(id, sizeof id, 0));
  CUDA(cudaDeviceGetByPCIBusId(&device, id));
  CHECK(device == 0);
  Array<int> a(4), b(4);
  for (int i = 0; i < 4; ++i) a[i] = i;
  a.up();
  CUDA(cudaMemcpyPeer(b.device, 0, a.device, 0, 4 * sizeof(int)));
  b.down();
  for (int i = 0; i < 4; ++i) CHECK(b[i] == i);
  return ok();
}
