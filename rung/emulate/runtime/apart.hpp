// SPDX-License-Identifier: Apache-2.0
// Work that a signal handler must not do in its own process: the handler may have interrupted
// malloc, or the heap may be damaged.
#pragma once

namespace rung::cuda {

/// Runs work() in a forked copy of this process, which may crash or hang. Returns true on success.
/// Async-signal-safe, even if work() is not.
bool do_apart(void (*work)());
/// Writes to standard error. Async-signal-safe.
void write_plainly(const char* text);

}  // namespace rung::cuda
