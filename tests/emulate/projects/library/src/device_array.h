// SPDX-License-Identifier: Apache-2.0
// Array in device memory that frees itself.
#pragma once
#include <stdexcept>

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(int n) : n_(n) {
    if (cudaMalloc(&data_, n * sizeof(T)) != cudaSuccess) throw std::runtime_error("cudaMalloc");
  }
  DeviceArray(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }
  void load(const T* from) { cudaMemcpy(data_, from, n_ * sizeof(T), cudaMemcpyHostToDevice); }
  void store(T* to) const { cudaMemcpy(to, data_, n_ * sizeof(T), cudaMemcpyDeviceToHost); }
  T* data() { return data_; }

 private:
  T* data_ = nullptr;
  int n_;
};
