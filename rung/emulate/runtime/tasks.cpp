// SPDX-License-Identifier: Apache-2.0
// OS threads that run tasks, and waits for tasks.
#include "rung/emulate/runtime/tasks.hpp"

#include <pthread.h>
#include <signal.h>  // NOLINT: pthread_kill is POSIX
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "rung/emulate/runtime/crash.hpp"
#include "rung/emulate/runtime/devices.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::cuda {
namespace {

constexpr useconds_t nap = 200;  // microseconds between polls
/// Rounds of polls without a change, while the host waits, after which the wait counts as a
/// deadlock: rounds_alone if no other thread can write, rounds_beside_others if a sleeping thread
/// might.
constexpr int rounds_alone = 50;
constexpr int rounds_beside_others = 50000;
// Name of these OS threads, which would otherwise inherit the name of the thread that starts them.
constexpr const char* runner_name = "rung-runner";

struct Runner {
  TaskRef task;
  std::condition_variable given;
};

struct Engine {
  std::mutex mutex;  // guards the members below
  std::condition_variable changed;
  std::vector<TaskRef> unfinished;
  std::vector<Runner*> idle;
  int blocked = 0;  // number of host threads waiting for a task
  std::atomic<bool> ending{false};
  bool processes = false;
  // Number of rounds in which all running tasks have polled without a change while the host waited.
  int rounds = 0;
  bool alone = false;              // no other thread could have written
  std::set<const Task*> polled;    // tasks that have polled in the current round
  cudaError_t late = cudaSuccess;  // error of a task whose call has already returned

  std::atomic<int> count{0};  // number of unfinished tasks, readable without the lock
  std::atomic<int> visible{0};
  std::atomic<pthread_t> kernel_thread{};

  void note_change() {
    rounds = 0;
    polled.clear();
    changed.notify_all();
  }
};
Engine* the_engine = new Engine;  // never destroyed: kernels may still poll when the process ends
Engine& engine() { return *the_engine; }

thread_local Task* mine = nullptr;

struct AfterFork {
  AfterFork() {
    // A child of fork() has none of these threads.
    pthread_atfork(nullptr, nullptr, [] {
      const int visible = the_engine->visible;
      the_engine = new Engine;
      the_engine->visible = visible;
    });
  }
} const after_fork;

void run_tasks(Runner* self);

void dispatch_ready(Engine& all) {
  if (all.ending) return;
  for (const TaskRef& task : all.unfinished) {
    const bool waits = std::any_of(task->after.begin(), task->after.end(),
                                   [](const TaskRef& one) { return !one->done; });
    if (task->started || waits) continue;
    task->started = true;
    task->after.clear();
    Runner* runner = nullptr;
    if (all.idle.empty()) {
      runner = new Runner;
      std::thread(run_tasks, runner).detach();
    } else {
      runner = all.idle.back();
      all.idle.pop_back();
    }
    runner->task = task;
    runner->given.notify_one();
  }
}

void run_tasks(Runner* self) {
  pthread_setname_np(pthread_self(), runner_name);
  const SignalStack stack;
  Engine& all = engine();
  std::unique_lock lock(all.mutex);
  for (;;) {
    self->given.wait(lock, [&] { return self->task != nullptr; });
    const TaskRef task = std::move(self->task);
    lock.unlock();
    mine = task.get();
    all.kernel_thread = pthread_self();
    {
      const OnDevice there(task->device);
      task->error = task->run();
    }
    task->run = nullptr;
    mine = nullptr;
    lock.lock();
    if (task->loose && all.late == cudaSuccess) all.late = task->error;
    task->done = true;
    std::erase(all.unfinished, task);
    --all.count;
    all.idle.push_back(self);
    dispatch_ready(all);
    all.note_change();
  }
}

/// State of the program's threads, except the runtime's threads and threads that wait for tasks.
enum class Others { none, sleeping, running };
Others other_threads(int blocked) {
  int sleeping = -blocked;
  std::error_code gone;
  for (const auto& one : std::filesystem::directory_iterator("/proc/self/task", gone)) {
    std::string stat;
    std::getline(std::ifstream(one.path() / "stat"), stat);
    const std::size_t open = stat.find('('), close = stat.rfind(')');
    if (close == std::string::npos || close + 2 >= stat.size()) continue;
    if (stat.compare(open + 1, close - open - 1, runner_name) == 0) continue;
    if (stat[close + 2] == 'R') return Others::running;
    ++sleeping;
  }
  return sleeping > 0 ? Others::sleeping : Others::none;
}

/// Counts a further round in which all running tasks have polled without a change. Returns true if
/// no thread can write any more.
bool is_endless(Engine& all) {
  if (all.processes) return false;
  if (++all.rounds == 1) all.alone = false;
  if (all.rounds % rounds_alone != 0) return false;
  const Others others = other_threads(all.blocked);
  if (others == Others::running) all.rounds = 0;
  // Another thread may have written and exited since the last poll, so all kernels poll once more.
  if (others == Others::none) return std::exchange(all.alone, true);
  all.alone = false;
  return all.rounds > rounds_beside_others;
}

cudaError_t take_late(Engine& all) { return std::exchange(all.late, cudaSuccess); }

/// Returns true in kernels and stream callbacks, which must not wait for tasks: they would wait for
/// themselves.
bool within_task() { return mine != nullptr || simt::in_kernel(); }

/// Blocks the host thread until the condition holds; meanwhile it cannot write memory for a kernel.
template <class Condition>
cudaError_t block_until(Condition condition) {
  Engine& all = engine();
  std::unique_lock lock(all.mutex);
  ++all.blocked;
  all.changed.wait(lock, condition);
  --all.blocked;
  all.rounds = 0;
  all.polled.clear();
  return take_late(all);
}

}  // namespace

