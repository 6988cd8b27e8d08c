// SPDX-License-Identifier: Apache-2.0
// Access to the worker threads of teams, for tests.
#pragma once

#include <atomic>

#include "rung/core/export.hpp"

namespace rung::cpu::team_hooks {

/// Called by each worker when it has seen a call, before it takes part. While it does not return,
/// the worker is one that has lost its core.
RUNG_API extern std::atomic<void (*)(int worker)> before_joining;

/// Number of worker threads in this process.
RUNG_API int workers();

/// The number of cores that the calling thread's teams assume; 0: those that it may use.
RUNG_API void assume_cores(int cores);

/// Counts against `worker`, of the calling thread's teams, that it lost its core for so long.
RUNG_API void note_loss(int worker, double seconds);

}  // namespace rung::cpu::team_hooks
