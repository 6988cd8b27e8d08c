// SPDX-License-Identifier: Apache-2.0
// Bulk copies between global and shared memory; stores and reductions in groups.
#include "rung/device/ptx/bulk_copy.hpp"

#include "tests/simt/hopper_fixture.hpp"

namespace rung::bulk_copy_test {
namespace {

class BulkCopyTest : public HopperTest {};

constexpr int tile = 1024;

struct Tiles {
  alignas(128) float in[tile];
  alignas(128) float out[2][tile];
  ptx::MemoryBarrier full;
};

/// Computes out = 2 in, tile by tile, through shared memory both ways; alternates two output
/// buffers.
__global__ void doubled(const float* in, float* out, int tiles) {
  Tiles& t = shared<Tiles>();
  const int me = static_cast<int>(threadIdx.x), count = static_cast<int>(blockDim.x);
  if (me == 0) {
    ptx::mbarrier_init(t.full, 1);
    ptx::mbarrier_fence_init();
  }
  __syncthreads();
  for (int k = 0; k < tiles; ++k) {
    const std::int64_t at = (static_cast<std::int64_t>(blockIdx.x) * tiles + k) * tile;
    if (me == 0) {
      ptx::bulk_prefetch(in + at, sizeof(t.in));
      ptx::mbarrier_arrive_expect(t.full, sizeof(t.in));
      ptx::bulk_load(t.in, in + at, sizeof(t.in), t.full);
      ptx::bulk_wait_read<1>();  // the buffer of two tiles ago is free
    }
    __syncthreads();
    ptx::mbarrier_wait(t.full, static_cast<unsigned>(k) & 1);
    for (int i = me; i < tile; i += count) t.out[k % 2][i] = 2 * t.in[i];
    ptx::fence_async_proxy();
    __syncthreads();
    if (me == 0) {
      ptx::bulk_store(out + at, t.out[k % 2], sizeof(t.in));
      ptx::bulk_commit();
    }
  }
  if (me == 0) ptx::bulk_wait<0>();
}

TEST_P(BulkCopyTest, ThereAndBack) {
  constexpr int blocks = 3;
  for (const int tiles : {1, 2, 5}) {
    std::vector<float> in(static_cast<std::size_t>(blocks * tiles) * tile), want(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
      in[i] = static_cast<float>(i % 1009);
      want[i] = 2 * in[i];
    }
    Context c = context();
    Buffer<float> source(in), out(in.size());
    launch(c, {.grid = blocks, .block = 128, .shared_bytes = sizeof(Tiles)}, doubled, source.data(),
           out.data(), tiles);
    EXPECT_EQ(out.values(), want) << tiles << " tiles";
  }
}

template <class T>
struct Counts {
  alignas(16) T at[64];
};

/// Adds every block's counts to the grid's.
template <class T>
__global__ void add_up(T* totals) {
  Counts<T>& counts = shared<Counts<T>>();
  counts.at[threadIdx.x] = static_cast<T>(threadIdx.x + blockIdx.x);
  ptx::fence_async_proxy();
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::bulk_reduce_add(totals, counts.at, 64);
    ptx::bulk_commit();
    ptx::bulk_wait_read<0>();
  }
}

template <class T>
void expect_totals(Context& c) {
  constexpr int blocks = 10;
  Buffer<T> totals(std::vector<T>(64, T(5)));
  launch(c, {.grid = blocks, .block = 64, .shared_bytes = sizeof(Counts<T>)}, add_up<T>,
         totals.data());
  const std::vector<T> got = totals.values();
  for (int i = 0; i < 64; ++i) {
    ASSERT_EQ(got[static_cast<std::size_t>(i)], T(5 + blocks * i + blocks * (blocks - 1) / 2));
  }
}

TEST_P(BulkCopyTest, ReductionsAddEveryBlocksShare) {
  Context c = context();
  expect_totals<int>(c);
  expect_totals<unsigned>(c);
  expect_totals<unsigned long long>(c);
  expect_totals<float>(c);
  expect_totals<double>(c);
}

INSTANTIATE_TEST_SUITE_P(Orders, BulkCopyTest, testing::ValuesIn(thread_orders()), order_name);

}  // namespace
}  // namespace rung::bulk_copy_test
