// SPDX-License-Identifier: Apache-2.0
// Converts CUDA runtime errors to rung's Error, and makes a device current within a scope. Host
// code.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "rung/core/error.hpp"
#include "rung/device/target.hpp"

namespace rung::inline RUNG_TARGET {

/// Throws Error if `status` is a failure. `doing` names the failed operation in the message, such
/// as "cudaMalloc of 4 bytes".
inline void check_cuda(cudaError_t status, const std::string& doing) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // so that the next call does not report this failure again
  const ErrorCode code =
      status == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::device;
  throw Error(code,
              doing + ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")");
}

/// Makes a device current until the end of the scope, then restores the previous device.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    check_cuda(cudaGetDevice(&before_), "querying the current device");
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
