// SPDX-License-Identifier: Apache-2.0
// The driver API's memory beside a kernel of the runtime's.
#include <cuda.h>

#include "check.cuh"

__global__ void twice(int* values) { values[threadIdx.x] *= 2; }

int main() {
  CUdevice device;
  CUcontext context;
  CUdeviceptr memory;
  int major = 0;
  size_t bytes = 0;
  char name[64];
  CHECK(cuInit(0) == CUDA_SUCCESS && cuDeviceGet(&device, 0) == CUDA_SUCCESS);
  CHECK(cuDeviceGet(&device, 7) == CUDA_ERROR_INVALID_DEVICE && cuDeviceGet(&device, 0) == 0);
  CHECK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) == 0);
  CHECK(cuDeviceGetName(name, sizeof name, device) == 0 && name[0] != '\0');
  CHECK(cuDeviceTotalMem(&bytes, device) == 0 && bytes > 0 && major >= 6);
  CHECK(cuCtxCreate(&context, 0, device) == CUDA_SUCCESS);
  int values[32];
  for (int i = 0; i < 32; ++i) values[i] = i;
  CHECK(cuMemAlloc(&memory, sizeof values) == CUDA_SUCCESS);
  CHECK(cuMemcpyHtoD(memory, values, sizeof values) == CUDA_SUCCESS);
  twice<<<1, 32>>>(reinterpret_cast<int*>(memory));
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(cuMemcpyDtoH(values, memory, sizeof values) == CUDA_SUCCESS && values[5] == 10);
  const char* text = nullptr;
  CHECK(cuGetErrorName(CUDA_ERROR_INVALID_VALUE, &text) == CUDA_SUCCESS && text != nullptr);
  CHECK(cuMemFree(memory) == CUDA_SUCCESS && cuCtxDestroy(context) == CUDA_SUCCESS);
  return ok();
}
