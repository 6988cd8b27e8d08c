// SPDX-License-Identifier: Apache-2.0
// Data races: each planted race and its corrected twin, under every thread order.
#include <random>
#include <vector>

#include "rung/device/ptx/async_copy.hpp"
#include "rung/device/ptx/mbarrier.hpp"
#include "rung/device/ptx/memory.hpp"
#include "rung/device/ptx/thread.hpp"
#include "tests/simt/record_fixture.hpp"

namespace rung {
namespace {

class Race : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { simt::set_thread_order(simt::ThreadOrder::parse(GetParam())); }
  void TearDown() override { simt::set_thread_order({}); }
};
INSTANTIATE_TEST_SUITE_P(Orders, Race, testing::ValuesIn(thread_orders()), order_name);

template <bool Correct>
__global__ void reversed(const int* in, int* out) {
  int* tile = static_cast<int*>(simt::shared_memory());
  tile[threadIdx.x] = in[threadIdx.x];
  if (Correct) __syncthreads();
  out[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

TEST_P(Race, AMissingBarrierIsFound) {
  Buffer<int> in(std::vector<int>(128, 1)), out(128);
  const LaunchShape shape{.grid = 2, .block = 128, .shared_bytes = 512};
  expect_clean(recorded_launch(shape, reversed<true>, in.data(), out.data()));
  expect_finding(recorded_launch(shape, reversed<false>, in.data(), out.data()), Kind::race,
                 Space::shared);
}

template <bool Correct>
__global__ void neighbors(int* out) {
  int* tile = static_cast<int*>(simt::shared_memory());
  tile[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (Correct) __syncwarp();
  out[threadIdx.x] = tile[threadIdx.x ^ 1];
}

TEST_P(Race, LanesOfAWarpRaceToo) {
  Buffer<int> out(32);
  const LaunchShape shape{.grid = 1, .block = 32, .shared_bytes = 128};
  expect_clean(recorded_launch(shape, neighbors<true>, out.data()));
  expect_finding(recorded_launch(shape, neighbors<false>, out.data()), Kind::race, Space::shared);
}

template <bool Correct>
__global__ void bins(int* out) {
  out[threadIdx.x % 16] = static_cast<int>(Correct ? threadIdx.x % 16 : threadIdx.x);
}

TEST_P(Race, LanesThatWriteOneWordByOneInstruction) {
  Buffer<int> out(16);
  expect_clean(recorded_launch({.grid = 2, .block = 64}, bins<true>, out.data()));
  const Report report = recorded_launch({.grid = 1, .block = 32}, bins<false>, out.data());
  expect_finding(report, Kind::race, Space::global);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].line, report.findings[0].other_line);
  EXPECT_EQ(report.findings[0].thread.x % 16, report.findings[0].other_thread.x % 16);
}

TEST_P(Race, TwoBlocksWriteOneWord) {  // row 19 of the quiz
  Buffer<int> out(1);
  const Report report = recorded_launch(
      {.grid = 2, .block = 1}, +[](int* to) { to[0] = static_cast<int>(blockIdx.x); }, out.data());
  expect_finding(report, Kind::race, Space::global);
}

template <bool Correct>
__global__ void kogge_stone(int* values) {  // row 20
  int* sums = static_cast<int*>(simt::shared_memory());
  const unsigned i = threadIdx.x;
  sums[i] = values[i];
  for (unsigned step = 1; step < blockDim.x; step *= 2) {
    __syncthreads();
    int sum = sums[i];
    if (i >= step) sum += sums[i - step];
    if (Correct) __syncthreads();
    sums[i] = sum;
  }
  values[i] = sums[i];
}

TEST_P(Race, KoggeStoneNeedsTwoBarriersAStep) {
  Buffer<int> values(std::vector<int>(128, 1));
  const LaunchShape shape{.grid = 1, .block = 128, .shared_bytes = 512};
  expect_clean(recorded_launch(shape, kogge_stone<true>, values.data()));
  expect_finding(recorded_launch(shape, kogge_stone<false>, values.data()), Kind::race,
                 Space::shared);
}

template <bool Fence>
__global__ void last_block_sums(const int* in, int* partial, unsigned* ticket, int* out) {
  int* last = static_cast<int*>(simt::shared_memory());
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = in[blockIdx.x];
    if (Fence) __threadfence();
    *last = atomicAdd(ticket, 1u) == gridDim.x - 1 ? 1 : 0;
  }
  __syncthreads();
  if (*last == 0 || threadIdx.x != 0) return;
  int sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i];
  *out = sum;
}

