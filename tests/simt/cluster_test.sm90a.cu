// SPDX-License-Identifier: Apache-2.0
// Clusters: ranks, barriers, shared memory of other blocks, and copies into it.
#include "rung/device/ptx/cluster.hpp"
#include "rung/device/ptx/cluster_send.hpp"

#include "rung/device/ptx/bulk_copy.hpp"
#include "tests/simt/hopper_fixture.hpp"

namespace rung::cluster_test {
namespace {

class ClusterTest : public HopperTest {};

__global__ void ranks(int* rank, int* size) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  rank[block] = ptx::cluster_rank();
  size[block] = ptx::cluster_size();
}

TEST_P(ClusterTest, RanksCountAlongXFirst) {
  struct Case {
    LaunchExtent grid, cluster;
  };
  for (const Case& one : {Case{{6, 4, 2}, {3, 2, 1}}, Case{{8, 1, 1}, {8, 1, 1}},
                          Case{{2, 4, 6}, {1, 2, 3}}, Case{{5, 1, 1}, {1, 1, 1}}}) {
    const auto n = static_cast<std::size_t>(one.grid.x * one.grid.y * one.grid.z);
    Context c = context();
    Buffer<int> rank(n), size(n);
    launch(c, {.grid = one.grid, .block = 32, .cluster = one.cluster}, ranks, rank.data(),
           size.data());
    const std::vector<int> got_rank = rank.values(), got_size = size.values();
    for (std::int64_t z = 0; z < one.grid.z; ++z) {
      for (std::int64_t y = 0; y < one.grid.y; ++y) {
        for (std::int64_t x = 0; x < one.grid.x; ++x) {
          const auto block = static_cast<std::size_t>((z * one.grid.y + y) * one.grid.x + x);
          const LaunchExtent& k = one.cluster;
          ASSERT_EQ(got_rank[block], (z % k.z * k.y + y % k.y) * k.x + x % k.x);
          ASSERT_EQ(got_size[block], k.x * k.y * k.z);
        }
      }
    }
  }
}

struct Values {
  int at[64];
  int counter;
};

/// Reads all other blocks' memory, writes to one and counts in another.
__global__ void exchange(int* out, int* counters) {
  Values& mine = shared<Values>();
  const int rank = ptx::cluster_rank(), size = ptx::cluster_size();
  const int me = static_cast<int>(threadIdx.x);
  mine.at[me] = 100 * rank + me;
  if (me == 0) mine.counter = 0;
  ptx::cluster_sync();
  int sum = 0;
  for (int other = 0; other < size; ++other) sum += *ptx::cluster_map(&mine.at[63 - me], other);
  if (me % 32 == 0) atomicAdd(ptx::cluster_map(&mine.counter, 0), rank);
  ptx::cluster_sync();
  *ptx::cluster_map(&mine.at[me], (rank + 1) % size) = sum + rank;
  ptx::cluster_sync();
  out[static_cast<int>(blockIdx.x) * 64 + me] = mine.at[me];
  if (me == 0) counters[blockIdx.x] = mine.counter;
}

TEST_P(ClusterTest, BlocksReachIntoEachOther) {
  for (const int size : {1, 2, 4, 8}) {
    const int blocks = 3 * size;
    Context c = context();
    Buffer<int> out(static_cast<std::size_t>(64 * blocks)),
        counters(static_cast<std::size_t>(blocks));
    launch(c, {.grid = blocks, .block = 64, .shared_bytes = sizeof(Values), .cluster = size},
           exchange, out.data(), counters.data());
    const std::vector<int> got = out.values(), counted = counters.values();
    for (int block = 0; block < blocks; ++block) {
      const int rank = block % size;
      ASSERT_EQ(counted[static_cast<std::size_t>(block)], rank == 0 ? size * (size - 1) : 0);
      for (int me = 0; me < 64; ++me) {
        const int sum = size * (63 - me) + 100 * size * (size - 1) / 2;
        ASSERT_EQ(got[static_cast<std::size_t>(64 * block + me)], sum + (rank + size - 1) % size);
      }
    }
  }
}

/// Arrives early, works, waits late; some threads exit before the last barrier.
__global__ void split_barrier(int* out, int rounds) {
  Values& mine = shared<Values>();
  const int rank = ptx::cluster_rank(), size = ptx::cluster_size();
  const int me = static_cast<int>(threadIdx.x);
  if (me >= 32) return;
  int seen = rank;
  for (int round = 0; round < rounds; ++round) {
    mine.at[me] = seen;
    ptx::cluster_arrive();
    int own = 0;
    for (int i = 0; i < me; ++i) own += i;
    ptx::cluster_wait();
    seen = *ptx::cluster_map(&mine.at[me], (rank + 1) % size) + 0 * own;
    ptx::cluster_sync();
  }
  out[32 * static_cast<int>(blockIdx.x) + me] = seen;
}

TEST_P(ClusterTest, ArrivingAndWaitingApart) {
  constexpr int blocks = 8, size = 4, rounds = 5;
  Context c = context();
  Buffer<int> out(32 * blocks);
  launch(c, {.grid = blocks, .block = 64, .shared_bytes = sizeof(Values), .cluster = size},
         split_barrier, out.data(), rounds);
  const std::vector<int> got = out.values();
  for (int i = 0; i < 32 * blocks; ++i) {
    ASSERT_EQ(got[static_cast<std::size_t>(i)], (i / 32 % size + rounds) % size);
  }
}

struct Slot {
  alignas(128) float tile[256];
  alignas(128) float received[256];
  ptx::MemoryBarrier full, sent, ready;
};

/// Fetches each block's part for the whole cluster, then sends each block's tile to its neighbor.
__global__ void share_copies(const float* in, float* out) {
  Slot& s = shared<Slot>();
  const int rank = ptx::cluster_rank(), size = ptx::cluster_size();
  const int me = static_cast<int>(threadIdx.x);
  if (me == 0) {
    ptx::mbarrier_init(s.full, 1);
    ptx::mbarrier_init(s.sent, 1);
    ptx::mbarrier_init(s.ready, size);
    ptx::mbarrier_fence_init();
  }
  ptx::cluster_sync();
  const int share = 256 / size;
  if (me == 0) {
    ptx::mbarrier_arrive_expect(s.full, sizeof(s.tile));
    ptx::mbarrier_arrive_expect(s.sent, sizeof(s.received));
    // A neighbor's barrier must expect bytes before they arrive, so each block signals all others.
    for (int other = 0; other < size; ++other) ptx::mbarrier_arrive_remote(s.ready, other);
    ptx::mbarrier_wait_cluster(s.ready, 0);
    ptx::bulk_load_multicast(s.tile + rank * share, in + rank * share,
                             static_cast<unsigned>(share) * 4, s.full,
                             static_cast<std::uint16_t>((1 << size) - 1));
    ptx::mbarrier_wait(s.full, 0);
    ptx::bulk_send(s.received, s.tile, sizeof(s.tile), s.sent, (rank + 1) % size);
  }
  ptx::mbarrier_wait_cluster(s.sent, 0);
  for (int i = me; i < 256; i += 32) {
    out[256 * static_cast<int>(blockIdx.x) + i] = s.received[i] + static_cast<float>(rank);
  }
  ptx::cluster_sync();
}

TEST_P(ClusterTest, CopiesIntoOtherBlocks) {
  std::vector<float> in(256);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  for (const int size : {2, 4, 8}) {
    const int blocks = 2 * size;
    Context c = context();
    Buffer<float> source(in), out(static_cast<std::size_t>(256 * blocks));
    launch(c, {.grid = blocks, .block = 32, .shared_bytes = sizeof(Slot), .cluster = size},
           share_copies, source.data(), out.data());
    const std::vector<float> got = out.values();
    for (int i = 0; i < 256 * blocks; ++i) {
      ASSERT_EQ(got[static_cast<std::size_t>(i)], static_cast<float>(i % 256 + i / 256 % size));
    }
  }
}

struct alignas(16) Sent {
  int at[8];
};
struct SentTo {
  Sent from[2][8];
  ptx::MemoryBarrier sent[2];
};

/// Signals from every block to every block of the cluster, repeatedly; two rounds may be in flight.
__global__ void tell_all(int* out, int rounds) {
  SentTo& s = shared<SentTo>();
  const int rank = ptx::cluster_rank(), size = ptx::cluster_size();
  const int me = static_cast<int>(threadIdx.x);
  if (me == 0) {
    for (ptx::MemoryBarrier& sent : s.sent) ptx::mbarrier_init(sent, 1);
    ptx::mbarrier_fence_init();
  }
  ptx::cluster_sync();
  int sum = 0;
  for (int round = 0; round < rounds; ++round) {
    const int turn = round % 2;
    Sent mine{};
    mine.at[0] = rank;
    mine.at[7] = round;
    if (me < size) ptx::cluster_send(s.from[turn][rank], mine, s.sent[turn], me);
    if (me == 0) {
      ptx::mbarrier_arrive_expect(s.sent[turn], static_cast<unsigned>(size) * sizeof(Sent));
    }
    ptx::mbarrier_wait_cluster(s.sent[turn], static_cast<unsigned>(round / 2) & 1);
    for (int other = 0; other < size; ++other) {
      sum += s.from[turn][other].at[0] * 100 + s.from[turn][other].at[7];
    }
    __syncwarp();  // all lanes have read before the next round is sent
  }
  out[32 * static_cast<int>(blockIdx.x) + me] = sum;
  ptx::cluster_sync();
}

TEST_P(ClusterTest, ValuesSentToAllBlocks) {
  constexpr int rounds = 5;
  for (const int size : {2, 8}) {
    const int blocks = 2 * size;
    Context c = context();
    Buffer<int> out(static_cast<std::size_t>(32 * blocks));
    launch(c, {.grid = blocks, .block = 32, .shared_bytes = sizeof(SentTo), .cluster = size},
           tell_all, out.data(), rounds);
    const int expected = rounds * 100 * size * (size - 1) / 2 + size * rounds * (rounds - 1) / 2;
    for (const int sum : out.values()) ASSERT_EQ(sum, expected);
  }
}

TEST_P(ClusterTest, SendingTakesALaunchWithClusters) {
  if (device_backend == Backend::cuda) GTEST_SKIP() << "an illegal instruction ends the context";
  Context c = context();
  Buffer<int> out(32);
  try {
    launch(c, {.grid = 1, .block = 32, .shared_bytes = sizeof(SentTo)}, tell_all, out.data(), 1);
    ADD_FAILURE() << "launched";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("launched without clusters"), std::string::npos)
        << error.what();
  }
}

