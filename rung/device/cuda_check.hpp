// SPDX-License-Identifier: Apache-2.0
// Turning CUDA runtime errors into rung's, and making a device current for a while. Host code.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "rung/core/error.hpp"
#include "rung/device/target.hpp"

namespace rung::inline RUNG_TARGET {

/// Throws Error when `status` is a failure, with what was being done: "cudaMalloc of 4 bytes".
inline void check_cuda(cudaError_t status, const std::string& doing) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // so that the next call does not report this failure again
  const ErrorCode code =
      status == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::device;
  throw Error(code,
              doing + ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")");
}

/// Makes a device current until the end of the scope; the caller's own comes back.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    check_cuda(cudaGetDevice(&before_), "asking for the current device");
    if (device == before_) return;
    check_cuda(cudaSetDevice(device), "making device " + std::to_string(device) + " current");
    changed_ = true;
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice() {
    if (changed_) cudaSetDevice(before_);
  }

 private:
  int before_ = 0;
  bool changed_ = false;
};

}  // namespace rung::inline RUNG_TARGET
