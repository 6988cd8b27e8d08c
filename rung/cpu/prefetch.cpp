// SPDX-License-Identifier: Apache-2.0
// Detects the CPU families for which kernels use software prefetching.
#include "rung/cpu/prefetch.hpp"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace rung::cpu {

namespace {

/// Returns the value of RUNG_CPU_PREFETCH; an unknown value is ignored with a message, as in
/// isa.cpp.
std::optional<bool> requested_setting() {
  static const std::optional<bool> answer = []() -> std::optional<bool> {
    const char* const given = std::getenv("RUNG_CPU_PREFETCH");
    if (given == nullptr || *given == '\0') return {};
    const std::string_view word = given;
    if (word == "0" || word == "1") return word == "1";
    std::fprintf(stderr, "rung: RUNG_CPU_PREFETCH=%s ignored; known: 0, 1\n", given);
    return {};
  }();
  return answer;
}

bool is_intel() {
#if defined(__x86_64__)
  return __builtin_cpu_is("intel") != 0;
#else
  return false;
#endif
}

bool is_zen_3_or_4() {
#if defined(__x86_64__)
  return __builtin_cpu_is("amdfam19h") != 0;
#else
  return false;
#endif
}

}  // namespace

bool prefetches_into_l1() noexcept {
  static const bool enabled = requested_setting().value_or(is_intel());
  return enabled;
}

bool prefetches_into_l2() noexcept {
  static const bool enabled = requested_setting().value_or(is_zen_3_or_4());
  return enabled;
}

}  // namespace rung::cpu
