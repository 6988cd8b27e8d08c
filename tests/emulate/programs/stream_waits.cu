// SPDX-License-Identifier: Apache-2.0
// Each way to order work of streams and the host, none of which is a finding.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "check.cuh"

constexpr int n = 128;
__global__ void make(int* p, int value) { p[threadIdx.x] = value + threadIdx.x; }
__global__ void add(int* to, const int* from) { to[threadIdx.x] += from[threadIdx.x]; }
__global__ void count(int* counter) { atomicAdd(counter, 1); }
__device__ int variable[n];
__global__ void add_variable(int* to) { to[threadIdx.x] += variable[threadIdx.x]; }

struct Streams {
  cudaStream_t blocking, other, apart;
  Streams() {
    CUDA(cudaStreamCreate(&blocking));
    CUDA(cudaStreamCreate(&other));
    CUDA(cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking));
  }
  ~Streams() {
    for (cudaStream_t one : {blocking, other, apart}) cudaStreamDestroy(one);
  }
};

/// The default stream waits for those that block, and they wait for it.
void default_stream() {
  Array<int> a(n), b(n);
  const Streams streams;
  make<<<1, n, 0, streams.blocking>>>(a.device, 1);
  add<<<1, n>>>(b.device, a.device);
  add<<<1, n, 0, streams.other>>>(a.device, b.device);
  a.down();
  make<<<1, n, 0, cudaStreamPerThread>>>(b.device, 5);
  b.down();
  CHECK(a[3] == 8 && b[3] == 8);
  // A copy into pageable memory is done when the call returns.
  make<<<1, n, 0, streams.apart>>>(a.device, 2);
  CUDA(cudaMemcpyAsync(a.host, a.device, n * sizeof(int), cudaMemcpyDeviceToHost, streams.apart));
  CHECK(a[0] == 2);
  add<<<1, n, 0, streams.other>>>(b.device, a.device);
  b.down();
}

/// Pinned memory: copies from it by cudaMemcpy are done when the call returns.
void pinned_copies() {
  Array<int> a(n);
  const Streams streams;
  int* pinned;
  CUDA(cudaMallocHost(&pinned, 2 * n * sizeof(int)));
  for (int i = 0; i < 2 * n; ++i) pinned[i] = i;
  CUDA(cudaMemcpy(a.device, pinned, n * sizeof(int), cudaMemcpyHostToDevice));
  add<<<1, n, 0, streams.apart>>>(a.device, a.device);
  CUDA(cudaMemcpyAsync(pinned, a.device, n * sizeof(int), cudaMemcpyDeviceToHost, streams.apart));
  pinned[n] = pinned[n + 1];  // the other half
  cudaEvent_t done;
  CUDA(cudaEventCreate(&done));
  CUDA(cudaEventRecord(done, streams.apart));
  while (cudaEventQuery(done) == cudaErrorNotReady) {
  }
  CHECK(pinned[5] == 10);
  CUDA(cudaMemcpyAsync(a.device, pinned, n * sizeof(int), cudaMemcpyHostToDevice, streams.other));
  while (cudaStreamQuery(streams.other) == cudaErrorNotReady) {
  }
  pinned[0] = 1;
  CUDA(cudaEventDestroy(done));
  CUDA(cudaFreeHost(pinned));
}

/// Memory of the host that is not pinned may be changed as soon as the call returns.
void staged_copies() {
  Array<int> a(n), b(n), c(n);
  const Streams streams;
  static int values[n];
  for (int i = 0; i < n; ++i) values[i] = i;
  CUDA(cudaMemcpyAsync(a.device, values, sizeof values, cudaMemcpyHostToDevice, streams.blocking));
  for (int i = 0; i < n; ++i) values[i] = 2 * i;
  CUDA(cudaMemcpyAsync(b.device, values, sizeof values, cudaMemcpyHostToDevice, streams.other));
  CUDA(cudaMemcpyToSymbolAsync(variable, values, sizeof values, 0, cudaMemcpyHostToDevice,
                               streams.apart));
  add_variable<<<1, n, 0, streams.apart>>>(c.device);
  CUDA(cudaDeviceSynchronize());
}

