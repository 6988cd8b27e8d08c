// SPDX-License-Identifier: Apache-2.0
// printf in kernels, through standard output.
#include <unistd.h>
#include <cstring>

#include "check.cuh"

__global__ void tell(const char* word) {
  if (threadIdx.x == 1)
    printf("thread %d of %d: %s %.2f %c\n", threadIdx.x, blockDim.x, word, 1.5, 'x');
}
__global__ void tell_number() { printf("%d\n", 7); }

int main() {
  // Standard output goes into a file for a while.
  char name[] = "/tmp/printf_kernel_XXXXXX";
  const int file = mkstemp(name);
  CHECK(file >= 0);
  std::fflush(stdout);
  const int kept = dup(1);
  dup2(file, 1);
  tell_number<<<1, 2>>>();
  CUDA(cudaDeviceSynchronize());
  std::fflush(stdout);
  dup2(kept, 1);
  char text[64] = {};
  CHECK(pread(file, text, sizeof text - 1, 0) == 4);
  unlink(name);
  CHECK(std::strcmp(text, "7\n7\n") == 0);
  return ok();
}
