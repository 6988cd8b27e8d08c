// SPDX-License-Identifier: Apache-2.0
// Clusters of the simulated GPU: blocks that are resident together on one OS thread, so that each
// may read and write the others' shared memory. A block's shared memory is poisoned when it exits
// before the others.
#pragma once

#include "rung/core/export.hpp"
#include "rung/simt/sync.hpp"

namespace rung::simt {

RUNG_API int cluster_rank();
RUNG_API int cluster_size();
RUNG_API void cluster_arrive(Place place);
RUNG_API void cluster_wait(Place place);
/// The same place in the shared memory of block `rank`.
RUNG_API const void* cluster_map(const void* pointer, int rank, Place place);

}  // namespace rung::simt
