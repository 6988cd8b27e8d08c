// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the CUDA dialect: a context on the device for which the file is compiled,
// memory on it, and, in the simulator, every test under every thread order.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "rung/core/context.hpp"
#include "rung/device/device.hpp"

namespace rung::inline RUNG_TARGET {

/// n elements of device memory, with copies from and to vectors.
template <class T>
class Buffer {
 public:
  explicit Buffer(std::size_t size)
      : api_(*device_api(device_backend)),
        data_(static_cast<T*>(api_.allocate(0, size * sizeof(T)))),
        size_(size) {}
  explicit Buffer(const std::vector<T>& values) : Buffer(values.size()) {
    api_.copy(0, data_, values.data(), size_ * sizeof(T));
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { api_.release(0, data_); }

  [[nodiscard]] T* data() const { return data_; }
  /// Returns the elements after waiting for the device.
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> host(size_);
    api_.copy(0, host.data(), data_, size_ * sizeof(T));
    return host;
  }

 private:
  const DeviceApi& api_;
  T* data_;
  std::size_t size_;
};

class DeviceTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const Availability here = available(device_backend); !here) GTEST_SKIP() << here.why;
#if !defined(__CUDACC__)
    simt::set_thread_order(simt::ThreadOrder::parse(GetParam()));
#endif
  }
#if !defined(__CUDACC__)
  void TearDown() override { simt::set_thread_order({}); }
#endif

  /// Returns a context; in the simulator with two OS threads on any machine: results must not
  /// depend on their number.
  static Context context() { return Context::on(device_backend, 2); }
};

/// Returns the schedules that a test runs under.
inline std::vector<std::string> thread_orders() {
#if defined(__CUDACC__)
  return {"hardware"};
#else
  return {"forward", "reverse", "random:1", "random:20"};
#endif
}
inline std::string order_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (c == ':') c = '_';
  }
  return name;
}

}  // namespace rung::inline RUNG_TARGET
