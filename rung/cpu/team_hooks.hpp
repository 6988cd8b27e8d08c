// SPDX-License-Identifier: Apache-2.0
// Control over who takes part in the calling thread's teams, for tests and checks.
#pragma once

#include <atomic>
#include <limits>

#include "rung/core/export.hpp"

namespace rung::cpu::team_hooks {

/// A value of AssumedCores with which every requested thread takes part in the call, however late
/// it is.
constexpr int enough_cores = std::numeric_limits<int>::max();

/// Calls have as many threads as if there were so many cores, for the lifetime of this object.
/// Without one, the thread's affinity counts; with RUNG_CPU_TEAM=exact in the environment there
/// are enough_cores.
class AssumedCores {
 public:
  RUNG_API explicit AssumedCores(int cores);
  RUNG_API ~AssumedCores();
  AssumedCores(const AssumedCores&) = delete;
  AssumedCores& operator=(const AssumedCores&) = delete;

 private:
  int before_;
};

/// Called by each worker when it has seen a call, before it takes part. While it does not return,
/// the worker is one that has lost its core.
RUNG_API extern std::atomic<void (*)(int worker)> before_joining;

/// Counts against `worker` that it lost its core for so long.
RUNG_API void note_loss(int worker, double seconds);

/// Number of worker threads in this process.
RUNG_API int workers();

}  // namespace rung::cpu::team_hooks
