// SPDX-License-Identifier: Apache-2.0
// Streams: order, priorities, waiting, queries, callbacks, host functions.
#include "check.cuh"

__global__ void append(int* log, int* length, int value) { log[atomicAdd(length, 1)] = value; }

static void note(void* data) { ++*static_cast<int*>(data); }
static void called(cudaStream_t, cudaError_t status, void* data) {
  if (status == cudaSuccess) ++*static_cast<int*>(data);
}

int main() {
  cudaStream_t a, b;
  CUDA(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  int least, greatest;
  CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CUDA(cudaStreamCreateWithPriority(&b, cudaStreamDefault, greatest));
  int priority = 0;
  CUDA(cudaStreamGetPriority(b, &priority));
  CHECK(priority == greatest && greatest <= least);
  Array<int> log(8), length(1);
  cudaEvent_t done;
  CUDA(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  append<<<1, 1, 0, a>>>(log.device, length.device, 1);
  append<<<1, 1, 0, a>>>(log.device, length.device, 2);
  CUDA(cudaEventRecord(done, a));
  CUDA(cudaStreamWaitEvent(b, done, 0));
  append<<<1, 1, 0, b>>>(log.device, length.device, 3);
  int notes = 0;
  CUDA(cudaLaunchHostFunc(b, note, &notes));
  CUDA(cudaStreamAddCallback(b, called, &notes, 0));
  CUDA(cudaStreamSynchronize(b));
  CUDA(cudaStreamSynchronize(a));
  CHECK(cudaStreamQuery(a) == cudaSuccess && cudaEventQuery(done) == cudaSuccess);
  CHECK(notes == 2);
  log.down();
  CHECK(log[0] == 1 && log[1] == 2 && log[2] == 3);
  CUDA(cudaEventDestroy(done));
  CUDA(cudaStreamDestroy(a));
  CUDA(cudaStreamDestroy(b));
  return ok();
}
