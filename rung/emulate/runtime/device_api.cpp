// SPDX-License-Identifier: Apache-2.0
// Further device functions: settings that have no effect, versions, the clock.
#include <atomic>

#include "rung/emulate/runtime/api.hpp"
#include "rung/emulate/runtime/devices.hpp"
#include "rung/emulate/runtime/memory.hpp"
#include "rung/emulate/runtime/model.hpp"
#include "rung/emulate/runtime/stream.hpp"
#include "rung/emulate/runtime/tasks.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::cuda {
namespace {

std::atomic<double> now{0};

}  // namespace

void advance_clock(double nanoseconds) {
  double before = now.load(std::memory_order_relaxed);
  while (!now.compare_exchange_weak(before, before + nanoseconds, std::memory_order_relaxed)) {
  }
}
double clock_now() { return now.load(std::memory_order_relaxed); }

// Returns the approximate time of a copy on an H200 with PCIe 5, in nanoseconds, for programs that
// compute a bandwidth from measured times.
double copy_time(double bytes, cudaMemcpyKind kind) {
  const double latency = 4000;
  const double bytes_per_ns = kind == cudaMemcpyDeviceToDevice ? 2000 : 50;
  return latency + bytes / bytes_per_ns;
}
double kernel_time(const LaunchConfig& config) {
  const auto volume = [](const dim3& v) { return double(v.x) * v.y * v.z; };
  const double latency = 3000;
  const double threads = volume(config.grid) * volume(config.block);
  const double resident = double(model().multiprocessors) * model().threads_per_multiprocessor;
  const double a_wave = 2000;
  return latency + a_wave * std::max(1.0, threads / resident);
}

}  // namespace rung::cuda

using namespace rung::cuda;  // NOLINT: implementation of the CUDA API

cudaError_t cudaDeviceSynchronize() {
  if (any_capture()) return remember(cudaErrorStreamCaptureUnsupported);
  run_children();  // in a kernel: completes the kernels that it has launched
  const cudaError_t error = await_device(current_device());
  if (!rung::simt::in_kernel()) host_waited_for_device(current_device());
  return remember(error);
}
cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
cudaError_t cudaDeviceReset() {
  await_device(current_device());
  host_waited_for_device(current_device());
  set_device_failure(cudaSuccess);
  forget_peers(current_device());
  free_everything(current_device());
  cudaGetLastError();
  return cudaSuccess;
}
cudaError_t cudaThreadExit() { return cudaDeviceReset(); }
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  *config = cudaFuncCachePreferNone;
  return remember(cudaSuccess);
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return remember(cudaSuccess); }
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  *config = cudaSharedMemBankSizeFourByte;
  return remember(cudaSuccess);
}
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return remember(cudaSuccess); }
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return remember(cudaSuccess);
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return remember(cudaSuccess);
}
cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }
cudaError_t cudaProfilerStart() { return remember(cudaSuccess); }
cudaError_t cudaProfilerStop() { return remember(cudaSuccess); }
cudaError_t cudaCtxResetPersistingL2Cache() { return remember(cudaSuccess); }
