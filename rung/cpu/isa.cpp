// SPDX-License-Identifier: Apache-2.0
#include "rung/cpu/isa.hpp"

#include <hwy/targets.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "rung/core/error.hpp"

namespace rung::cpu {

const char* to_string(Isa isa) noexcept {
  constexpr const char* names[] = {"scalar", "avx2", "avx512"};
  return names[static_cast<int>(isa)];
}

Isa isa() noexcept {
  const std::int64_t targets = hwy::SupportedTargets();
  if ((targets & HWY_AVX3) != 0) return Isa::avx512;
  if ((targets & HWY_AVX2) != 0) return Isa::avx2;
  return Isa::scalar;
}

void cap_isa(Isa cap) {
  std::int64_t disabled = 0;
  if (cap < Isa::avx512) disabled |= HWY_AVX3 | HWY_AVX3_DL;
  if (cap < Isa::avx2) disabled |= HWY_AVX2;
  hwy::DisableTargets(disabled);
  // Highway remembers its choice in a table index: make it choose again.
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

namespace {
// Read when the library is loaded, so that no kernel has run yet. An unknown value is ignored here
// with a message: a library must not throw while it is being loaded.
const bool environment_read = [] {
  const char* asked = std::getenv("RUNG_CPU_TARGET");
  if (asked == nullptr || *asked == '\0') return true;
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (std::string(asked) == to_string(isa)) {
      cap_isa(isa);
      return true;
    }
  }
  std::fprintf(stderr, "rung: RUNG_CPU_TARGET=%s ignored; known: scalar, avx2, avx512\n", asked);
  return false;
}();
}  // namespace
}  // namespace rung::cpu
