// SPDX-License-Identifier: Apache-2.0
// The last error of each host thread, and the sticky failure of the device.
#include <atomic>

#include "rung/emulate/runtime/api.hpp"

namespace rung::cuda {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
std::atomic<cudaError_t> failure{cudaSuccess};

}  // namespace

cudaError_t device_failure() { return failure.load(std::memory_order_relaxed); }
void set_device_failure(cudaError_t error) { failure.store(error, std::memory_order_relaxed); }

cudaError_t remember(cudaError_t error) {
  if (const cudaError_t broken = device_failure(); broken != cudaSuccess) error = broken;
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

}  // namespace rung::cuda

using namespace rung::cuda;  // NOLINT: implementation of the CUDA API

cudaError_t cudaPeekAtLastError() {
  forget_refused_launch();
  if (const cudaError_t broken = device_failure(); broken != cudaSuccess) return broken;
  return last_error;
}
cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return error;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define RUNG_CASE(name, value, text) \
  case name:                         \
    return #name;
    RUNG_CUDA_ERRORS(RUNG_CASE)
#undef RUNG_CASE
  }
  return "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
#define RUNG_CASE(name, value, text) \
  case name:                         \
    return text;
    RUNG_CUDA_ERRORS(RUNG_CASE)
#undef RUNG_CASE
  }
  return "unrecognized error code";
}
