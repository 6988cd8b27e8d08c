// SPDX-License-Identifier: Apache-2.0
// Shared by tests of failing kernels.
#pragma once

#include <string>
#include <vector>

#include "tests/simt/device_fixture.hpp"

namespace rung {
namespace {

class FailureTest : public DeviceTest {
 protected:
  /// Runs the kernel, which must fail with a message that contains all parts, and then a correct
  /// one.
  template <class Kernel, class... Arguments>
  void expect_failure(const LaunchShape& shape, Kernel kernel,
                      const std::vector<std::string>& parts, Arguments... arguments) {
    Context c = context();
    try {
      launch(c, shape, kernel, arguments...);
      FAIL() << "no failure was reported";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::device);
      for (const std::string& part : parts) {
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
            << "no \"" << part << "\" in:\n"
            << error.what();
      }
    }
    expect_healthy(c);
  }

  static __global__ void healthy(int* out) {
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] =
        __shfl_xor_sync(0xffffffffu, static_cast<int>(threadIdx.x), 1);
  }
  static void expect_healthy(Context& c) {
    Buffer<int> out(512);
    launch(c, {.grid = 4, .block = 128}, healthy, out.data());
    const std::vector<int> got = out.values();
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i], static_cast<int>(i % 128 ^ 1));
    }
  }
};

}  // namespace
}  // namespace rung
