// SPDX-License-Identifier: Apache-2.0
// fence.proxy.async between threads' writes to shared memory and the copies and tensor cores that
// use it: each way to forget it is found, and no correct way is reported.
#include "rung/device/ptx/bulk_copy.hpp"
#include "rung/device/ptx/thread.hpp"
#include "rung/device/ptx/wgmma.hpp"
#include "tests/simt/record_fixture.hpp"

namespace rung {
namespace {

class Proxy : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { simt::set_thread_order(simt::ThreadOrder::parse(GetParam())); }
  void TearDown() override { simt::set_thread_order({}); }
};
INSTANTIATE_TEST_SUITE_P(Orders, Proxy, testing::ValuesIn(thread_orders()), order_name);

struct Tile {
  alignas(1024) int words[2048];
  ptx::MemoryBarrier full;
};
constexpr LaunchShape shape{.grid = 2, .block = 128, .shared_bytes = sizeof(Tile)};

void expect_missing_fence(const Report& report) {
  expect_finding(report, Kind::race, Space::shared);
  EXPECT_NE(all_text(report).find("fence.proxy.async"), std::string::npos) << all_text(report);
}

/// Location of the fence: each writer, the thread that starts the copy, none, a single writer, or
/// before the writes.
enum class Fence { writers, issuer, none, one_writer, too_early };
constexpr Fence missing[] = {Fence::none, Fence::one_writer, Fence::too_early};

template <bool Named>
__global__ void store(int* out, Fence fence) {
  Tile& tile = shared<Tile>();
  const int me = static_cast<int>(threadIdx.x);
  for (int round = 0; round < 2; ++round) {
    if (fence == Fence::too_early) ptx::fence_async_proxy();
    tile.words[me] = me + round;
    if (fence == Fence::writers || (fence == Fence::one_writer && me == 0)) {
      ptx::fence_async_proxy();
    }
    if (Named) {
      ptx::barrier_sync(1, 128);
    } else {
      __syncthreads();
    }
    if (me == 0) {
      if (fence == Fence::issuer) ptx::fence_async_proxy();
      ptx::bulk_store(out + (2 * blockIdx.x + static_cast<unsigned>(round)) * 128, tile.words, 512);
      ptx::bulk_commit();
      ptx::bulk_wait_read<0>();
    }
    __syncthreads();
  }
}

TEST_P(Proxy, StoresNeedAFence) {
  Buffer<int> out(512);
  expect_clean(recorded_launch(shape, store<false>, out.data(), Fence::writers));
  expect_clean(recorded_launch(shape, store<false>, out.data(), Fence::issuer));
  expect_clean(recorded_launch(shape, store<true>, out.data(), Fence::writers));
  expect_clean(recorded_launch(shape, store<true>, out.data(), Fence::issuer));
  for (const Fence fence : missing) {
    expect_missing_fence(recorded_launch(shape, store<false>, out.data(), fence));
    expect_missing_fence(recorded_launch(shape, store<true>, out.data(), fence));
  }
}

/// Copies to a destination that threads have written.
__global__ void overwrite(const int* in, int* out, Fence fence) {
  Tile& tile = shared<Tile>();
  const int me = static_cast<int>(threadIdx.x);
  if (me == 0) {
    ptx::mbarrier_init(tile.full, 1);
    ptx::mbarrier_fence_init();
  }
  if (fence == Fence::too_early) ptx::fence_async_proxy();
  tile.words[me] = 0;
  if (fence == Fence::writers || (fence == Fence::one_writer && me == 0)) ptx::fence_async_proxy();
  __syncthreads();
  if (me == 0) {
    if (fence == Fence::issuer) ptx::fence_async_proxy();
    ptx::mbarrier_arrive_expect(tile.full, 512);
    ptx::bulk_load(tile.words, in, 512, tile.full);
  }
  ptx::mbarrier_wait(tile.full, 0);
  out[blockIdx.x * 128 + threadIdx.x] = tile.words[me];
}

TEST_P(Proxy, LoadsOverWritesNeedAFence) {
  Buffer<int> in(std::vector<int>(128, 3)), out(256);
  expect_clean(recorded_launch(shape, overwrite, in.data(), out.data(), Fence::writers));
  expect_clean(recorded_launch(shape, overwrite, in.data(), out.data(), Fence::issuer));
  EXPECT_EQ(out.values()[200], 3);
  for (const Fence fence : missing) {
    expect_missing_fence(recorded_launch(shape, overwrite, in.data(), out.data(), fence));
  }
}

/// Passes on data that a copy has loaded, which needs no fence: neither for threads that read it,
/// nor for the next copy or a product.
__global__ void pass_on(const int* in, int* out, float* product) {
  Tile& tile = shared<Tile>();
  const int me = static_cast<int>(threadIdx.x);
  if (me == 0) {
    ptx::mbarrier_init(tile.full, 1);
    ptx::mbarrier_fence_init();
  }
  __syncthreads();
  int sum = 0;
  for (unsigned round = 0; round < 3; ++round) {
    if (me == 0) {
      ptx::mbarrier_arrive_expect(tile.full, sizeof(tile.words));
      ptx::bulk_load(tile.words, in, sizeof(tile.words), tile.full);
    }
    ptx::mbarrier_wait(tile.full, round & 1);
    sum += tile.words[me];
    if (me == 0) {
      ptx::bulk_store(out + blockIdx.x * 2048, tile.words, sizeof(tile.words));
      ptx::bulk_commit();
      ptx::bulk_wait_read<0>();
    }
    float sums[4] = {};
    const auto a = ptx::matrix_descriptor(tile.words, Swizzle::none, 128, 256);
    ptx::wgmma_fence(sums);
    ptx::wgmma<bf16>(sums, a, a, true);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>(sums);
    product[blockIdx.x * 128 + threadIdx.x] = sums[0] + static_cast<float>(sum);
    __syncthreads();
  }
}

TEST_P(Proxy, WhatCopiesBringNeedsNoFence) {
  Buffer<int> in(std::vector<int>(2048, 0)), out(4096);
  Buffer<float> product(256);
  expect_clean(recorded_launch(shape, pass_on, in.data(), out.data(), product.data()));
}

__global__ void multiply(float* out, Fence fence, bool barrier) {
  Tile& tile = shared<Tile>();
  if (fence == Fence::too_early) ptx::fence_async_proxy();
  for (unsigned i = threadIdx.x; i < 2048; i += 128) tile.words[i] = 0;
  if (fence == Fence::writers || (fence == Fence::one_writer && threadIdx.x == 0)) {
    ptx::fence_async_proxy();
  }
  if (barrier) __syncthreads();
  if (fence == Fence::issuer) ptx::fence_async_proxy();
  float sums[4] = {};
  const auto a = ptx::matrix_descriptor(tile.words, Swizzle::bytes_128, 0, 1024);
  ptx::wgmma_fence(sums);
  ptx::wgmma<bf16>(sums, a, a, true);
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>(sums);
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 2048; i += 128) tile.words[i] = 1;
  out[blockIdx.x * 128 + threadIdx.x] = sums[0];
}

TEST_P(Proxy, ProductsNeedAFence) {
  Buffer<float> out(256);
  expect_clean(recorded_launch(shape, multiply, out.data(), Fence::writers, true));
  expect_clean(recorded_launch(shape, multiply, out.data(), Fence::issuer, true));
  for (const Fence fence : missing) {
    expect_missing_fence(recorded_launch(shape, multiply, out.data(), fence, true));
  }
  expect_finding(recorded_launch(shape, multiply, out.data(), Fence::writers, false), Kind::race,
                 Space::shared);
}

}  // namespace
}  // namespace rung
