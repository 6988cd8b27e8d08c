// SPDX-License-Identifier: Apache-2.0
// Fibers: one stack per simulated thread, switched in a few nanoseconds. A fiber runs one thread
// after another; an abandoned fiber is restarted without unwinding.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace rung::simt {

/// A stack and its saved context; also represents the OS thread's own stack.
struct alignas(64) Fiber {
  void* context = nullptr;       // must be the first member: rung_simt_jump() relies on its offset
  const void* bottom = nullptr;  // lowest address, for ASan
  std::size_t size = 0;
  void* fake_stack = nullptr;  // for ASan
  // This fiber's exception state of the C++ runtime, swapped at each switch so that a thread may
  // wait inside a catch block.
  struct Exceptions {
    void* caught = nullptr;
    unsigned uncaught = 0;
    [[nodiscard]] bool any() const {
      return (reinterpret_cast<std::uintptr_t>(caught) | uncaught) != 0;
    }
  } exceptions;
};

/// Returns the C++ runtime's exception state of the calling OS thread.
Fiber::Exceptions* current_exceptions();

/// Runs a fiber: calls arrive(), then runs threads; never returns. In scheduler.cpp.
void run_fiber(Fiber& starter);

/// Saves the context in `from` and resumes `to`. Returns 0.
extern "C" int rung_simt_jump(Fiber* from, Fiber* to);

/// Switches from `from` to `to`; returns when another fiber switches back. `live` is
/// current_exceptions(), cached by the caller.
inline void switch_fiber(Fiber& from, Fiber& to, Fiber::Exceptions* live) {
  if (live->any() || to.exceptions.any()) [[unlikely]] {
    from.exceptions = *live;
    *live = to.exceptions;
    to.exceptions = {};  // while a fiber runs, only the live state is valid
  }
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.size);
#endif
  rung_simt_jump(&from, &to);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

/// Completes the switch into a new fiber; its first function calls this first.
inline void arrive([[maybe_unused]] Fiber& starter) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &starter.bottom, &starter.size);
#endif
}

/// Pool of the fibers of one OS thread.
class FiberPool {
 public:
  FiberPool() = default;
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;
  ~FiberPool();

  /// Returns an idle fiber; creates fibers if none is idle.
  Fiber* acquire() {
    if (idle_.empty()) grow();
    Fiber* fiber = idle_.back();
    idle_.pop_back();
    unused_ = std::min(unused_, idle_.size());
    return fiber;
  }
  /// Returns to the pool a fiber that waits in its entry point for the next thread.
  void release(Fiber* fiber) { idle_.push_back(fiber); }
  /// Makes every fiber idle and restarts it, wherever it was suspended.
  void restart_all();
  /// Returns true if no fiber used since the last call has overflowed its stack. All fibers must be
  /// idle. Not called after each thread: the canaries are cold, and touching them would dominate
  /// the cost of a thread.
  bool intact();

 private:
  struct Slab {
    void* memory;
    std::size_t size;
  };
  void grow();
  static void restart(Fiber& fiber);

  std::vector<Slab> slabs_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;  // the most recently released is last
  std::size_t unused_ = 0;    // number of entries at the front of idle_ not used since intact()
};

}  // namespace rung::simt
