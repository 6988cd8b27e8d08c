// SPDX-License-Identifier: Apache-2.0
// A graph launched many times, updated, and one inside another.
#include "check.cuh"

__global__ void add(int* p, int v) { p[threadIdx.x] += v; }

static cudaGraph_t capture(cudaStream_t stream, int* p, int v) {
  cudaGraph_t graph;
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  add<<<1, 32, 0, stream>>>(p, v);
  add<<<1, 32, 0, stream>>>(p, 10 * v);
  CUDA(cudaStreamEndCapture(stream, &graph));
  return graph;
}

int main() {
  Array<int> data(32);
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  cudaGraph_t first = capture(stream, data.device, 1), second = capture(stream, data.device, 2);
  size_t nodes = 0;
  CUDA(cudaGraphGetNodes(first, nullptr, &nodes));
  CHECK(nodes == 2);
  cudaGraphExec_t exec;
  CUDA(cudaGraphInstantiate(&exec, first, 0));
  for (int i = 0; i < 3; ++i) CUDA(cudaGraphLaunch(exec, stream));
  cudaGraphExecUpdateResultInfo info;
  CUDA(cudaGraphExecUpdate(exec, second, &info));
  CUDA(cudaGraphLaunch(exec, stream));
  CUDA(cudaStreamSynchronize(stream));
  data.down();
  CHECK(data[31] == 3 * 11 + 22);
  cudaGraph_t outer;
  cudaGraphNode_t child, clear;
  CUDA(cudaGraphCreate(&outer, 0));
  cudaMemsetParams set = {};
  set.dst = data.device;
  set.elementSize = 4;
  set.width = 32;
  set.height = 1;
  CUDA(cudaGraphAddMemsetNode(&clear, outer, nullptr, 0, &set));
  CUDA(cudaGraphAddChildGraphNode(&child, outer, &clear, 1, first));
  cudaGraphExec_t both;
  CUDA(cudaGraphInstantiate(&both, outer, 0));
  CUDA(cudaGraphLaunch(both, stream));
  CUDA(cudaStreamSynchronize(stream));
  data.down();
  CHECK(data[0] == 11);
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphExecDestroy(both));
  for (cudaGraph_t graph : {first, second, outer}) CUDA(cudaGraphDestroy(graph));
  CUDA(cudaStreamDestroy(stream));
  return ok();
}