/// Runs more clusters than the device holds at once, each of which waits within itself.
TEST_P(ClusterTest, ManyClusters) {
  constexpr int blocks = 4000;
  Context c = context();
  Buffer<int> out(64 * blocks), counters(blocks);
  launch(c, {.grid = blocks, .block = 64, .shared_bytes = sizeof(Values), .cluster = 2}, exchange,
         out.data(), counters.data());
  EXPECT_EQ(counters.values()[blocks - 2], 2);
  EXPECT_EQ(out.values()[64 * blocks - 1], 100 + 0);
}

TEST_P(ClusterTest, ShapesThatNoDeviceTakes) {
  Context c = context();
  Buffer<int> rank(64), size(64);
  const auto expect_refused = [&](const LaunchShape& shape, const char* part) {
    try {
      launch(c, shape, ranks, rank.data(), size.data());
      ADD_FAILURE() << "launched";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::device);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  expect_refused({.grid = 9, .block = 32, .cluster = 2}, "do not divide the grid");
  expect_refused({.grid = {4, 3}, .block = 32, .cluster = {1, 2}}, "do not divide the grid");
  expect_refused({.grid = 64, .block = 32, .cluster = {4, 4, 2}}, "accepted are 1 to 16");
  expect_refused({.grid = 64, .block = 32, .cluster = 32}, "cluster.x is 32");
  expect_refused({.grid = 64, .block = 32, .cluster = 0}, "cluster.x is 0");
}

INSTANTIATE_TEST_SUITE_P(Orders, ClusterTest, testing::ValuesIn(thread_orders()), order_name);

}  // namespace
}  // namespace rung::cluster_test
