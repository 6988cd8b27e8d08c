// SPDX-License-Identifier: Apache-2.0
// Functions that device functions in headers call: clocks, address spaces, assertions.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "rung/emulate/runtime/api.hpp"
#include "rung/simt/simulator.hpp"
#include "rung/simt/sync.hpp"

#pragma GCC visibility push(default)
#include "rung_cuda/builtin.h"
#include "rung_cuda/memory.h"
#include "rung_cuda/numbers.h"
#pragma GCC visibility pop

namespace rung::cuda {

unsigned long long nanoseconds() {
  simt::note_clock_read();
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<unsigned long long>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}
/// Offset added to the clock to shorten the waits of threads that poll it: on a GPU all threads
/// wait concurrently, but in the simulator they would wait one after another. Once a thread of the
/// kernel has waited, the waits of later threads are recognized after fewer calls.
class Waits {
 public:
  unsigned long long skipped() {
    const Index thread = threadIdx, block = blockIdx;
    const char* const kernel = simt::in_kernel() ? launch_data->kernel : nullptr;
    if (kernel == kernel_ && same(thread, thread_) && same(block, block_)) {
      if (++calls_ > (before_ == 0 ? calls_before : calls_before_again)) skip();
      return skipped_;
    }
    if (waited_ != 0) before_ = waited_;
    if (kernel != kernel_) before_ = 0;
    kernel_ = kernel;
    thread_ = thread;
    block_ = block;
    calls_ = 0;
    waited_ = 0;
    return skipped_;
  }

 private:
  using Index = uint3;
  static bool same(const Index& a, const Index& b) {
    return a.x == b.x && a.y == b.y && a.z == b.z;
  }
  /// Advances the offset. The first step is half of the previous thread's wait. Further steps begin
  /// at a quarter of that wait, or at one cycle if there was none, and double every few calls.
  void skip() {
    unsigned long long step = before_ / 2;
    const int skips = calls_ - (before_ == 0 ? calls_before : calls_before_again + 1);
    if (skips != 0 || step == 0) {
      step = std::max(before_ / 4, 1ull) << std::min(skips / calls_a_doubling, longest_shift);
      step = std::min(step, 1ull << longest_shift);
    }
    skipped_ += step;
    waited_ += step;
  }

  static constexpr int calls_before = 64, calls_before_again = 3, calls_a_doubling = 4;
  static constexpr int longest_shift = 24;  // log2 of the maximum number of cycles skipped at once
  unsigned long long skipped_ = 0;
  unsigned long long waited_ = 0;  // cycles waited by this thread
  // Cycles waited by the kernel's previous waiting thread; 0: none.
  unsigned long long before_ = 0;
  const char* kernel_ = nullptr;
  Index thread_{}, block_{};
  int calls_ = 0;
};
unsigned long long cycles() {
  thread_local unsigned long long last = 0;
  thread_local Waits waits;
  const unsigned long long now = 2 * nanoseconds() + waits.skipped();
  last = now > last ? now : last + 1;  // strictly increasing
  return last;
}

bool in_kernel() { return simt::in_kernel(); }
bool in_shared(const void* address) {
  const char* byte = static_cast<const char*>(address);
  return simt::in_kernel() && byte >= shared_base &&
         byte < shared_base + simt::shared_memory_room();
}
unsigned dynamic_shared_bytes() { return static_cast<unsigned>(simt::shared_memory_size()); }

double inverse_normal(double p) {
  if (!(p >= 0 && p <= 1)) return NAN;
  if (p == 0) return -INFINITY;
  if (p == 1) return INFINITY;
  // Newton's method for the inverse distribution function, from an initial value that is accurate
  // in the tails.
  const double tail = p < 0.5 ? p : 1 - p;
  const double t = std::sqrt(-2 * std::log(tail));
  double x = tail < 0.1 ? t - std::log(t * t + 1) / (t + 0.1) / 2 : (0.5 - tail) * 2.5;
  for (int i = 0; i < 60; ++i) {
    const double error = 0.5 * std::erfc(x / std::sqrt(2.0)) - tail;
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
    const double step = error / density;
    const double limited = step / (1 + std::abs(x * step) / 2);
    x += limited;
    if (std::abs(limited) < 1e-16 * std::abs(x)) break;
  }
  return p < 0.5 ? -x : x;
}

}  // namespace rung::cuda

// clock() counts cycles in a kernel, and is C's clock() in host code. The linker option --wrap,
// which redirects programs to this function, requires its name:
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" __attribute__((visibility("default"))) clock_t __wrap_clock() {
  return rung::simt::in_kernel() ? static_cast<clock_t>(rung::cuda::cycles()) : std::clock();
}

/// Implements assert(): ends the launch in a kernel, the program in host code.
extern "C" __attribute__((visibility("default"), noreturn)) void rung_emulate_assert_fail(
    const char* condition, const char* file, unsigned int line, const char* function) noexcept {
  if (rung::simt::in_kernel()) {
    const std::string text = std::string("Assertion `") + condition + "' failed\n  in " + function +
                             "\n  at " + file + ":" + std::to_string(line);
    static thread_local char kept[1024];
    std::snprintf(kept, sizeof kept, "%s", text.c_str());
    rung::simt::fail(kept, rung::simt::Place{});
  }
  using Fail = void (*)(const char*, const char*, unsigned int, const char*);
  reinterpret_cast<Fail>(dlsym(RTLD_NEXT, "__assert_fail"))(condition, file, line, function);
  std::abort();
}

// Overrides the C library's function in programs that link this library. Stand-alone objects call
// the function above, since in a library loaded by another program the C library's function is
// found first.
extern "C" __attribute__((visibility("default"), noreturn)) void __assert_fail(  // NOLINT
    const char* condition, const char* file, unsigned int line, const char* function) noexcept {
  rung_emulate_assert_fail(condition, file, line, function);
}
