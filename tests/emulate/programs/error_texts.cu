// SPDX-License-Identifier: Apache-2.0
// Names and texts of errors.
#include <cstring>

#include "check.cuh"

int main() {
  CHECK(std::strcmp(cudaGetErrorName(cudaSuccess), "cudaSuccess") == 0);
  CHECK(std::strcmp(cudaGetErrorString(cudaSuccess), "no error") == 0);
  CHECK(std::strcmp(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue") == 0);
  CHECK(std::strcmp(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument") == 0);
  CHECK(std::strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory") == 0);
  CHECK(std::strcmp(cudaGetErrorString(cudaErrorIllegalAddress),
                    "an illegal memory access was encountered") == 0);
  CHECK(cudaErrorInvalidConfiguration == 9 && cudaErrorLaunchFailure == 719);
  return ok();
}
