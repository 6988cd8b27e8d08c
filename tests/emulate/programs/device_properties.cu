// SPDX-License-Identifier: Apache-2.0
// Properties and attributes agree with each other.
#include <cstring>

#include "check.cuh"

int main() {
  int count = 0, device = -1;
  CUDA(cudaGetDeviceCount(&count));
  CHECK(count >= 1);
  CUDA(cudaSetDevice(0));
  CUDA(cudaGetDevice(&device));
  CHECK(device == 0);
  CHECK(cudaSetDevice(1000) == cudaErrorInvalidDevice);
  cudaGetLastError();
  cudaDeviceProp p;
  CUDA(cudaGetDeviceProperties(&p, 0));
  CHECK(std::strlen(p.name) > 0 && p.warpSize == 32 && p.major >= 6);
  const struct {
    cudaDeviceAttr attribute;
    long long value;
  } pairs[] = {
      {cudaDevAttrMaxThreadsPerBlock, p.maxThreadsPerBlock},
      {cudaDevAttrMultiProcessorCount, p.multiProcessorCount},
      {cudaDevAttrComputeCapabilityMajor, p.major},
      {cudaDevAttrComputeCapabilityMinor, p.minor},
      {cudaDevAttrMaxSharedMemoryPerBlock, static_cast<long long>(p.sharedMemPerBlock)},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, static_cast<long long>(p.sharedMemPerBlockOptin)},
      {cudaDevAttrMaxThreadsPerMultiProcessor, p.maxThreadsPerMultiProcessor},
      {cudaDevAttrL2CacheSize, p.l2CacheSize},
      {cudaDevAttrMaxGridDimX, p.maxGridSize[0]}};
  for (const auto& one : pairs) {
    int value = -1;
    CUDA(cudaDeviceGetAttribute(&value, one.attribute, 0));
    CHECK(value == one.value);
  }
  int driver = 0, runtime = 0;
  CUDA(cudaDriverGetVersion(&driver));
  CUDA(cudaRuntimeGetVersion(&runtime));
  CHECK(driver >= runtime && runtime >= 11000);
  size_t stack = 0;
  CUDA(cudaDeviceSetLimit(cudaLimitStackSize, 8192));
  CUDA(cudaDeviceGetLimit(&stack, cudaLimitStackSize));
  CHECK(stack >= 8192);
  return ok();
}