TEST_P(Race, TheLastBlockNeedsAFence) {
  const LaunchShape shape{.grid = 8, .block = 64, .shared_bytes = 4};
  Buffer<int> in(std::vector<int>(8, 1)), partial(8), out(1);
  Buffer<unsigned> ticket(std::vector<unsigned>(1, 0)), again(std::vector<unsigned>(1, 0));
  expect_clean(recorded_launch(shape, last_block_sums<true>, in.data(), partial.data(),
                               ticket.data(), out.data()));
  EXPECT_EQ(out.values()[0], 8);
  expect_finding(recorded_launch(shape, last_block_sums<false>, in.data(), partial.data(),
                                 again.data(), out.data()),
                 Kind::race, Space::global);
}

template <bool Release>
__global__ void chain(int* values, unsigned* flags) {
  if (blockIdx.x > 0) {
    while (ptx::load_acquire(&flags[blockIdx.x - 1]) == 0) {
    }
    values[blockIdx.x] = values[blockIdx.x - 1] + 1;
  } else {
    values[0] = 1;
  }
  if (Release) {
    ptx::store_release(&flags[blockIdx.x], 1u);
  } else {
    ptx::store_relaxed(&flags[blockIdx.x], 1u);
  }
}

TEST_P(Race, AChainOfBlocksNeedsReleases) {
  Buffer<int> values(16);
  Buffer<unsigned> flags(std::vector<unsigned>(16, 0)), again(std::vector<unsigned>(16, 0));
  expect_clean(recorded_launch({.grid = 16, .block = 1}, chain<true>, values.data(), flags.data()));
  EXPECT_EQ(values.values()[15], 16);
  expect_finding(
      recorded_launch({.grid = 16, .block = 1}, chain<false>, values.data(), again.data()),
      Kind::race, Space::global);
}

enum class Reader { acquire, relaxed, relaxed_and_fence };

template <Reader How>
__global__ void handed_over(int* value, unsigned* flag, int* out) {
  if (blockIdx.x == 0) {
    *value = 42;
    ptx::store_release(flag, 1u);
    return;
  }
  if (How == Reader::acquire) {
    while (ptx::load_acquire(flag) == 0) {
    }
  } else {
    while (ptx::load_relaxed(flag) == 0) {
    }
  }
  if (How == Reader::relaxed_and_fence) __threadfence();
  *out = *value;
}

TEST_P(Race, WhoReadsAFlagRelaxedNeedsAFence) {
  Buffer<int> value(1), out(1);
  const auto run = [&](auto kernel) {
    Buffer<unsigned> flag(std::vector<unsigned>(1, 0));
    return recorded_launch({.grid = 2, .block = 1}, kernel, value.data(), flag.data(), out.data());
  };
  expect_clean(run(handed_over<Reader::acquire>));
  expect_clean(run(handed_over<Reader::relaxed_and_fence>));
  EXPECT_EQ(out.values()[0], 42);
  expect_finding(run(handed_over<Reader::relaxed>), Kind::race, Space::global);
}

/// Counts in bins, each with its own lock. Lanes of a warp take locks of the same bin and of
/// different bins, so that they leave the loop one after another.
__global__ void count_under_locks(const int* x, int n, int bins, int* counts, int* locks) {
  const auto stride = static_cast<int>(gridDim.x * blockDim.x);
  for (auto i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += stride) {
    const int bin = x[i] % bins;
    for (bool counted = false; !counted;) {
      if (atomicCAS(&locks[bin], 0, 1) != 0) continue;
      __threadfence();
      counts[bin] += 1;
      __threadfence();
      atomicExch(&locks[bin], 0);
      counted = true;
    }
  }
}