/// Functions of the host that tell other threads that they run.
void host_functions() {
  Array<int> a(n);
  const Streams streams;
  struct Told {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    std::atomic<bool> flag{false};
  } told;
  int* pinned;
  CUDA(cudaMallocHost(&pinned, n * sizeof(int)));
  make<<<1, n, 0, streams.apart>>>(a.device, 7);
  CUDA(cudaMemcpyAsync(pinned, a.device, n * sizeof(int), cudaMemcpyDeviceToHost, streams.apart));
  CUDA(cudaLaunchHostFunc(
      streams.apart,
      [](void* data) {
        Told& its = *static_cast<Told*>(data);
        const std::lock_guard<std::mutex> lock(its.mutex);
        its.done = true;
        its.changed.notify_all();
      },
      &told));
  std::thread waiting([&] {
    std::unique_lock<std::mutex> lock(told.mutex);
    told.changed.wait(lock, [&] { return told.done; });
    CHECK(pinned[1] == 8);
  });
  waiting.join();
  make<<<1, n, 0, streams.apart>>>(a.device, 9);
  CUDA(cudaMemcpyAsync(pinned, a.device, n * sizeof(int), cudaMemcpyDeviceToHost, streams.apart));
  CUDA(cudaStreamAddCallback(
      streams.apart,
      [](cudaStream_t, cudaError_t, void* data) { static_cast<Told*>(data)->flag = true; }, &told,
      0));
  while (!told.flag) {
  }
  CHECK(pinned[1] == 10);
  // What a function of the host writes is there for the stream's next work.
  CUDA(cudaLaunchHostFunc(
      streams.apart, [](void* data) { static_cast<int*>(data)[0] = 40; }, pinned));
  CUDA(cudaMemcpyAsync(a.device, pinned, sizeof(int), cudaMemcpyHostToDevice, streams.apart));
  CUDA(cudaStreamSynchronize(streams.apart));
  a.down();
  CHECK(a[0] == 40);
  CUDA(cudaFreeHost(pinned));
}

/// Managed memory: a kernel and the host work on different parts; sums by atomic functions.
void managed() {
  int* values;
  CUDA(cudaMallocManaged(&values, 2 * n * sizeof(int)));
  const Streams streams;
  make<<<1, n, 0, streams.apart>>>(values, 0);
  for (int i = n; i < 2 * n; ++i) values[i] = 0;
  CHECK(values[n] == 0);
  for (cudaStream_t one : {streams.blocking, streams.other, streams.apart}) {
    count<<<2, 32, 0, one>>>(values + n);
  }
  CUDA(cudaDeviceSynchronize());
  CHECK(values[n] == 192 && values[1] == 1);
  CUDA(cudaMemPrefetchAsync(values, n * sizeof(int), cudaCpuDeviceId, streams.apart));
  CHECK(values[2] == 2);
  CUDA(cudaFree(values));
}

/// Memory in the order of streams, which an event takes to another stream.
void ordered_memory() {
  const Streams streams;
  cudaEvent_t there, used;
  CUDA(cudaEventCreate(&there));
  CUDA(cudaEventCreate(&used));
  for (int round = 0; round < 3; ++round) {
    int* memory;
    CUDA(cudaStreamWaitEvent(streams.blocking, used, 0));  // at first not recorded
    CUDA(cudaMallocAsync(&memory, n * sizeof(int), streams.blocking));
    CUDA(cudaMemsetAsync(memory, 0, n * sizeof(int), streams.blocking));
    CUDA(cudaEventRecord(there, streams.blocking));
    CUDA(cudaStreamWaitEvent(streams.apart, there, 0));
    make<<<1, n, 0, streams.apart>>>(memory, round);
    CUDA(cudaEventRecord(used, streams.apart));
    CUDA(cudaStreamWaitEvent(streams.other, used, 0));
    CUDA(cudaFreeAsync(memory, streams.other));
  }
  CUDA(cudaEventSynchronize(used));
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaEventDestroy(there));
  CUDA(cudaEventDestroy(used));
}

/// Launches of one graph follow each other, whatever their streams.
void graph_launches() {
  Array<int> a(n), b(n);
  const Streams streams;
  cudaGraph_t graph;
  CUDA(cudaStreamBeginCapture(streams.blocking, cudaStreamCaptureModeGlobal));
  add<<<1, n, 0, streams.blocking>>>(a.device, b.device);
  CUDA(cudaStreamEndCapture(streams.blocking, &graph));
  cudaGraphExec_t exec;
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  CUDA(cudaGraphLaunch(exec, streams.other));
  CUDA(cudaGraphLaunch(exec, streams.apart));
  make<<<1, n, 0, streams.apart>>>(a.device, 3);
  CUDA(cudaStreamSynchronize(streams.apart));
  a.down();
  CHECK(a[0] == 3);
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphDestroy(graph));
}

int main() {
  default_stream();
  pinned_copies();
  staged_copies();
  host_functions();
  managed();
  ordered_memory();
  graph_launches();
  return ok();
}
