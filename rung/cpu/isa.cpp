// SPDX-License-Identifier: Apache-2.0
// Detects this CPU's instruction sets and selects the one that rung uses.
#include "rung/cpu/isa.hpp"

#include <hwy/targets.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "rung/core/error.hpp"

namespace rung::cpu {

const char* to_string(Isa isa) noexcept {
  constexpr const char* names[] = {"scalar", "avx2", "avx512"};
  return names[static_cast<int>(isa)];
}

namespace {

// Highway's SupportedTargets() queries the CPU each time (slow in a virtual machine) and resets the
// dispatch targets, which removes a cap. It is therefore called only here, and its result is
// cached.
std::atomic<int> current{-1};

Isa choose(Isa cap) {
  std::int64_t disabled = 0;
  if (cap < Isa::avx512) disabled |= HWY_AVX3 | HWY_AVX3_DL;
  if (cap < Isa::avx2) disabled |= HWY_AVX2;
  hwy::DisableTargets(disabled);
  const std::int64_t targets = hwy::SupportedTargets();
  hwy::GetChosenTarget().Update(targets);
  const Isa chosen = (targets & HWY_AVX3) != 0   ? Isa::avx512
                     : (targets & HWY_AVX2) != 0 ? Isa::avx2
                                                 : Isa::scalar;
  current.store(static_cast<int>(chosen), std::memory_order_relaxed);
  return chosen;
}

}  // namespace

Isa isa() noexcept {
  const int known = current.load(std::memory_order_relaxed);
  if (known >= 0) return static_cast<Isa>(known);
  // Initialized by one thread: Highway's list of disabled targets is a plain variable.
  static const Isa chosen = choose(Isa::avx512);
  return chosen;
}

void cap_isa(Isa cap) { choose(cap); }

int vector_fmas_a_cycle() noexcept {
#if defined(__x86_64__)
  // Zen 4 is the only core of that family with AVX-512.
  static const bool halves = __builtin_cpu_is("amdfam19h") != 0;
  return halves && isa() == Isa::avx512 ? 1 : 2;
#else
  return 2;
#endif
}

namespace {
// Read when the library is loaded, before any kernel runs. An unknown value is ignored with a
// message, since a library must not throw while it is being loaded.
const bool environment_read = [] {
  const char* requested = std::getenv("RUNG_CPU_TARGET");
  if (requested == nullptr || *requested == '\0') return true;
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (std::string(requested) == to_string(isa)) {
      cap_isa(isa);
      return true;
    }
  }
  std::fprintf(stderr, "rung: RUNG_CPU_TARGET=%s ignored; known: scalar, avx2, avx512\n",
               requested);
  return false;
}();
}  // namespace
}  // namespace rung::cpu
