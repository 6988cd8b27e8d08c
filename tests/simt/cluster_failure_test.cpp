// SPDX-License-Identifier: Apache-2.0
// Misuse of clusters: the simulated GPU must report the error and its location.
#include <cmath>

#include "rung/device/ptx/bulk_copy.hpp"
#include "rung/device/ptx/cluster.hpp"
#include "rung/device/ptx/memory.hpp"
#include "rung/device/ptx/thread.hpp"
#include "tests/simt/failure_fixture.hpp"

namespace rung {
namespace {

class ClusterFailureTest : public FailureTest {};

struct Slots {
  alignas(128) float tile[1024];
  ptx::MemoryBarrier full;
};
constexpr std::size_t slots_bytes = sizeof(Slots);

__global__ void wait_without_arriving() { ptx::cluster_wait(); }
__global__ void arrive_twice() {
  ptx::cluster_arrive();
  ptx::cluster_arrive();
}
__global__ void one_block_stays_away() {
  if (ptx::cluster_rank() == 1) __syncthreads();
  if (ptx::cluster_rank() == 1 && threadIdx.x == 0) ptx::barrier_sync(1, 64);
  ptx::cluster_sync();
}
__global__ void map_outside(float* p, int rank) {
  *ptx::cluster_map(p, rank) = 1;
  ptx::cluster_sync();
}
__global__ void map_rank(int rank) {
  *ptx::cluster_map(shared<Slots>().tile, rank) = 1;
  ptx::cluster_sync();
}

TEST_P(ClusterFailureTest, Clusters) {
  Buffer<float> global{std::vector<float>(64)};
  const LaunchShape two{.grid = 4, .block = 32, .shared_bytes = slots_bytes, .cluster = 2};
  expect_failure(two, wait_without_arriving, {"cluster_wait() without cluster_arrive()"});
  expect_failure(two, arrive_twice, {"cluster_arrive() twice"});
  expect_failure(two, one_block_stays_away,
                 {"deadlock", "63 threads wait in cluster_wait",
                  "63 of 64 threads of the cluster have arrived"});
  expect_failure(two, map_outside, {"cluster_map", "outside the block's shared memory"},
                 global.data(), 1);
  expect_failure(two, map_rank, {"block 2 of a cluster of 2"}, 2);
}

__global__ void send_to_itself() {
  Slots& s = shared<Slots>();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(s.full, 1);
    ptx::mbarrier_fence_init();
    ptx::mbarrier_arrive_expect(s.full, 64);
    ptx::bulk_send(s.tile + 16, s.tile, 64, s.full, 0);
    ptx::mbarrier_wait_cluster(s.full, 0);
  }
}

TEST_P(ClusterFailureTest, SendingNeedsACluster) {
  expect_failure({.block = 32, .shared_bytes = slots_bytes}, send_to_itself,
                 {"bulk_send", "launched without clusters"});
}

/// Reads a neighboring block's memory after that block has exited.
__global__ void read_after_exit(unsigned* flag, float* out) {
  Slots& s = shared<Slots>();
  s.tile[0] = 5;
  const float* theirs = ptx::cluster_map(s.tile, 1 - ptx::cluster_rank());
  ptx::cluster_sync();
  if (ptx::cluster_rank() == 1) {
    ptx::store_release(flag, 1u);
    return;
  }
  while (ptx::load_acquire(flag) == 0) {
  }
  *out = *theirs;
}

TEST_P(ClusterFailureTest, MemoryOfABlockThatExitedIsPoison) {
  Context c = context();
  Buffer<unsigned> flag(std::vector<unsigned>{0});
  Buffer<float> out(1);
  launch(c, {.grid = 2, .block = 1, .shared_bytes = slots_bytes, .cluster = 2}, read_after_exit,
         flag.data(), out.data());
  EXPECT_TRUE(std::isnan(out.values()[0]));
}

INSTANTIATE_TEST_SUITE_P(Orders, ClusterFailureTest, testing::ValuesIn(thread_orders()),
                         order_name);

}  // namespace
}  // namespace rung
