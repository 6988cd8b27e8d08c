// SPDX-License-Identifier: Apache-2.0
// A graph built by hand, in which the copy does not depend on the fill.
#include "../programs/check.cuh"

int main() {
  Array<int> a(64), b(64);
  cudaGraph_t graph;
  CUDA(cudaGraphCreate(&graph, 0));
  cudaMemsetParams fill{};
  fill.dst = a.device;
  fill.value = 1;
  fill.elementSize = 1;
  fill.width = 256;
  fill.height = 1;
  cudaGraphNode_t filled, copied;
  CUDA(cudaGraphAddMemsetNode(&filled, graph, nullptr, 0, &fill));  // expect: stream_order
#ifdef BUG
  const int count = 0;
#else
  const int count = 1;
#endif
  constexpr cudaMemcpyKind same = cudaMemcpyDeviceToDevice;
  int *const to = b.device, *const from = a.device;
  const auto add = cudaGraphAddMemcpyNode1D;
  CUDA(add(&copied, graph, &filled, count, to, from, 256, same));  // expect: stream_order
  cudaGraphExec_t exec;
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  CUDA(cudaGraphLaunch(exec, 0));
  b.down();
  CHECK(b[63] == 0x01010101);
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphDestroy(graph));
  return ok();
}
