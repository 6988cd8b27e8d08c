// SPDX-License-Identifier: Apache-2.0
// Work of a stream runs in its order; host functions and callbacks among it.
#include "check.cuh"

__global__ void append(int* log, int* count, int value) { log[(*count)++] = value; }
static int calls = 0;
static void CUDART_CB host_function(void* data) { calls += *static_cast<int*>(data); }
static void CUDART_CB callback(cudaStream_t, cudaError_t error, void* data) {
  calls += error == cudaSuccess ? *static_cast<int*>(data) : 1000;
}

int main() {
  Array<int> log(16), count(1);
  cudaStream_t a, b;
  int least = 0, greatest = 0, priority = 1, one = 1, ten = 10;
  CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CHECK(least >= greatest);
  CUDA(cudaStreamCreateWithPriority(&a, cudaStreamNonBlocking, greatest));
  CUDA(cudaStreamCreate(&b));
  CUDA(cudaStreamGetPriority(a, &priority));
  CHECK(priority == greatest);
  cudaEvent_t done;
  CUDA(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  append<<<1, 1, 0, a>>>(log.device, count.device, 1);
  CUDA(cudaLaunchHostFunc(a, host_function, &one));
  append<<<1, 1, 0, a>>>(log.device, count.device, 2);
  CUDA(cudaEventRecord(done, a));
  CUDA(cudaStreamWaitEvent(b, done, 0));
  append<<<1, 1, 0, b>>>(log.device, count.device, 3);
  CUDA(cudaStreamAddCallback(b, callback, &ten, 0));
  CUDA(cudaStreamSynchronize(b));
  CHECK(cudaEventQuery(done) == cudaSuccess && cudaStreamQuery(b) == cudaSuccess);
  log.down();
  CHECK(calls == 11 && log[0] == 1 && log[1] == 2 && log[2] == 3);
  CUDA(cudaEventDestroy(done));
  CUDA(cudaStreamDestroy(a));
  CUDA(cudaStreamDestroy(b));
  return ok();
}
