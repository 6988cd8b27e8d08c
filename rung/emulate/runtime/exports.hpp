// SPDX-License-Identifier: Apache-2.0
// Detects programs that may share memory from cudaMalloc with other processes.
#pragma once

namespace rung::cuda {

/// Returns true if such memory gets pages of its own from the first allocation on.
bool exports_memory();

}  // namespace rung::cuda