TaskRef start_task(std::function<cudaError_t()> run, std::vector<TaskRef> after, int device) {
  auto task = std::make_shared<Task>();
  task->run = std::move(run);
  task->after = std::move(after);
  task->device = device;
  Engine& all = engine();
  const std::lock_guard lock(all.mutex);
  all.unfinished.push_back(task);
  ++all.count;
  dispatch_ready(all);
  all.rounds = 0;
  all.polled.clear();
  return task;
}

void await_or_leave(const TaskRef& task) {
  Engine& all = engine();
  std::unique_lock lock(all.mutex);
  all.changed.wait(lock, [&] { return task->done || task->loose; });
}

cudaError_t await_task(const TaskRef& task) {
  if (task == nullptr || !any_task() || within_task()) return cudaSuccess;
  return block_until([&] { return task->done.load(); });
}

cudaError_t await_device(int device) {
  if (!any_task() || within_task()) return cudaSuccess;
  return block_until([&] {
    const auto& left = engine().unfinished;
    return std::none_of(left.begin(), left.end(),
                        [&](const TaskRef& one) { return one->device == device; });
  });
}

bool any_task() { return engine().count.load(std::memory_order_acquire) != 0; }
void note_visible_memory(int change) { engine().visible += change; }
void note_other_processes() {
  const std::lock_guard lock(engine().mutex);
  engine().processes = true;
}
bool may_wait_for_host(bool streams) {
  return streams || engine().visible.load(std::memory_order_relaxed) > 0;
}

Task* running_task() { return mine; }

bool keep_waiting(const void* task) {
  auto* self = static_cast<Task*>(const_cast<void*>(task));
  Engine& all = engine();
  {
    const std::lock_guard lock(all.mutex);
    if (!self->loose) {
      self->loose = true;
      all.changed.notify_all();
    }
    if (all.blocked == 0) {
      all.rounds = 0;
      all.polled.clear();
    } else {
      all.polled.insert(self);
      const auto running =
          std::count_if(all.unfinished.begin(), all.unfinished.end(),
                        [](const TaskRef& one) { return one->started && !one->done; });
      if (static_cast<std::ptrdiff_t>(all.polled.size()) == running) {
        all.polled.clear();
        if (is_endless(all)) return false;
      }
    }
  }
  while (all.ending) {  // the process is ending
    self->stands = true;
    pause();
  }
  usleep(nap);
  return true;
}

void stop_tasks() {
  if (!any_task()) return;
  Engine& all = engine();
  all.ending = true;
  const auto at_work = [&] {
    const std::lock_guard lock(all.mutex);
    return std::any_of(all.unfinished.begin(), all.unfinished.end(), [](const TaskRef& one) {
      return one->started && !one->done && !one->stands;
    });
  };
  while (at_work()) usleep(nap);
  usleep(10 * nap);  // leaves time for other threads of a suspended kernel
}

bool pass_signal(int signal) {
  const pthread_t kernel = engine().kernel_thread;
  if (!any_task() || kernel == pthread_t{} || pthread_equal(kernel, pthread_self()) != 0) {
    return false;
  }
  return pthread_kill(kernel, signal) == 0;
}

}  // namespace rung::cuda
