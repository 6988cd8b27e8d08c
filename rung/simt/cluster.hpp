// SPDX-License-Identifier: Apache-2.0
// Clusters of the simulated GPU: co-resident blocks on one OS thread, each of which may access the
// others' shared memory. When a block exits before the others, its shared memory is poisoned.
#pragma once

#include "rung/core/export.hpp"
#include "rung/simt/sync.hpp"

namespace rung::simt {

RUNG_API int cluster_rank();
RUNG_API int cluster_size();
RUNG_API void cluster_arrive(Place place);
RUNG_API void cluster_wait(Place place);
/// Returns the address of the same offset in the shared memory of block `rank` (mapa).
RUNG_API const void* cluster_map(const void* pointer, int rank, Place place);

}  // namespace rung::simt
