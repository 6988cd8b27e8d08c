// SPDX-License-Identifier: Apache-2.0
// A graph made of nodes by hand.
#include "check.cuh"

__global__ void twice(int* p, int n) {
  if (threadIdx.x < n) p[threadIdx.x] *= 2;
}
static void count(void* data) { ++*static_cast<int*>(data); }

int main() {
  int host[16], back[16] = {}, calls = 0;
  for (int i = 0; i < 16; ++i) host[i] = i + 1;
  Array<int> data(16);
  cudaGraph_t graph;
  CUDA(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t up, kernel, down, call;
  CUDA(cudaGraphAddMemcpyNode1D(&up, graph, nullptr, 0, data.device, host, sizeof host,
                                cudaMemcpyHostToDevice));
  int* pointer = data.device;
  int n = 16;
  void* arguments[] = {&pointer, &n};
  cudaKernelNodeParams parameters = {};
  parameters.func = (void*)twice;
  parameters.gridDim = dim3(1);
  parameters.blockDim = dim3(16);
  parameters.kernelParams = arguments;
  CUDA(cudaGraphAddKernelNode(&kernel, graph, &up, 1, &parameters));
  CUDA(cudaGraphAddMemcpyNode1D(&down, graph, &kernel, 1, back, data.device, sizeof back,
                                cudaMemcpyDeviceToHost));
  cudaHostNodeParams host_call = {count, &calls};
  CUDA(cudaGraphAddHostNode(&call, graph, &down, 1, &host_call));
  cudaGraphExec_t exec;
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  CUDA(cudaGraphLaunch(exec, 0));
  CUDA(cudaGraphLaunch(exec, 0));
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < 16; ++i) CHECK(back[i] == 2 * (i + 1));
  CHECK(calls == 2);
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphDestroy(graph));
  return ok();
}
