// SPDX-License-Identifier: Apache-2.0
// Clusters: ranks, the cluster barrier, and distributed shared memory.
#include "rung/simt/cluster.hpp"

#include "rung/simt/address.hpp"
#include "rung/simt/record/recorder.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt {

void require_shared(const char* operation, const void* address, std::size_t bytes, Place place) {
  Worker& here = running_worker(operation);
  const std::byte* begin = here.current().block->shared;
  const auto* first = static_cast<const std::byte*>(address);
  if (first >= begin && first + bytes <= begin + shared_room(here.launch())) return;
  here.fail(std::string(operation) + ": the address is outside the block's shared memory", place);
}

void require_global(const char* operation, const void* address, std::size_t bytes, Place place) {
  const Allocation found = find_allocation(address);
  const auto* first = static_cast<const std::byte*>(address);
  if (found.size == 0 || first + bytes <= found.begin + found.size) return;
  running_worker(operation).fail(
      std::string(operation) + " of " + std::to_string(bytes) + " bytes leaves its allocation of " +
          std::to_string(found.size) + " after " + std::to_string(found.begin + found.size - first),
      place);
}

Block& block_of_rank(const char* operation, int rank, Place place) {
  Worker& here = running_worker(operation);
  const Cluster& cluster = *here.current().block->cluster;
  const int size = static_cast<int>(cluster.blocks.size());
  if (rank < 0 || rank >= size) {
    here.fail(std::string(operation) + ": block " + std::to_string(rank) + " of a cluster of " +
                  std::to_string(size),
              place);
  }
  Block& block = *cluster.blocks[static_cast<std::size_t>(rank)];
  if (block.live == 0) {
    here.fail(std::string(operation) + ": block " + std::to_string(rank) +
                  " of the cluster has exited, and its shared memory with it",
              place);
  }
  return block;
}

int cluster_rank() { return running_worker("cluster_rank").current().block->rank; }
int cluster_size() {
  return static_cast<int>(running_worker("cluster_size").current().block->cluster->blocks.size());
}

void cluster_arrive(Place place) {
  Worker& here = running_worker("cluster_arrive");
  Thread& self = here.current();
  Cluster& cluster = *self.block->cluster;
  if (self.at_cluster) {
    here.fail("cluster_arrive() twice without cluster_wait() between", place);
  }
  self.at_cluster = true;
  self.cluster_phase = cluster.phase;
  ++cluster.arrived;
  here.try_release(cluster);
}

void cluster_wait(Place place) {
  Worker& here = running_worker("cluster_wait");
  Thread& self = here.current();
  if (!self.at_cluster) here.fail("cluster_wait() without cluster_arrive() before", place);
  if (self.cluster_phase == self.block->cluster->phase) {
    here.wait(Wait::cluster, "cluster_wait", place);
  }
  self.at_cluster = false;
}

void Worker::try_release(Cluster& cluster) {
  if (cluster.arrived == 0 || cluster.arrived < cluster.live) return;
  cluster.arrived = 0;
  ++cluster.phase;
  if (recorder_ != nullptr) recorder_->cluster_met(cluster);
  gather();
  for (const auto& block : cluster.blocks) {
    for (Thread& thread : block->threads) {
      if (thread.wait != Wait::cluster) continue;
      thread.wait = Wait::none;
      gathered_.push_back(&thread);
    }
  }
  release_gathered(*cluster.blocks.front(), false);
}

const void* cluster_map(const void* pointer, int rank, Place place) {
  require_shared("cluster_map", pointer, 0, place);
  Worker& here = running_worker("cluster_map");
  const auto& blocks = here.current().block->cluster->blocks;
  if (here.recorder() != nullptr && rank >= 0 && static_cast<std::size_t>(rank) < blocks.size()) {
    // Accesses to an exited block are reported when they occur, with more detail.
    return in(*blocks[static_cast<std::size_t>(rank)], pointer);
  }
  return in(block_of_rank("cluster_map", rank, place), pointer);
}

}  // namespace rung::simt
