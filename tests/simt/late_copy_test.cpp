// SPDX-License-Identifier: Apache-2.0
// The simulated GPU completes bulk copies late, so that a missing wait is visible; under random
// orders some complete early, so that an early refill of a buffer is visible.
#include <cmath>

#include "rung/device/ptx/bulk_copy.hpp"
#include "tests/simt/device_fixture.hpp"

namespace rung {
namespace {

class LateCopyTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { simt::set_thread_order(simt::ThreadOrder::parse(GetParam())); }
  void TearDown() override { simt::set_thread_order({}); }
};

struct Slot {
  alignas(16) float value[4];
  ptx::MemoryBarrier full;
};

/// Reads the slot before and after the wait.
__global__ void look_twice(float* in, float* out) {
  Slot& s = shared<Slot>();
  ptx::mbarrier_init(s.full, 1);
  ptx::mbarrier_arrive_expect(s.full, 16);
  ptx::bulk_load(s.value, in, 16, s.full);
  __syncthreads();
  out[0] = s.value[0];
  in[0] = 2;  // the copy may not have read it yet
  ptx::mbarrier_wait(s.full, 0);
  out[1] = s.value[0];
}

TEST_P(LateCopyTest, LoadsLandAtTheWait) {
  Context c = Context::simt();
  Buffer<float> in(std::vector<float>{1, 1, 1, 1}), out(2);
  launch(c, {.block = 1, .shared_bytes = sizeof(Slot)}, look_twice, in.data(), out.data());
  EXPECT_TRUE(std::isnan(out.values()[0]));
  EXPECT_EQ(out.values()[1], 2.0f);
}

/// Overwrites shared memory after a store was issued, before and after waiting for its read.
__global__ void overwrite(float* first, float* second, float* seen) {
  Slot& s = shared<Slot>();
  s.value[0] = 1;
  ptx::bulk_store(first, s.value, 16);
  ptx::bulk_commit();
  s.value[0] = 2;  // too early
  ptx::bulk_wait_read<0>();
  s.value[0] = 3;
  ptx::bulk_store(second, s.value, 16);
  ptx::bulk_commit();
  ptx::bulk_wait_read<0>();
  s.value[0] = 4;
  seen[0] = second[0];  // the source has been read, but perhaps not written to memory
  ptx::bulk_wait<0>();
  seen[1] = second[0];
}

TEST_P(LateCopyTest, StoresReadAtTheirWaitAndWriteAtTheNext) {
  Context c = Context::simt();
  Buffer<float> first(4), second(4), seen(2);
  launch(c, {.block = 1, .shared_bytes = sizeof(Slot)}, overwrite, first.data(), second.data(),
         seen.data());
  EXPECT_EQ(first.values()[0], 2.0f);
  EXPECT_EQ(second.values()[0], 3.0f);
  EXPECT_TRUE(std::isnan(seen.values()[0]));
  EXPECT_EQ(seen.values()[1], 3.0f);
}

INSTANTIATE_TEST_SUITE_P(Orders, LateCopyTest, testing::Values("forward", "reverse"));

/// Refills a ring of one slot without waiting until it has been read.
__global__ void refill_too_soon(const float* in, float* out) {
  Slot& s = shared<Slot>();
  if (threadIdx.x == 0) ptx::mbarrier_init(s.full, 1);
  __syncthreads();
  const auto fetch = [&](int k) {
    ptx::mbarrier_arrive_expect(s.full, 16);
    ptx::bulk_load(s.value, in + 4 * k, 16, s.full);
  };
  if (threadIdx.x == 0) fetch(0);
  ptx::mbarrier_wait(s.full, 0);
  if (threadIdx.x == 0) fetch(1);
  out[threadIdx.x] = s.value[0];
  ptx::mbarrier_wait(s.full, 1);
}

TEST(EarlyCopyTest, RandomOrdersTellARefillThatCameTooSoon) {
  Context c = Context::simt();
  int wrong = 0;
  for (int seed = 1; seed <= 20; ++seed) {
    simt::set_thread_order(simt::ThreadOrder::parse("random:" + std::to_string(seed)));
    Buffer<float> in(std::vector<float>{1, 1, 1, 1, 2, 2, 2, 2}), out(32);
    try {
      launch(c, {.block = 32, .shared_bytes = sizeof(Slot)}, refill_too_soon, in.data(),
             out.data());
      for (const float value : out.values()) wrong += value == 1.0f ? 0 : 1;
    } catch (const Error&) {
      ++wrong;  // a thread missed a phase
    }
  }
  simt::set_thread_order({});
  EXPECT_GT(wrong, 0);
}

}  // namespace
}  // namespace rung
