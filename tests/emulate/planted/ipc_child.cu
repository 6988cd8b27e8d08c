// SPDX-License-Identifier: Apache-2.0
// What goes wrong in a child process is reported with the rest.
// Compiled alone: two processes leave what was found in them.
#include <sys/wait.h>
#include <unistd.h>

#include "../programs/check.cuh"

__global__ void shift(int* values) {
  const int v = values[threadIdx.x];  // expect: race
#ifndef BUG
  __syncthreads();
#endif
  values[(threadIdx.x + 1) % blockDim.x] = v;  // expect: race
}

int main() {
  const pid_t child = fork();
  Array<int> values(128);
  if (child == 0) {
    shift<<<1, 128>>>(values.device);
  } else {
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  CUDA(cudaDeviceSynchronize());
  return child == 0 ? 0 : ok();
}
