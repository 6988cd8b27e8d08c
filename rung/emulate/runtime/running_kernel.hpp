// SPDX-License-Identifier: Apache-2.0
// What holds while a launch runs.
#pragma once

#include "rung/emulate/runtime/pages.hpp"

namespace rung::cuda {

/// A launch runs on this thread: device memory is open, and after 10 s a line tells where the
/// kernel is, once. Launches do not nest on a thread.
class RunningKernel {
 public:
  RunningKernel();
  ~RunningKernel();
  RunningKernel(const RunningKernel&) = delete;
  RunningKernel& operator=(const RunningKernel&) = delete;

 private:
  DeviceAccess access_;
};

/// That is sent to the thread when the time is over, and after how long.
int long_launch_signal();
double long_launch_seconds();

}  // namespace rung::cuda
