// SPDX-License-Identifier: Apache-2.0
// Timer of an OS thread during a launch.
#include "rung/emulate/runtime/running_kernel.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <optional>

#include "rung/emulate/runtime/memory.hpp"

namespace rung::cuda {

// Returns a signal that programs rarely use.
int long_launch_signal() { return SIGRTMAX - 3; }
double long_launch_seconds() {
  static const double seconds = [] {
    const char* given = std::getenv("RUNG_EMULATE_LONG_LAUNCH");  // for tests
    return given != nullptr ? std::atof(given) : 10.0;
  }();
  return seconds;
}

namespace {

class Timer {
 public:
  Timer() {
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = long_launch_signal();
    event._sigev_un._tid = gettid();
    // Measures the thread's CPU time, so that a loaded machine is not mistaken for a waiting
    // kernel.
    there_ = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_) == 0;
  }
  ~Timer() {
    if (there_) timer_delete(timer_);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  /// Sets the timer; 0 disables it.
  void set(double seconds) {
    itimerspec when = {};
    when.it_value.tv_sec = static_cast<std::time_t>(seconds);
    when.it_value.tv_nsec =
        static_cast<long>(1e9 * (seconds - static_cast<double>(when.it_value.tv_sec)));
    if (there_) timer_settime(timer_, 0, &when, nullptr);
  }

 private:
  timer_t timer_{};
  bool there_ = false;
};
/// Returns this thread's timer. A child of fork() does not inherit timers.
Timer& timer() {
  thread_local std::optional<Timer> one;
  thread_local pid_t process = 0;
  if (process != getpid()) {
    process = getpid();
    one.emplace();
  }
  return *one;
}

}  // namespace

RunningKernel::RunningKernel() {
  count_launch();
  timer().set(long_launch_seconds());
}
RunningKernel::~RunningKernel() { timer().set(0); }

}  // namespace rung::cuda
