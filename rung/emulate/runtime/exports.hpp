// SPDX-License-Identifier: Apache-2.0
// Detects programs that may share cudaMalloc memory with other processes.
#pragma once

namespace rung::cuda {

/// Returns true if the program may export memory. All its allocations then get their own pages,
/// starting with the first.
bool exports_memory();

}  // namespace rung::cuda
