// SPDX-License-Identifier: Apache-2.0
// Fibers: one stack a simulated thread, switched in about ten nanoseconds by Boost.Context's
// assembly. The raw layer instead of boost::context::fiber: a fiber is reused for thread after
// thread, and an abandoned one is restarted without unwinding it.
#pragma once

#include <algorithm>
#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <memory>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace rung::simt {

/// A stack and the point where it was left. The OS thread's own stack is one too.
struct alignas(64) Fiber {
  boost::context::detail::fcontext_t context = nullptr;
  const void* bottom = nullptr;  // the lowest address; what ASan wants to know
  std::size_t size = 0;
  void* fake_stack = nullptr;  // ASan's
  // This fiber's part of the C++ runtime's state (the exceptions being handled), swapped at each
  // switch so that a thread may wait inside a catch block.
  struct Exceptions {
    void* caught = nullptr;
    unsigned uncaught = 0;
  } exceptions;
};

/// The C++ runtime's exception state of the calling OS thread.
Fiber::Exceptions* current_exceptions();

/// Leaves `from` for `to`; returns when somebody switches back. `live` is current_exceptions(),
/// which the caller has at hand.
inline void switch_fiber(Fiber& from, Fiber& to, Fiber::Exceptions* live) {
  from.exceptions = *live;
  *live = to.exceptions;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.size);
#endif
  const auto arrival = boost::context::detail::jump_fcontext(to.context, &from);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
  static_cast<Fiber*>(arrival.data)->context = arrival.fctx;
}

/// What a fiber's first function does first: notes where the one that started it was left.
inline void arrive(const boost::context::detail::transfer_t& arrival) {
  Fiber& starter = *static_cast<Fiber*>(arrival.data);
  starter.context = arrival.fctx;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &starter.bottom, &starter.size);
#endif
}

/// Fibers of one OS thread that all run one function.
class FiberPool {
 public:
  explicit FiberPool(void (*function)(boost::context::detail::transfer_t)) : function_(function) {}
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
  /// Whether no fiber used since the last call has overflowed its stack. All must be idle. Not
  /// asked after each thread: the stacks' far ends are cold, and cost more than all the rest.
  bool intact();

 private:
  struct Slab {
    void* memory;
    std::size_t size;
  };
  void grow();
  void restart(Fiber& fiber);

  void (*function_)(boost::context::detail::transfer_t);
  std::vector<Slab> slabs_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;  // the last released on top
  std::size_t unused_ = 0;    // so many at the bottom of idle_ have not been used since intact()
};

}  // namespace rung::simt
