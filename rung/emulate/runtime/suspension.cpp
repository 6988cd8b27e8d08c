// SPDX-License-Identifier: Apache-2.0
// Suspends recording while a thread copies or destroys parameters, which GPU threads do not do.
#include <utility>

#pragma GCC visibility push(default)
#include "rung_cuda/builtin.h"
#pragma GCC visibility pop

#include "rung/simt/record/request.hpp"

namespace rung::cuda {
namespace {

// The running thread's position in its warp's list. No other thread runs on this OS thread until
// recording resumes, since copies do not synchronize.
thread_local simt::record::Step* suspended = nullptr;

}  // namespace

void suspend_recording() {
  if (simt::record::tracer.last == nullptr) return;
  simt::record::keep_value();
  suspended = std::exchange(simt::record::tracer.last, nullptr);
}

void resume_recording() {
  if (suspended != nullptr) simt::record::tracer.last = std::exchange(suspended, nullptr);
}

}  // namespace rung::cuda
