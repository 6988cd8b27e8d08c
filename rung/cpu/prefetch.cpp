// SPDX-License-Identifier: Apache-2.0
// Which kind of CPU this is, as far as kernels care.
#include "rung/cpu/prefetch.hpp"

#include <cstdlib>

namespace rung::cpu {

bool asks_for_lines() noexcept {
  static const bool asks = [] {
    const char* asked = std::getenv("RUNG_CPU_PREFETCH");
    if (asked != nullptr && (*asked == '0' || *asked == '1')) return *asked == '1';
#if defined(__x86_64__)
    return __builtin_cpu_is("intel") != 0;
#else
    return false;
#endif
  }();
  return asks;
}

bool asks_memory_for_lines() noexcept {
#if defined(__x86_64__)
  static const bool asks = __builtin_cpu_is("amdfam19h") != 0;
  return asks;
#else
  return false;
#endif
}

}  // namespace rung::cpu
