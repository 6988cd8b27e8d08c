// SPDX-License-Identifier: Apache-2.0
// Work that is still pending when the call that enqueued it returns: a kernel that waits for an
// action of the host, and all work behind it. All other work completes within the call.
//
// A kernel that may have to wait runs on an OS thread of the runtime, and the host's call waits for
// the kernel. If all of its threads poll memory without a change, the kernel is detached: the call
// returns, and the kernel continues to poll. If the host then waits for the kernel as well, they
// are deadlocked.
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
  bool loose = false;  // detached after polling in vain: only explicit calls wait for it
  std::atomic<bool> done{false};
  std::atomic<bool> stands{false};  // suspended forever because the process ends
};
using TaskRef = std::shared_ptr<Task>;

/// Starts a task once its predecessors are complete.
TaskRef start_task(std::function<cudaError_t()> run, std::vector<TaskRef> after, int device);
/// Waits until the task is complete or detached; used by the call that enqueues it.
void await_or_leave(const TaskRef& task);
/// Waits on the host until the task is complete. Returns the task's error unless an earlier wait
/// has returned it.
cudaError_t await_task(const TaskRef& task);
/// Waits until all tasks of the device are complete.
cudaError_t await_device(int device);
/// Returns true if any task is incomplete. Costs one atomic load.
bool any_task();
/// Adds `change` (+1 or -1) to the number of allocations that the host or another process may write
/// while a kernel runs.
void note_visible_memory(int change);
/// Records that other processes may change memory, so that waiting for a change is not a deadlock.
void note_other_processes();
/// Returns true if a kernel launched now may have to wait for the host. `streams`: the program has
/// streams other than the default stream.
bool may_wait_for_host(bool streams);

/// Returns the task that this thread is running; null if there is none.
Task* running_task();
/// Returns true if a kernel whose threads all poll without a change should continue to poll.
bool keep_waiting(const void* task);
/// Ends all tasks with the process. On return every task is complete or suspended.
void stop_tasks();
/// Forwards a signal received by another thread to the thread that runs a kernel. Returns false if
/// no thread does.
bool pass_signal(int signal);

}  // namespace rung::cuda
