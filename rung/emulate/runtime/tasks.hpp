// SPDX-License-Identifier: Apache-2.0
// Work that is still pending when the call that enqueued it returns: a kernel that waits for the
// host's next action, and all work behind it. All other work completes in the call.
//
// A kernel that may have to wait runs on an OS thread of the runtime, and the host's call waits for
// it. If all of its threads poll memory without a change, the kernel is detached: the call returns,
// and the kernel continues to poll. If the host then waits for the kernel as well, it is a
// deadlock.
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
  bool loose = false;  // detached after a wait in vain: only explicit calls wait for it
  std::atomic<bool> done{false};
  std::atomic<bool> stands{false};  // suspended forever: the process ends
};
using TaskRef = std::shared_ptr<Task>;

/// Starts a task when its predecessors are complete.
TaskRef start_task(std::function<cudaError_t()> run, std::vector<TaskRef> after, int device);
/// Waits until the task is complete or detached, in the call that enqueues it.
void await_or_leave(const TaskRef& task);
/// Waits in the host until the task is complete. Returns its error unless it has been returned
/// before.
cudaError_t await_task(const TaskRef& task);
/// Waits until all tasks of the device are complete.
cudaError_t await_device(int device);
/// Returns true if any task is incomplete. Cheap.
bool any_task();
/// Adds +1 or -1 to the count of allocations that the host or another process may write during a
/// kernel.
void note_visible_memory(int change);
/// Notes that other processes may change memory, so that a wait for them is not a deadlock.
void note_other_processes();
/// Returns true if a kernel launched now may have to wait for the host. `streams`: there are
/// streams other than the default one.
bool may_wait_for_host(bool streams);

/// Returns the task that this thread runs; null if there is none.
Task* running_task();
/// Returns true if a kernel whose threads all poll without a change should continue to poll.
bool keep_looking(const void* task);
/// Ends the tasks with the process. On return every task is complete or suspended.
void stop_tasks();
/// Forwards a signal received by another thread to the thread that runs a kernel. Returns false if
/// there is none.
bool pass_signal(int signal);

}  // namespace rung::cuda
