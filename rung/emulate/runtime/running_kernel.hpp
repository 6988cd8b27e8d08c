// SPDX-License-Identifier: Apache-2.0
// State of this thread during a launch.
#pragma once

#include "rung/emulate/runtime/pages.hpp"

namespace rung::cuda {

/// Marks a launch on this thread: device memory is accessible, and after 10 s a message reports,
/// once, the kernel's location. Launches do not nest on a thread.
class RunningKernel {
 public:
  RunningKernel();
  ~RunningKernel();
  RunningKernel(const RunningKernel&) = delete;
  RunningKernel& operator=(const RunningKernel&) = delete;

 private:
  DeviceAccess access_;
};

/// Returns the signal that is sent to the thread when the time has elapsed, and the time.
int long_launch_signal();
double long_launch_seconds();

}  // namespace rung::cuda
