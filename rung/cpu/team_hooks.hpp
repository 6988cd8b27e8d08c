// SPDX-License-Identifier: Apache-2.0
// Control over the participants of the calling thread's teams, for tests and checks.
#pragma once

#include <atomic>
#include <limits>

#include "rung/core/export.hpp"

namespace rung::cpu::team_hooks {

/// Value for AssumedCores: every requested thread takes part in the call, however late it is.
constexpr int enough_cores = std::numeric_limits<int>::max();

/// Sets the number of cores that calls assume, for the lifetime of this object. Otherwise it is
/// that of the thread's affinity, or enough_cores if RUNG_CPU_TEAM=exact is set in the environment.
class AssumedCores {
 public:
  RUNG_API explicit AssumedCores(int cores);
  RUNG_API ~AssumedCores();
  AssumedCores(const AssumedCores&) = delete;
  AssumedCores& operator=(const AssumedCores&) = delete;

 private:
  int before_;
};

/// Hook that each worker calls when it has seen a call, before it joins. A hook that blocks
/// simulates a worker that has lost its core.
RUNG_API extern std::atomic<void (*)(int worker)> before_joining;

/// Debits `worker` with `seconds` during which it had lost its core.
RUNG_API void note_loss(int worker, double seconds);

/// Returns the number of worker threads in this process.
RUNG_API int workers();

}  // namespace rung::cpu::team_hooks
