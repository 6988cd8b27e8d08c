// SPDX-License-Identifier: Apache-2.0
// Work that has not ended when the call that enqueued it returns: a kernel that waits for what the
// host does next, and all that is enqueued behind it. Everything else is done by the call.
//
// A kernel that may have to wait runs on an OS thread of the runtime, and the host's call waits for
// it. Where all of the kernel's threads look at memory in vain it is let loose: the call returns,
// the kernel goes on looking. It is a deadlock only when the host waits for it as well.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "rung/emulate/runtime/api.hpp"

namespace rung::cuda {

struct Task {
  std::function<cudaError_t()> run;
  std::vector<std::shared_ptr<Task>> after;
  int device = 0;
  cudaError_t error = cudaSuccess;
  bool started = false;
  bool loose = false;  // it has waited in vain, so that nobody waits for it unasked
  std::atomic<bool> done{false};
  std::atomic<bool> stands{false};  // for ever: the process ends
};
using TaskRef = std::shared_ptr<Task>;

/// Starts it when the tasks before it are done.
TaskRef start_task(std::function<cudaError_t()> run, std::vector<TaskRef> after, int device);
/// Waits until it is done or let loose; for the call that enqueues it.
void await_or_leave(const TaskRef& task);
/// Waits until it is done, on behalf of the host. Returns its error, unless that was reported
/// before.
cudaError_t await_task(const TaskRef& task);
/// Waits until all tasks of the device are done.
cudaError_t await_device(int device);
/// Returns whether any task is not done. Cheap.
bool any_task();
/// Counts memory that the host, or another process, may write while a kernel runs: +1, -1.
void note_visible_memory(int change);
/// Notes that other processes may change memory: a wait for them is no deadlock.
void note_other_processes();
/// Returns whether a kernel that is launched now may have to wait for the host. `streams`: there
/// are others than the default one.
bool may_wait_for_host(bool streams);

/// Returns the task that this thread runs; null where there is none.
Task* running_task();
/// Called by a kernel whose threads all look in vain. Returns whether it shall go on.
bool keep_looking(const void* task);
/// Ends tasks with the process: every task is done, or stands still, when this returns.
void stop_tasks();
/// Passes a signal that came to another thread to the one that runs a kernel, if there is one.
bool pass_signal(int signal);

}  // namespace rung::cuda
