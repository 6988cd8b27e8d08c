// SPDX-License-Identifier: Apache-2.0
// Functions of the simulator that cooperative groups call.
#include "rung/emulate/runtime/api.hpp"
#include "rung/simt/cluster.hpp"
#include "rung/simt/simulator.hpp"
#include "rung/simt/sync.hpp"

#pragma GCC visibility push(default)
#include "rung_cuda/groups.h"
#pragma GCC visibility pop

namespace rung::cuda {

void grid_sync(Place place) { simt::grid_barrier(place); }
void cluster_arrive(Place place) { simt::cluster_arrive(place); }
void cluster_wait(Place place) { simt::cluster_wait(place); }
unsigned cluster_rank() { return static_cast<unsigned>(simt::cluster_rank()); }
void* cluster_address(const void* address, int rank, Place place) {
  return const_cast<void*>(simt::cluster_map(address, rank, place));
}

}  // namespace rung::cuda
