// SPDX-License-Identifier: Apache-2.0
// Limits of the device: the kernels' heap and its exhaustion.
#include "check.cuh"

__global__ void take(int* failed, size_t bytes) {
  char* memory = static_cast<char*>(malloc(bytes));
  if (memory == nullptr) {
    atomicAdd(failed, 1);
    return;
  }
  memory[0] = memory[bytes - 1] = 1;
  free(memory);
}

int main() {
  size_t bytes = 0;
  CUDA(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 4 << 20));
  CUDA(cudaDeviceGetLimit(&bytes, cudaLimitMallocHeapSize));
  CHECK(bytes >= 4 << 20);
  CUDA(cudaDeviceGetLimit(&bytes, cudaLimitPrintfFifoSize));
  CHECK(bytes > 0);
  Array<int> failed(1);
  take<<<1, 32>>>(failed.device, 1000);
  failed.down();
  CHECK(failed[0] == 0);
  take<<<1, 1>>>(failed.device, size_t(1) << 40);
  failed.down();
  CHECK(failed[0] == 1);
  return ok();
}
