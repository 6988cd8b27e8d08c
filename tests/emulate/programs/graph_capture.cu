// SPDX-License-Identifier: Apache-2.0
// A captured graph: nothing runs while capturing, everything at each launch.
#include "check.cuh"

__global__ void add(int* p, int v) { p[threadIdx.x] += v; }

int main() {
  Array<int> data(32);
  cudaStream_t stream, side;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaStreamCreate(&side));
  cudaEvent_t fork, join;
  CUDA(cudaEventCreate(&fork));
  CUDA(cudaEventCreate(&join));
  cudaGraph_t graph;
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  int v = 1;
  add<<<1, 32, 0, stream>>>(data.device, v);
  v = 1000;  // the graph keeps the value that it was given
  CUDA(cudaEventRecord(fork, stream));
  CUDA(cudaStreamWaitEvent(side, fork, 0));
  add<<<1, 32, 0, side>>>(data.device, 10);
  CUDA(cudaEventRecord(join, side));
  CUDA(cudaStreamWaitEvent(stream, join, 0));
  int back[32] = {};
  CUDA(cudaMemcpyAsync(back, data.device, sizeof back, cudaMemcpyDeviceToHost, stream));
  cudaStreamCaptureStatus status;
  CUDA(cudaStreamIsCapturing(stream, &status));
  CHECK(status == cudaStreamCaptureStatusActive);
  CUDA(cudaStreamEndCapture(stream, &graph));
  CHECK(back[0] == 0);
  size_t nodes = 0;
  CUDA(cudaGraphGetNodes(graph, nullptr, &nodes));
  CHECK(nodes == 3);
  cudaGraphExec_t exec;
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; ++i) CUDA(cudaGraphLaunch(exec, stream));
  CUDA(cudaStreamSynchronize(stream));
  CHECK(back[0] == 33 && back[31] == 33);
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphDestroy(graph));
  return ok();
}
