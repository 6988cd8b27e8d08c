// SPDX-License-Identifier: Apache-2.0
// A graph with memory of its own; its kernel gets other arguments afterwards.
#include "check.cuh"

__global__ void add(int* values, int what) { values[threadIdx.x] += what; }

int main() {
  cudaGraph_t graph;
  CUDA(cudaGraphCreate(&graph, 0));
  cudaMemAllocNodeParams wanted = {};
  wanted.bytesize = 32 * sizeof(int);
  wanted.poolProps.allocType = cudaMemAllocationTypePinned;
  wanted.poolProps.location.type = cudaMemLocationTypeDevice;
  cudaGraphNode_t take, fill, kernel, copy, give;
  CUDA(cudaGraphAddMemAllocNode(&take, graph, nullptr, 0, &wanted));
  cudaMemsetParams set = {};
  set.dst = wanted.dptr;
  set.elementSize = 4;
  set.width = 32;
  set.height = 1;
  set.value = 7;
  CUDA(cudaGraphAddMemsetNode(&fill, graph, &take, 1, &set));
  int what = 5;
  void* arguments[] = {&wanted.dptr, &what};
  cudaKernelNodeParams call = {};
  call.func = reinterpret_cast<void*>(add);
  call.gridDim = dim3(1);
  call.blockDim = dim3(32);
  call.kernelParams = arguments;
  CUDA(cudaGraphAddKernelNode(&kernel, graph, &fill, 1, &call));
  int result[32];
  CUDA(cudaGraphAddMemcpyNode1D(&copy, graph, &kernel, 1, result, wanted.dptr, sizeof result,
                                cudaMemcpyDeviceToHost));
  CUDA(cudaGraphAddMemFreeNode(&give, graph, &copy, 1, wanted.dptr));
  size_t roots = 0, nodes = 0;
  CUDA(cudaGraphGetRootNodes(graph, nullptr, &roots));
  CUDA(cudaGraphGetNodes(graph, nullptr, &nodes));
  CHECK(roots == 1 && nodes == 5);

  cudaGraphExec_t first, second;
  CUDA(cudaGraphInstantiate(&first, graph, nullptr, nullptr, 0));
  CUDA(cudaGraphInstantiate(&second, graph, nullptr, nullptr, 0));
  for (what = 6; what < 8; ++what) {
    CUDA(cudaGraphExecKernelNodeSetParams(first, kernel, &call));
    CUDA(cudaGraphLaunch(first, 0));
    CUDA(cudaDeviceSynchronize());
    CHECK(result[0] == 7 + what && result[31] == 7 + what);
  }
  // The other executable graph kept what it was made with.
  CUDA(cudaGraphLaunch(second, 0));
  CUDA(cudaDeviceSynchronize());
  CHECK(result[9] == 12);
  unsigned long long used = 1, high = 0;
  CUDA(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
  CUDA(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &high));
  CHECK(used == 0 && high >= sizeof result);
  CUDA(cudaDeviceGraphMemTrim(0));
  CUDA(cudaGraphExecDestroy(first));
  CUDA(cudaGraphExecDestroy(second));
  CUDA(cudaGraphDestroy(graph));
  return ok();
}
