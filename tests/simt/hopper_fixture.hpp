// SPDX-License-Identifier: Apache-2.0
// Tests that need compute capability 9.0; skipped on older devices.
#pragma once

#include "tests/simt/device_fixture.hpp"

namespace rung::inline RUNG_TARGET {

class HopperTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!IsSkipped() && context().info().compute_capability < 90) {
      GTEST_SKIP() << "needs compute capability 9.0";
    }
  }
};

}  // namespace rung::inline RUNG_TARGET
