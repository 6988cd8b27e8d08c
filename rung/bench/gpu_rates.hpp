// SPDX-License-Identifier: Apache-2.0
// Helpers for measurements of GPUs; for files compiled by nvcc.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "rung/bench/machine.hpp"
#include "rung/core/bounds.hpp"
#include "rung/core/error.hpp"

namespace rung::bench {

inline void check_gpu(cudaError_t status) {
  if (status != cudaSuccess) {
    throw Error(ErrorCode::device, std::string("measuring the GPU: ") + cudaGetErrorString(status));
  }
}

/// Buffer in the current GPU's memory.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t bytes) { check_gpu(cudaMalloc(&memory_, bytes)); }
  ~DeviceBuffer() { cudaFree(memory_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  [[nodiscard]] void* get() const { return memory_; }

 private:
  void* memory_ = nullptr;
};

/// Returns the minimum seconds of 10 launches, each timed by events, after one launch to warm up.
template <class Launch>
double min_launch_seconds(Launch launch) {
  constexpr int launches = 10;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  check_gpu(cudaEventCreate(&begin));
  check_gpu(cudaEventCreate(&end));
  float least = 0;
  for (int i = 0; i <= launches; ++i) {
    check_gpu(cudaEventRecord(begin));
    launch();
    check_gpu(cudaGetLastError());
    check_gpu(cudaEventRecord(end));
    check_gpu(cudaEventSynchronize(end));
    float milliseconds = 0;
    check_gpu(cudaEventElapsedTime(&milliseconds, begin, end));
    if (i == 1) least = milliseconds;
    if (i > 1) least = smaller(least, milliseconds);
  }
  check_gpu(cudaEventDestroy(begin));
  check_gpu(cudaEventDestroy(end));
  return least * 1e-3;
}

/// Adds the rates of the tensor cores on compute capability 9.0; does nothing on other GPUs.
void measure_tensor_cores(Gpu& gpu);

}  // namespace rung::bench
