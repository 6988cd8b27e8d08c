// SPDX-License-Identifier: Apache-2.0
// Barriers of a block: after the barrier every thread sees all writes before it.
#include "rung/device/ptx.hpp"
#include "tests/simt/device_fixture.hpp"

namespace rung::barrier_test {
namespace {

class BarrierTest : public DeviceTest {};

struct Ring {
  int value[1024];
};

/// Adds the right neighbor's value in each step: wrong if any thread runs ahead or behind.
__global__ void ring_sums(int* out, int steps) {
  Ring& ring = shared<Ring>();
  const int count = static_cast<int>(blockDim.x);
  const int me = static_cast<int>(threadIdx.x);
  ring.value[me] = me;
  for (int step = 0; step < steps; ++step) {
    __syncthreads();
    const int next = ring.value[(me + 1) % count];
    __syncthreads();
    ring.value[me] += next;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = ring.value[me];
}

TEST_P(BarrierTest, OrdersSharedMemoryForEveryBlockSize) {
  constexpr int steps = 5, blocks = 3;
  for (const int threads : {1, 31, 32, 33, 100, 256, 1024}) {
    Context c = context();
    Buffer<int> out(static_cast<std::size_t>(threads) * blocks);
    launch(c, {.grid = blocks, .block = threads, .shared_bytes = sizeof(Ring)}, ring_sums,
           out.data(), steps);
    std::vector<int> expected(static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i) expected[static_cast<std::size_t>(i)] = i;
    for (int step = 0; step < steps; ++step) {
      const std::vector<int> before = expected;
      for (std::size_t i = 0; i < before.size(); ++i) {
        expected[i] += before[(i + 1) % before.size()];
      }
    }
    const std::vector<int> got = out.values();
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i], expected[i % expected.size()]) << threads << " threads, element " << i;
    }
  }
}

__global__ void reductions(int* count, int* all, int* any, int threshold) {
  const int me = static_cast<int>(threadIdx.x);
  // Two votes in a row: the second must not see values of the first.
  for (int round = 0; round < 2; ++round) {
    const int limit = threshold + round;
    count[round * blockDim.x + threadIdx.x] = __syncthreads_count(me < limit ? 7 : 0);
    all[round * blockDim.x + threadIdx.x] = __syncthreads_and(me < limit);
    any[round * blockDim.x + threadIdx.x] = __syncthreads_or(me >= limit);
  }
}

TEST_P(BarrierTest, CountAndOr) {
  constexpr int threads = 70;
  for (const int threshold : {0, 1, 69, 70}) {
    Context c = context();
    Buffer<int> count(2 * threads), all(2 * threads), any(2 * threads);
    launch(c, {.block = threads}, reductions, count.data(), all.data(), any.data(), threshold);
    for (int round = 0; round < 2; ++round) {
      const int limit = std::min(threshold + round, threads);
      for (int i = 0; i < threads; ++i) {
        const auto at = static_cast<std::size_t>(round * threads + i);
        ASSERT_EQ(count.values()[at], limit);
        ASSERT_EQ(all.values()[at] != 0, limit == threads);
        ASSERT_EQ(any.values()[at] != 0, limit < threads);
      }
    }
  }
}

/// Exits in some threads, for which the barrier must not wait.
__global__ void early_exit(int* out, int stay) {
  Ring& ring = shared<Ring>();
  const int me = static_cast<int>(threadIdx.x);
  if (me >= stay) return;
  ring.value[me] = 3 * me;
  __syncthreads();
  out[me] = ring.value[stay - 1 - me];
}

TEST_P(BarrierTest, ExitedThreadsCountAsArrived) {
  constexpr int threads = 96;
  for (const int stay : {1, 33, 95, 96}) {
    Context c = context();
    Buffer<int> out(static_cast<std::size_t>(stay));
    launch(c, {.block = threads, .shared_bytes = sizeof(Ring)}, early_exit, out.data(), stay);
    const std::vector<int> got = out.values();
    for (int i = 0; i < stay; ++i) ASSERT_EQ(got[static_cast<std::size_t>(i)], 3 * (stay - 1 - i));
  }
}

/// Produces in one warp and consumes in another, through two slots and four named barriers.
__global__ void producer_consumer(int* out, int rounds) {
  constexpr int pair = 64;  // threads per barrier: a waiting warp and an arriving warp
  constexpr int full = 1, empty = 3;
  Ring& ring = shared<Ring>();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (threadIdx.x < 32) {
    for (int round = 0; round < rounds; ++round) {
      const int slot = round % 2;
      if (round >= 2) ptx::barrier_sync(empty + slot, pair);
      ring.value[32 * slot + lane] = 100 * round + lane;
      __threadfence_block();
      ptx::barrier_arrive(full + slot, pair);
    }
  } else {
    for (int round = 0; round < rounds; ++round) {
      const int slot = round % 2;
      ptx::barrier_sync(full + slot, pair);
      out[32 * round + lane] = ring.value[32 * slot + 31 - lane];
      if (round + 2 < rounds) ptx::barrier_arrive(empty + slot, pair);
    }
  }
}

TEST_P(BarrierTest, NamedBarriersPassTilesFromWarpToWarp) {
  constexpr int rounds = 7;
  Context c = context();
  Buffer<int> out(32 * rounds);
  launch(c, {.block = 64, .shared_bytes = sizeof(Ring)}, producer_consumer, out.data(), rounds);
  const std::vector<int> got = out.values();
  for (int round = 0; round < rounds; ++round) {
    for (int lane = 0; lane < 32; ++lane) {
      ASSERT_EQ(got[static_cast<std::size_t>(32 * round + lane)], 100 * round + 31 - lane);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, BarrierTest, testing::ValuesIn(thread_orders()), order_name);

}  // namespace
}  // namespace rung::barrier_test
