// SPDX-License-Identifier: Apache-2.0
// Whether the program may tell other processes of memory from cudaMalloc.
#pragma once

namespace rung::cuda {

/// Such memory has pages of its own, from the first on.
bool exports_memory();

}  // namespace rung::cuda
