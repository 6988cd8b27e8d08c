// SPDX-License-Identifier: Apache-2.0
// Work for a handler of signals that the handler itself must not do: it may have interrupted
// malloc, or come because the heap is damaged.
#pragma once

namespace rung::cuda {

/// Does the work in a copy of this process, which may fail or hang at it. Returns whether it was
/// done. A signal handler may call it; the work may do whatever it likes.
bool do_apart(void (*work)());
/// Writes to standard error. A signal handler may call it.
void write_plainly(const char* text);

}  // namespace rung::cuda
