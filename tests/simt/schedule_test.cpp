// SPDX-License-Identifier: Apache-2.0
// Guarantees of the simulator for debugging: orders are as specified, unwritten memory is poisoned,
// copies are late, and results do not depend on OS threads.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

#include "rung/device/ptx.hpp"
#include "tests/simt/device_fixture.hpp"

namespace rung {
namespace {

using simt::ThreadOrder;

class ScheduleTest : public testing::Test {
 protected:
  void TearDown() override { simt::set_thread_order({}); }
};

/// Draws a ticket before and after a barrier: out is the order in which threads ran.
__global__ void draw_tickets(int* next, int* out) {
  const int me = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int total = static_cast<int>(gridDim.x * blockDim.x);
  out[atomicAdd(&next[0], 1)] = me;
  __syncthreads();
  out[total + atomicAdd(&next[1], 1)] = me;
}

std::vector<int> run_tickets(const char* order, int blocks, int threads) {
  simt::set_thread_order(ThreadOrder::parse(order));
  Context c = Context::on(Backend::simt, 1);
  Buffer<int> next(std::vector<int>{0, 0}), out(static_cast<std::size_t>(2 * blocks * threads));
  launch(c, {.grid = blocks, .block = threads}, draw_tickets, next.data(), out.data());
  return out.values();
}

TEST_F(ScheduleTest, OrdersAreWhatTheySay) {
  constexpr int blocks = 3, threads = 40, n = blocks * threads;
  std::vector<int> ascending(n);
  std::iota(ascending.begin(), ascending.end(), 0);

  const std::vector<int> forward = run_tickets("forward", blocks, threads);
  EXPECT_TRUE(std::equal(ascending.begin(), ascending.end(), forward.begin()));
  EXPECT_TRUE(std::equal(ascending.begin(), ascending.end(), forward.begin() + n));

  const std::vector<int> reverse = run_tickets("reverse", blocks, threads);
  EXPECT_TRUE(std::equal(ascending.rbegin(), ascending.rend(), reverse.begin()));
  EXPECT_TRUE(std::equal(ascending.rbegin(), ascending.rend(), reverse.begin() + n));

  const std::vector<int> one = run_tickets("random:1", blocks, threads);
  const std::vector<int> two = run_tickets("random:2", blocks, threads);
  EXPECT_EQ(one, run_tickets("random:1", blocks, threads)) << "a seed fixes the order";
  EXPECT_NE(one, two);
  for (const std::vector<int>& order : {one, two}) {
    EXPECT_FALSE(std::equal(ascending.begin(), ascending.end(), order.begin()));
    EXPECT_FALSE(std::equal(order.begin(), order.begin() + n, order.begin() + n))
        << "each barrier shuffles anew";
    for (int half = 0; half < 2; ++half) {
      std::vector<int> sorted(order.begin() + half * n, order.begin() + (half + 1) * n);
      std::sort(sorted.begin(), sorted.end());
      EXPECT_EQ(sorted, ascending);
    }
  }
}

TEST_F(ScheduleTest, OrdersAreRead) {
  EXPECT_EQ(ThreadOrder::parse("random:17").seed, 17u);
  for (const char* text : {"forward", "reverse", "random:0", "random:18446744073709551615"}) {
    EXPECT_EQ(ThreadOrder::parse(text).to_string(), text);
  }
  for (const char* text : {"", "Forward", "random:", "random:x", "random:1x", "random:-1",
                           "random:18446744073709551616", "backwards"}) {
    EXPECT_THROW(ThreadOrder::parse(text), Error) << text;
  }
}

/// Lacks a barrier: thread i reads the element that thread i + 1 writes.
__global__ void missing_barrier(int* out) {
  struct Values {
    int at[64];
  };
  Values& values = shared<Values>();
  values.at[threadIdx.x] = static_cast<int>(threadIdx.x);
  out[threadIdx.x] = values.at[(threadIdx.x + 1) % 64];
}

TEST_F(ScheduleTest, AMissingBarrierShowsInEveryOrder) {
  for (const char* order : {"forward", "reverse", "random:3"}) {
    simt::set_thread_order(ThreadOrder::parse(order));
    Context c = Context::simt();
    Buffer<int> out(64);
    launch(c, {.block = 64, .shared_bytes = 64 * sizeof(int)}, missing_barrier, out.data());
    int wrong = 0;
    for (int i = 0; i < 64; ++i) {
      wrong += out.values()[static_cast<std::size_t>(i)] != (i + 1) % 64 ? 1 : 0;
    }
    EXPECT_GT(wrong, 0) << order;
  }
}

struct Slot {
  alignas(16) float value[4];
};

/// Reads the destination of a copy: after issue, after commit, after waiting for all but one group,
/// after waiting for all.
__global__ void watch_copies(const float* first, const float* second, float* out) {
  Slot* slots = reinterpret_cast<Slot*>(&shared<Slot>());
  for (Slot* slot = slots; slot < slots + 2; ++slot) slot->value[0] = -1;
  int at = 0;
  const auto look = [&] {
    out[at++] = slots[0].value[0];
    out[at++] = slots[1].value[0];
  };
  ptx::async_copy<16>(slots[0].value, first);
  look();
  ptx::async_commit();
  ptx::async_copy<4>(slots[1].value, second);
  ptx::async_commit();
  look();
  ptx::async_wait<2>();
  look();
  ptx::async_wait<1>();
  look();
  ptx::async_wait<0>();
  look();
  ptx::async_copy<4>(slots[0].value, second);
  ptx::async_wait<0>();  // not committed, so the wait does not cover it
  look();
  ptx::async_wait_all();
  look();
}

TEST_F(ScheduleTest, CopiesLandWhenTheyAreWaitedForAndNotBefore) {
  Context c = Context::simt();
  Buffer<float> first(std::vector<float>{1, 1, 1, 1}), second(std::vector<float>{2}), out(14);
  launch(c, {.block = 1, .shared_bytes = 2 * sizeof(Slot)}, watch_copies, first.data(),
         second.data(), out.data());
  EXPECT_EQ(out.values(), (std::vector<float>{-1, -1, -1, -1, -1, -1, 1, -1, 1, 2, 1, 2, 2, 2}));
}

/// Waits in thread 0 only: a wait covers a thread's own copies, not those of other threads.
__global__ void wait_is_each_threads_own(const float* in, float* out) {
  Slot* slots = reinterpret_cast<Slot*>(&shared<Slot>());
  ptx::async_copy<16>(slots[threadIdx.x].value, in);
  ptx::async_commit();
  if (threadIdx.x == 0) ptx::async_wait<0>();
  __syncthreads();
  if (threadIdx.x == 0) {
    out[0] = slots[0].value[0];
    out[1] = slots[1].value[0];
  }
}

TEST_F(ScheduleTest, AForgottenWaitLeavesPoison) {
  Context c = Context::simt();
  Buffer<float> in(std::vector<float>{1, 1, 1, 1}), out(2);
  launch(c, {.block = 2, .shared_bytes = 2 * sizeof(Slot)}, wait_is_each_threads_own, in.data(),
         out.data());
  EXPECT_EQ(out.values()[0], 1.0f);
  EXPECT_TRUE(std::isnan(out.values()[1]));
}

/// Exits without waiting for its copies; the next block waits for all of its own.
__global__ void leave_copies_behind(const float* in, float* out) {
  Slot* slot = &shared<Slot>();
  if (blockIdx.x == 0) {
    ptx::async_copy<16>(slot->value, in);
  } else {
    ptx::async_wait_all();
    *out = slot->value[0];
  }
}

TEST_F(ScheduleTest, CopiesOfAnEndedThreadNeverLand) {
  Context c = Context::on(Backend::simt, 1);
  Buffer<float> in(std::vector<float>{1, 1, 1, 1}), out(1);
  launch(c, {.grid = 2, .block = 1, .shared_bytes = sizeof(Slot)}, leave_copies_behind, in.data(),
         out.data());
  EXPECT_TRUE(std::isnan(out.values()[0]));
}

/// Writes a mark to shared memory, where the next block must not find it.
__global__ void look_at_shared(unsigned* out, int words) {
  unsigned* memory = reinterpret_cast<unsigned*>(&shared<Slot>());
  unsigned seen = 0xffffffffu;
  for (int i = 0; i < words; ++i) {
    seen &= memory[i];
    memory[i] = 0;
  }
  out[blockIdx.x] = seen;
}

TEST_F(ScheduleTest, MemoryIsPoisonedAtAllocationAndAtEachBlock) {
  Context c = Context::on(Backend::simt, 1);
  Buffer<unsigned> out(5);
  EXPECT_EQ(out.values(), std::vector<unsigned>(5, 0xffffffffu));
  launch(c, {.grid = 5, .block = 1, .shared_bytes = 100 << 10}, look_at_shared, out.data(),
         (100 << 10) / 4);
  EXPECT_EQ(out.values(), std::vector<unsigned>(5, 0xffffffffu));
}

/// Shuffles from a lane that does not exist.
__global__ void read_absent_lane(float* out) {
  if (threadIdx.x < 4) out[threadIdx.x] = __shfl_down_sync(0xfu, 1.0f, 1);
}

TEST_F(ScheduleTest, AnAbsentLaneReadsAsPoison) {
  Context c = Context::simt();
  Buffer<float> out(4);
  launch(c, {.block = 32}, read_absent_lane, out.data());
  const std::vector<float> got = out.values();
  EXPECT_EQ(got[2], 1.0f);
  EXPECT_TRUE(std::isnan(got[3]));
}

/// Sums in an order that depends on the thread, so that any change of order rounds differently;
/// blocks are independent.
__global__ void mixed_work(const float* in, float* out) {
  struct Values {
    float at[96];
  };
  Values& values = shared<Values>();
  const unsigned me = threadIdx.x, i = blockIdx.x * blockDim.x + me;
  values.at[me] = in[i];
  __syncthreads();
  float sum = 0;
  for (unsigned k = 0; k < blockDim.x; ++k)
    sum += values.at[(me + k * k) % blockDim.x] / float(k + 1);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step) * 0.7f;
  out[i] = sum;
}

TEST_F(ScheduleTest, ResultsDoNotDependOnOsThreads) {
  constexpr std::size_t blocks = 501, threads = 96;
  std::vector<float> in(blocks * threads);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = std::sin(static_cast<float>(i));
  std::vector<float> first;
  for (const char* order : {"forward", "reverse", "random:5"}) {
    simt::set_thread_order(ThreadOrder::parse(order));
    for (const int os_threads : {1, 2, 3, 8}) {
      Context c = Context::on(Backend::simt, os_threads);
      Buffer<float> source(in), out(in.size());
      launch(c, {.grid = blocks, .block = threads, .shared_bytes = 96 * sizeof(float)}, mixed_work,
             source.data(), out.data());
      const std::vector<float> got = out.values();
      if (first.empty()) first = got;
      EXPECT_EQ(std::memcmp(first.data(), got.data(), got.size() * sizeof(float)), 0)
          << order << ", " << os_threads << " OS threads";
    }
  }
}

TEST_F(ScheduleTest, LiveAllocationsAreFound) {
  const char* freed = nullptr;
  {
    Buffer<char> buffer(1000);
    freed = buffer.data();
    for (const std::size_t offset : {0, 1, 999}) {
      const simt::Allocation found = simt::find_allocation(buffer.data() + offset);
      EXPECT_EQ(static_cast<void*>(found.begin), buffer.data());
      EXPECT_EQ(found.size, 1000u);
    }
    EXPECT_EQ(simt::find_allocation(buffer.data() + 1000).size, 0u);
    EXPECT_EQ(simt::find_allocation(buffer.data() - 1).size, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256, 0u);
  }
  EXPECT_EQ(simt::find_allocation(freed).size, 0u);
  EXPECT_THROW(Buffer<char>(std::size_t{1} << 60), Error);
}

TEST_F(ScheduleTest, TheDeviceIsAnH200) {
  const Context c = Context::simt();
  EXPECT_EQ(c.info().shared_per_block, 227u << 10);
  EXPECT_EQ(c.info().sms, 132);
  EXPECT_EQ(c.info().compute_capability, 90);
}

}  // namespace
}  // namespace rung
