// SPDX-License-Identifier: Apache-2.0
// A graph's fill of a sum precedes the kernel that adds to it.
#include "../programs/check.cuh"

__global__ void add(int* sum) { atomicAdd(sum, 1); }

int main() {
  int* sum;
  CUDA(cudaMalloc(&sum, sizeof(int)));
  cudaGraph_t graph;
  CUDA(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t clear, adds;
  cudaMemsetParams fill = {};
  fill.dst = sum;
  fill.elementSize = 4;
  fill.width = 1;
  fill.height = 1;
  CUDA(cudaGraphAddMemsetNode(&clear, graph, nullptr, 0, &fill));  // expect: stream_order
  void* arguments[] = {&sum};
  cudaKernelNodeParams params = {};
  params.func = reinterpret_cast<void*>(add);
  params.gridDim = 2;
  params.blockDim = 64;
  params.kernelParams = arguments;
#ifdef BUG
  const int count = 0;
#else
  const int count = 1;
#endif
  CUDA(cudaGraphAddKernelNode(&adds, graph, &clear, count, &params));  // expect: stream_order
  cudaGraphExec_t exec;
  CUDA(cudaGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaGraphLaunch(exec, stream));
  CUDA(cudaStreamSynchronize(stream));
  int here = 0;
  CUDA(cudaMemcpy(&here, sum, sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(here == 128);
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphDestroy(graph));
  CUDA(cudaStreamDestroy(stream));
  CUDA(cudaFree(sum));
  return ok();
}
