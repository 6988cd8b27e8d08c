// SPDX-License-Identifier: Apache-2.0
// Two branches of a captured graph: the second reads what the first writes.
#include "../programs/check.cuh"

__global__ void make(int* p) { p[threadIdx.x] += 1; }
__global__ void use(int* to, const int* from) { to[threadIdx.x] = from[threadIdx.x]; }

int main() {
  Array<int> a(64), b(64);
  cudaStream_t stream, side;
  cudaEvent_t fork, join;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaStreamCreate(&side));
  CUDA(cudaEventCreate(&fork));
  CUDA(cudaEventCreate(&join));
  cudaGraph_t graph;
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
#ifdef BUG
  CUDA(cudaEventRecord(fork, stream));
#endif
  make<<<1, 64, 0, stream>>>(a.device);  // expect: stream_order
#ifndef BUG
  CUDA(cudaEventRecord(fork, stream));
#endif
  CUDA(cudaStreamWaitEvent(side, fork, 0));
  use<<<1, 64, 0, side>>>(b.device, a.device);  // expect: stream_order
  CUDA(cudaEventRecord(join, side));
  CUDA(cudaStreamWaitEvent(stream, join, 0));
  CUDA(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec;
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 2; ++i) CUDA(cudaGraphLaunch(exec, stream));
  CUDA(cudaStreamSynchronize(stream));
  b.down();
  CHECK(b[0] == 2);
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphDestroy(graph));
  CUDA(cudaEventDestroy(fork));
  CUDA(cudaEventDestroy(join));
  CUDA(cudaStreamDestroy(stream));
  CUDA(cudaStreamDestroy(side));
  return ok();
}