TEST_P(Race, ALockOrdersWhatIsDoneUnderIt) {
  constexpr int n = 3001, bins = 7;
  std::vector<int> numbers(n);
  std::mt19937 engine(5);
  for (int& number : numbers) number = static_cast<int>(engine() >> 1);
  Buffer<int> x(numbers), counts(std::vector<int>(bins, 0)), locks(std::vector<int>(bins, 0));
  expect_clean(recorded_launch({.grid = 6, .block = 64}, count_under_locks, x.data(), n, bins,
                               counts.data(), locks.data()));
  int sum = 0;
  for (const int count : counts.values()) sum += count;
  EXPECT_EQ(sum, n);
}

/// Writes by lane 1 of the first block between two steps of lane 0, behind a fence of its own; a
/// second fence publishes this write, too. Both `lane` and `same_lane` are 1: two parameters keep
/// the compiler from splitting the kernel into two paths, and [[likely]] places the write between
/// the steps in the code.
__global__ void publish_between_steps(int* words, int* flag, int* out, unsigned lane,
                                      unsigned same_lane) {
  if (blockIdx.x == 0) {
    words[threadIdx.x] = 1;
    if (threadIdx.x == lane) [[likely]] {
      __threadfence();
      words[2] = 42;
    }
    words[4 + threadIdx.x] = 1;
    if (threadIdx.x == same_lane) {
      __threadfence();
      atomicExch(flag, 1);
    }
  } else if (threadIdx.x == 0) {
    while (atomicAdd(flag, 0) == 0) {
    }
    __threadfence();
    *out = words[2];
  }
}

TEST_P(Race, AFencePublishesAllThatIsBeforeIt) {
  Buffer<int> words(8), flag(std::vector<int>(1, 0)), out(1);
  expect_clean(recorded_launch({.grid = 2, .block = 2}, publish_between_steps, words.data(),
                               flag.data(), out.data(), 1u, 1u));
  EXPECT_EQ(out.values()[0], 42);
}

TEST_P(Race, AtomicsDoNotRaceWithAtomics) {
  Buffer<int> sum(std::vector<int>(1, 0));
  expect_clean(recorded_launch(
      {.grid = 4, .block = 64}, +[](int* to) { atomicAdd(to, 1); }, sum.data()));
  EXPECT_EQ(sum.values()[0], 256);
  expect_finding(recorded_launch(
                     {.grid = 4, .block = 64}, +[](int* to) { *to += 1; }, sum.data()),
                 Kind::race, Space::global);
}

template <bool Wait>
__global__ void pipelined(const int4* in, int* out) {
  auto* tile = static_cast<int4*>(simt::shared_memory());
  ptx::async_copy<16>(&tile[threadIdx.x], &in[threadIdx.x]);
  ptx::async_commit();
  if (Wait) ptx::async_wait<0>();
  __syncthreads();
  out[threadIdx.x] = reinterpret_cast<int*>(tile)[blockDim.x - 1 - threadIdx.x];
  if (!Wait) ptx::async_wait<0>();
}

TEST_P(Race, AsyncCopiesAreToBeWaitedFor) {
  Buffer<int4> in(std::vector<int4>(64, int4{1, 2, 3, 4}));
  Buffer<int> out(64);
  const LaunchShape shape{.grid = 1, .block = 64, .shared_bytes = 1024};
  expect_clean(recorded_launch(shape, pipelined<true>, in.data(), out.data()));
  expect_finding(recorded_launch(shape, pipelined<false>, in.data(), out.data()), Kind::race,
                 Space::shared);
}

template <bool Correct>
__global__ void two_groups(int* out) {
  int* tile = static_cast<int*>(simt::shared_memory());
  if (threadIdx.x < 64) {
    tile[threadIdx.x] = 1;
    if (Correct) ptx::barrier_arrive(1, 128);
  } else {
    if (Correct) ptx::barrier_sync(1, 128);
    out[threadIdx.x - 64] = tile[threadIdx.x - 64];
  }
}

TEST_P(Race, NamedBarriersOrder) {
  Buffer<int> out(64);
  const LaunchShape shape{.grid = 1, .block = 128, .shared_bytes = 256};
  expect_clean(recorded_launch(shape, two_groups<true>, out.data()));
  const Report report = recorded_launch(shape, two_groups<false>, out.data());
  EXPECT_FALSE(report.findings.empty());
}

}  // namespace
}  // namespace rung
