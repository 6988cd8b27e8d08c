// SPDX-License-Identifier: Apache-2.0
// Fibers: one stack a simulated thread, switched in a few nanoseconds. A fiber is reused for thread
// after thread, and an abandoned one is restarted without unwinding it.
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

/// A stack and the point where it was left. The OS thread's own stack is one too.
struct alignas(64) Fiber {
  void* context = nullptr;       // comes first: jump() knows where it lies
  const void* bottom = nullptr;  // the lowest address; what ASan wants to know
  std::size_t size = 0;
  void* fake_stack = nullptr;  // ASan's
  // This fiber's part of the C++ runtime's state (the exceptions being handled), swapped at each
  // switch so that a thread may wait inside a catch block.
  struct Exceptions {
    void* caught = nullptr;
    unsigned uncaught = 0;
    [[nodiscard]] bool any() const {
      return (reinterpret_cast<std::uintptr_t>(caught) | uncaught) != 0;
    }
  } exceptions;
};

/// The C++ runtime's exception state of the calling OS thread.
Fiber::Exceptions* current_exceptions();

/// What every fiber runs, in scheduler.cpp: it calls arrive(), and never returns.
void run_fiber(Fiber& starter);

/// Goes on where `to` was left, and notes where `from` is.
extern "C" void rung_simt_jump(Fiber* from, Fiber* to);

/// Leaves `from` for `to`; returns when somebody switches back. `live` is current_exceptions(),
/// which the caller has at hand.
inline void switch_fiber(Fiber& from, Fiber& to, Fiber::Exceptions* live) {
  if (live->any() || to.exceptions.any()) [[unlikely]] {
    from.exceptions = *live;
    *live = to.exceptions;
    to.exceptions = {};  // of what runs the live state alone counts
  }
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.size);
#endif
  rung_simt_jump(&from, &to);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

/// What a fiber's first function does first.
inline void arrive([[maybe_unused]] Fiber& starter) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &starter.bottom, &starter.size);
#endif
}

/// Fibers of one OS thread.
class FiberPool {
 public:
  FiberPool() = default;
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;
  ~FiberPool();

  /// An idle fiber, or a new one.
  Fiber* acquire() {
    if (idle_.empty()) grow();
    Fiber* fiber = idle_.back();
    idle_.pop_back();
    unused_ = std::min(unused_, idle_.size());
    return fiber;
  }
  /// A fiber that waits inside its function to be given more work.
  void release(Fiber* fiber) { idle_.push_back(fiber); }
  /// Makes every fiber idle and as new, wherever it was left.
  void restart_all();
  /// Returns whether no fiber used since the last call has overflowed its stack. All must be idle.
  /// Not asked after each thread: the stacks' far ends are cold, and cost more than all the rest.
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
  std::vector<Fiber*> idle_;  // the last released on top
  std::size_t unused_ = 0;    // so many at the bottom of idle_ have not been used since intact()
};

}  // namespace rung::simt
