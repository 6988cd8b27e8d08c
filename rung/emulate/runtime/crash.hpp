// SPDX-License-Identifier: Apache-2.0
// Prepares threads that run kernels, so that their faults can be reported.
#pragma once

namespace rung::cuda {

/// Alternate stack for this thread's signal handlers, for stack overflows. Active during its
/// lifetime.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  void* memory_;
};

}  // namespace rung::cuda
