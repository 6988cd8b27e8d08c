// SPDX-License-Identifier: Apache-2.0
// Detects programs that may share memory from cudaMalloc with other processes.
#pragma once

namespace rung::cuda {

/// Returns true if the program may export memory, which then gets separate pages from the first
/// allocation on.
bool exports_memory();

}  // namespace rung::cuda
