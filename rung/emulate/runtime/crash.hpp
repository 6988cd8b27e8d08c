// SPDX-License-Identifier: Apache-2.0
// Signal stacks for threads that run kernels, so that their faults can be reported.
#pragma once

namespace rung::cuda {

/// Sets an alternate signal stack for this thread during the object's lifetime, on which handlers
/// run even after a stack overflow.
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
