// SPDX-License-Identifier: Apache-2.0
// Core's interface to NVIDIA GPUs. CUDA is initialized at first use: a program that never uses a
// GPU has no CUDA context.
#include <algorithm>
#include <string>

#include "rung/core/context.hpp"
#include "rung/device/cuda_check.hpp"

namespace rung {
namespace {

struct Presence {
  int count = 0;
  std::string why_not;
};

Presence look() {
  Presence here;
  const cudaError_t status = cudaGetDeviceCount(&here.count);
  if (status == cudaSuccess && here.count > 0) return here;
  cudaGetLastError();
  here.count = 0;
  int driver = 0;
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) {
    here.why_not = "no NVIDIA driver on this machine";
  } else if (status == cudaErrorInsufficientDriver) {
    here.why_not = "the NVIDIA driver is for CUDA " + std::to_string(driver / 1000) + "." +
                   std::to_string(driver % 1000 / 10) + ", CUDA " +
                   std::to_string(CUDART_VERSION / 1000) + " or newer is needed";
  } else if (status == cudaSuccess || status == cudaErrorNoDevice) {
    here.why_not = "no NVIDIA GPU on this machine";
  } else {
    here.why_not = std::string("the CUDA runtime does not start: ") + cudaGetErrorString(status);
  }
  return here;
}

const Presence& presence() {
  static const Presence here = look();
  return here;
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, which, device),
             "querying an attribute of device " + std::to_string(device));
  return value;
}

DeviceInfo info(int device) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device),
             "querying the properties of device " + std::to_string(device));
  int driver = 0;
  check_cuda(cudaDriverGetVersion(&driver), "querying the driver's version");
  // CUDA reports the clock in kHz and the bus width in bits; memory has double data rate.
  const double memory_clock = 1e3 * attribute(cudaDevAttrMemoryClockRate, device);
  const double bus = attribute(cudaDevAttrGlobalMemoryBusWidth, device) / 8.0;
  return {.name = properties.name,
          .driver = std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10),
          .compute_capability = properties.major * 10 + properties.minor,
          .sms = properties.multiProcessorCount,
          .shared_per_block = properties.sharedMemPerBlockOptin,
          .shared_per_sm = properties.sharedMemPerMultiprocessor,
          .l2_bytes = static_cast<std::size_t>(properties.l2CacheSize),
          .memory_bytes = properties.totalGlobalMem,
          .bytes_per_second = 2 * memory_clock * bus};
}

void* allocate(int device, std::size_t bytes) {
  const CurrentDevice current(device);
  void* memory = nullptr;
  check_cuda(
      cudaMalloc(&memory, std::max<std::size_t>(bytes, 1)),
      "cudaMalloc of " + std::to_string(bytes) + " bytes on device " + std::to_string(device));
  return memory;
}

/// Frees memory and ignores errors: destructors call it.
void release(int device, void* memory) noexcept {
  int before = 0;
  if (cudaGetDevice(&before) != cudaSuccess) return;
  cudaSetDevice(device);
  cudaFree(memory);
  cudaSetDevice(before);
}

void copy(int device, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const CurrentDevice current(device);
  // Waits for work on streams that do not synchronize with the default stream.
  check_cuda(cudaDeviceSynchronize(), "waiting for device " + std::to_string(device));
  check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDefault),
             "copying " + std::to_string(bytes) + " bytes");
  // cudaMemcpy from device to device returns before the copy has completed.
  check_cuda(cudaStreamSynchronize(nullptr), "copying " + std::to_string(bytes) + " bytes");
}

void copy_on(int device, void* stream, void* to, const void* from, std::size_t bytes) {
  const CurrentDevice current(device);
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, static_cast<cudaStream_t>(stream)),
             "copying " + std::to_string(bytes) + " bytes");
}

static_assert(relaxed_captures == cudaStreamCaptureModeRelaxed);
int exchange_capture_mode(int mode) {
  auto exchanged = static_cast<cudaStreamCaptureMode>(mode);
  check_cuda(cudaThreadExchangeStreamCaptureMode(&exchanged), "setting the mode of captures");
  return exchanged;
}

void* create_stream(int device) {
  const CurrentDevice current(device);
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  return stream;
}

void destroy_stream(int, void* stream) noexcept {
  cudaStreamDestroy(static_cast<cudaStream_t>(stream));
}

void synchronize(int device, void* stream) {
  const CurrentDevice current(device);
  check_cuda(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)),
             "waiting for the work on a stream of device " + std::to_string(device));
}

bool is_capturing(int device, void* stream) {
  const CurrentDevice current(device);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  // The query fails for the default stream while another stream is captured; true is the safe
  // answer.
  if (cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status) != cudaSuccess) {
    cudaGetLastError();
    return true;
  }
  return status != cudaStreamCaptureStatusNone;
}

const DeviceRegistration self{{.backend = Backend::cuda,
                               .device_count = [] { return presence().count; },
                               .why_not = [] { return presence().why_not.c_str(); },
                               .info = info,
                               .allocate = allocate,
                               .release = release,
                               .copy = copy,
                               .create_stream = create_stream,
                               .destroy_stream = destroy_stream,
                               .synchronize = synchronize,
                               .is_capturing = is_capturing,
                               .copy_on = copy_on,
                               .exchange_capture_mode = exchange_capture_mode}};

}  // namespace
}  // namespace rung
