// SPDX-License-Identifier: Apache-2.0
// The driver API's names of memory, streams, events and graphs.
#include <cuda.h>

#include "check.cuh"

#define DRIVER(call) CHECK((call) == CUDA_SUCCESS)

__global__ void add(int* p, int n) {
  if (threadIdx.x < n) p[threadIdx.x] += 1;
}

int main() {
  DRIVER(cuInit(0));
  CUdevice device;
  CUcontext context;
  DRIVER(cuDeviceGet(&device, 0));
  DRIVER(cuDevicePrimaryCtxRetain(&context, device));
  DRIVER(cuCtxSetCurrent(context));
  CUdeviceptr memory, begin;
  size_t bytes;
  DRIVER(cuMemAlloc(&memory, 1000));
  DRIVER(cuMemGetAddressRange(&begin, &bytes, memory + 500));
  CHECK(begin == memory && bytes == 1000);
  DRIVER(cuMemsetD32(memory, 7, 250));
  CUDA(cudaStreamSynchronize(cudaStreamLegacy));  // the fill need not be done yet
  CUstream stream;
  CUevent event;
  DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  DRIVER(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CUgraph graph;
  CUgraphExec executable;
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  add<<<1, 32, 0, stream>>>(reinterpret_cast<int*>(memory), 20);
  DRIVER(cuStreamEndCapture(stream, &graph));
  size_t count = 0;
  DRIVER(cuGraphGetNodes(graph, nullptr, &count));
  CHECK(count == 1);
  CUgraphNode node;
  DRIVER(cuGraphGetNodes(graph, &node, &count));
  DRIVER(cuGraphInstantiate(&executable, graph, 0));
  DRIVER(cuGraphLaunch(executable, stream));
  DRIVER(cuGraphLaunch(executable, stream));
  DRIVER(cuEventRecord(event, stream));
  DRIVER(cuEventSynchronize(event));
  int values[250];
  DRIVER(cuMemcpyDtoHAsync(values, memory, 1000, stream));
  DRIVER(cuStreamSynchronize(stream));
  for (int i = 0; i < 250; ++i) CHECK(values[i] == (i < 20 ? 9 : 7));
  DRIVER(cuGraphExecDestroy(executable));
  DRIVER(cuGraphDestroy(graph));
  DRIVER(cuEventDestroy(event));
  DRIVER(cuStreamDestroy(stream));
  DRIVER(cuMemFree(memory));
  DRIVER(cuDevicePrimaryCtxRelease(device));
  return ok();
}
