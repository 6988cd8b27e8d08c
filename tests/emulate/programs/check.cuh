// SPDX-License-Identifier: Apache-2.0
// What the programs share: they print OK, or what differs and end with 1.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                  \
  do {                                                                    \
    if (!(condition)) {                                                   \
      std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                       \
    }                                                                     \
  } while (0)
#define CUDA(call)                                              \
  do {                                                          \
    const cudaError_t error_of_call = (call);                   \
    if (error_of_call != cudaSuccess) {                         \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
                  cudaGetErrorString(error_of_call));           \
      std::exit(1);                                             \
    }                                                           \
  } while (0)

/// An array on the device and its copy on the host.
template <class T>
struct Array {
  int size;
  T* device;
  T* host;
  explicit Array(int n) : size(n), host(new T[static_cast<size_t>(n)]()) {
    CUDA(cudaMalloc(&device, static_cast<size_t>(n) * sizeof(T)));
    CUDA(cudaMemset(device, 0, static_cast<size_t>(n) * sizeof(T)));
    CUDA(cudaStreamSynchronize(cudaStreamLegacy));  // before other streams use it
  }
  ~Array() {
    cudaFree(device);
    delete[] host;
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  void up() {
    CUDA(cudaMemcpy(device, host, static_cast<size_t>(size) * sizeof(T), cudaMemcpyHostToDevice));
    CUDA(cudaStreamSynchronize(cudaStreamLegacy));
  }
  void down() {
    CUDA(cudaMemcpy(host, device, static_cast<size_t>(size) * sizeof(T), cudaMemcpyDeviceToHost));
  }
  T& operator[](int i) { return host[i]; }
};
inline int ok() {
  CUDA(cudaDeviceSynchronize());
  std::printf("OK\n");
  return 0;
}
/// Does what `rung emulate --checks N` does; called before the first launch.
inline void record_first_launches(int count) {
  char text[16];
  std::snprintf(text, sizeof text, "%d", count);
  setenv("RUNG_EMULATE_RECORDED_LAUNCHES", text, 1);
}
