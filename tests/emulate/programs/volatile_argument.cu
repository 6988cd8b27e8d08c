// SPDX-License-Identifier: Apache-2.0
// Pointers to volatile memory as arguments, of <<<>>> and of cudaLaunchKernel.
#include "check.cuh"

__global__ void store(volatile int* to, const volatile int* from) { *to = *from + 1; }

int main() {
  Array<int> data(3);
  volatile int* const first = data.device;
  CUDA(cudaMemset(data.device, 0, 3 * sizeof(int)));
  store<<<1, 1>>>(first + 1, first);
  volatile int* to = first + 2;
  const volatile int* from = first + 1;
  void* arguments[] = {&to, &from};
  CUDA(cudaLaunchKernel((const void*)store, dim3(1), dim3(1), arguments, 0, 0));
  data.down();
  CHECK(data[1] == 1 && data[2] == 2);
  return ok();
}
