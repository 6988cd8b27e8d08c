// SPDX-License-Identifier: Apache-2.0
// Work that a signal handler must not do itself: it may have interrupted malloc, or run because the
// heap is damaged.
#pragma once

namespace rung::cuda {

/// Does the work in a copy of this process, which may crash or hang. Returns true on success.
/// Async-signal-safe; the work need not be.
bool do_apart(void (*work)());
/// Writes to standard error. Async-signal-safe.
void write_plainly(const char* text);

}  // namespace rung::cuda
