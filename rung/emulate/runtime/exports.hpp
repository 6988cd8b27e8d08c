// SPDX-License-Identifier: Apache-2.0
// Tells whether the program may share memory from cudaMalloc with other processes.
#pragma once

namespace rung::cuda {

/// Returns whether such memory gets pages of its own from the first allocation on.
bool exports_memory();

}  // namespace rung::cuda
