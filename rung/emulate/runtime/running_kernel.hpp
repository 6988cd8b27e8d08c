// SPDX-License-Identifier: Apache-2.0
// State of an OS thread during a launch.
#pragma once

#include "rung/emulate/runtime/pages.hpp"

namespace rung::cuda {

/// Marks a launch on this thread: device memory is accessible, and after 10 s a message reports the
/// kernel's location once. Launches on one thread do not nest.
class RunningKernel {
 public:
  RunningKernel();
  ~RunningKernel();
  RunningKernel(const RunningKernel&) = delete;
  RunningKernel& operator=(const RunningKernel&) = delete;

 private:
  DeviceAccess access_;
};

/// Returns the signal that the thread's timer sends after long_launch_seconds().
int long_launch_signal();
double long_launch_seconds();

}  // namespace rung::cuda
