// SPDX-License-Identifier: Apache-2.0
// Work that is pending when the call that enqueued it returns: a kernel that waits for the host's
// next action, and all work enqueued behind it. Everything else completes in the call.
//
// A kernel that may have to wait runs on an OS thread of the runtime, and the host's call waits for
// it. If all of the kernel's threads poll memory without a change, it is detached: the call returns
// while the kernel continues to poll. It is a deadlock only if the host waits for it as well.
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
  bool loose = false;  // detached after an unsuccessful wait: only explicit calls wait for it
  std::atomic<bool> done{false};
  std::atomic<bool> stands{false};  // suspended forever: the process ends
};
using TaskRef = std::shared_ptr<Task>;

/// Starts a task when its predecessors are complete.
TaskRef start_task(std::function<cudaError_t()> run, std::vector<TaskRef> after, int device);
/// Waits until the task is complete or detached; for the call that enqueues it.
void await_or_leave(const TaskRef& task);
/// Waits on behalf of the host until the task is complete. Returns its error, unless that was
/// reported before.
cudaError_t await_task(const TaskRef& task);
/// Waits until all tasks of the device are complete.
cudaError_t await_device(int device);
/// Returns true if any task is incomplete. Cheap.
bool any_task();
/// Adjusts the count of memory that the host or another process may write during a kernel: +1, -1.
void note_visible_memory(int change);
/// Notes that other processes may change memory: a wait for them is not a deadlock.
void note_other_processes();
/// Returns true if a kernel launched now may have to wait for the host. `streams`: streams other
/// than the default one exist.
bool may_wait_for_host(bool streams);

/// Returns the task that this thread runs; null if there is none.
Task* running_task();
/// Called by a kernel whose threads all poll without a change. Returns true if it should continue.
bool keep_looking(const void* task);
/// Ends tasks with the process: on return, every task is complete or suspended.
void stop_tasks();
/// Forwards a signal that reached another thread to the one that runs a kernel, if there is one.
bool pass_signal(int signal);

}  // namespace rung::cuda
