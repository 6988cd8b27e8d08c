// SPDX-License-Identifier: Apache-2.0
// State of this thread while a launch runs.
#pragma once

#include "rung/emulate/runtime/pages.hpp"

namespace rung::cuda {

/// Marks a launch on this thread: device memory is open, and after 10 s a line tells, once, where
/// the kernel is. Launches do not nest on a thread.
class RunningKernel {
 public:
  RunningKernel();
  ~RunningKernel();
  RunningKernel(const RunningKernel&) = delete;
  RunningKernel& operator=(const RunningKernel&) = delete;

 private:
  DeviceAccess access_;
};

/// The signal that is sent to the thread when the time is over, and the time.
int long_launch_signal();
double long_launch_seconds();

}  // namespace rung::cuda
