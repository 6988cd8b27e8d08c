// SPDX-License-Identifier: Apache-2.0
// Atomics: no update is lost in any order, in global and in shared memory.
#include "tests/simt/device_fixture.hpp"

namespace rung::atomics_test {
namespace {

class AtomicsTest : public DeviceTest {};

struct Totals {
  int added, subtracted, least, most;
  unsigned conjunction, disjunction, exclusive, increments, decrements;
  unsigned long long wide;
  long long widest;
  float real;
  double precise;
};

__global__ void count(Totals* t) {
  const int me = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int negative = -me;
  atomicAdd(&t->added, me);
  atomicSub(&t->subtracted, 2);
  atomicMin(&t->least, negative);
  atomicMax(&t->most, me);
  atomicAnd(&t->conjunction, ~(1u << me % 32));
  atomicOr(&t->disjunction, 1u << me % 31);
  atomicXor(&t->exclusive, static_cast<unsigned>(me));
  atomicInc(&t->increments, 6);
  atomicDec(&t->decrements, 10);
  atomicAdd(&t->wide, 1ull << 33);
  atomicMax(&t->widest, static_cast<long long>(me) << 32);
  atomicAdd(&t->real, 0.5f);
  atomicAdd(&t->precise, 0.25);
}

TEST_P(AtomicsTest, EveryUpdateCounts) {
  constexpr int blocks = 40, threads = 250, n = blocks * threads;
  Context c = context();
  Buffer<Totals> totals(
      std::vector<Totals>{{0, 0, 5, -5, 0xffffffffu, 0, 0, 0, 3, 0, -1, 0.0f, 0.0}});
  launch(c, {.grid = blocks, .block = threads}, count, totals.data());
  const Totals t = totals.values()[0];
  unsigned exclusive = 0;
  for (unsigned i = 0; i < n; ++i) exclusive ^= i;
  EXPECT_EQ(t.added, n / 2 * (n - 1));
  EXPECT_EQ(t.subtracted, -2 * n);
  EXPECT_EQ(t.least, -(n - 1));
  EXPECT_EQ(t.most, n - 1);
  EXPECT_EQ(t.conjunction, 0u);
  EXPECT_EQ(t.disjunction, 0x7fffffffu);
  EXPECT_EQ(t.exclusive, exclusive);
  EXPECT_EQ(t.increments, n % 7u);                    // counts 0..6
  EXPECT_EQ(t.decrements, (3u + 11u * n - n) % 11u);  // counts 10..0
  EXPECT_EQ(t.wide, static_cast<unsigned long long>(n) << 33);
  EXPECT_EQ(t.widest, static_cast<long long>(n - 1) << 32);
  EXPECT_EQ(t.real, n / 2.0f);
  EXPECT_EQ(t.precise, n / 4.0);
}

/// Draws each ticket once, so that each slot is written once.
__global__ void tickets(int* next, int* slots) {
  const int ticket = atomicAdd(next, 1);
  atomicExch(&slots[ticket], static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x));
}

TEST_P(AtomicsTest, ReturnTheOldValue) {
  constexpr int blocks = 8, threads = 96, n = blocks * threads;
  Context c = context();
  Buffer<int> next(std::vector<int>{0});
  Buffer<int> slots(std::vector<int>(n, -1));
  launch(c, {.grid = blocks, .block = threads}, tickets, next.data(), slots.data());
  std::vector<int> seen = slots.values();
  std::sort(seen.begin(), seen.end());
  for (int i = 0; i < n; ++i) ASSERT_EQ(seen[static_cast<std::size_t>(i)], i);
}

struct Histogram {
  unsigned bins[16];
};

__global__ void shared_histogram(const int* in, int n, unsigned* out) {
  Histogram& histogram = shared<Histogram>();
  if (threadIdx.x < 16) histogram.bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < n;
       i += static_cast<int>(gridDim.x * blockDim.x)) {
    atomicAdd(&histogram.bins[in[i]], 1u);
  }
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&out[threadIdx.x], histogram.bins[threadIdx.x]);
}

TEST_P(AtomicsTest, InSharedMemory) {
  constexpr int n = 10007;
  std::vector<int> in(n);
  std::vector<unsigned> want(16);
  for (int i = 0; i < n; ++i) {
    in[static_cast<std::size_t>(i)] = i * i % 16;
    ++want[static_cast<std::size_t>(i * i % 16)];
  }
  Context c = context();
  Buffer<int> values(in);
  Buffer<unsigned> bins(std::vector<unsigned>(16, 0));
  launch(c, {.grid = 5, .block = 128, .shared_bytes = sizeof(Histogram)}, shared_histogram,
         values.data(), n, bins.data());
  EXPECT_EQ(bins.values(), want);
}

/// Takes a lock in one thread of each warp, spinning on atomicCAS, around a plain update.
__global__ void locked(int* lock, int* counter) {
  if (threadIdx.x % 32 != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
  volatile int* plain = counter;
  *plain = *plain + 1;
  __threadfence();
  atomicExch(lock, 0);
}

TEST_P(AtomicsTest, ASpinningThreadLetsTheOthersRun) {
  Context c = context();
  Buffer<int> lock(std::vector<int>{0}), counter(std::vector<int>{0});
  launch(c, {.grid = 6, .block = 256}, locked, lock.data(), counter.data());
  EXPECT_EQ(counter.values()[0], 48);
}

/// Waits in thread 0 for a flag that the last thread sets: the block needs a fair scheduler.
__global__ void handshake(unsigned* flag, int* out) {
  if (threadIdx.x == 0) {
    while (atomicAdd(flag, 0u) == 0) __nanosleep(20);
    out[0] = 1;
  }
  if (threadIdx.x == blockDim.x - 1) atomicExch(flag, 1u);
}

TEST_P(AtomicsTest, WaitingForALaterThreadEnds) {
  Context c = context();
  Buffer<unsigned> flag(std::vector<unsigned>{0});
  Buffer<int> out(std::vector<int>{0});
  launch(c, {.block = 128}, handshake, flag.data(), out.data());
  EXPECT_EQ(out.values()[0], 1);
}

INSTANTIATE_TEST_SUITE_P(Orders, AtomicsTest, testing::ValuesIn(thread_orders()), order_name);

}  // namespace
}  // namespace rung::atomics_test
