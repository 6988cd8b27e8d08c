// SPDX-License-Identifier: Apache-2.0
// Counters of copies and tensor cores: separate from requests, at the lines that start them.
#include <algorithm>

#include "rung/device/ptx/bulk_copy.hpp"
#include "rung/device/ptx/tensor_copy.hpp"
#include "rung/device/ptx/wgmma.hpp"
#include "tests/simt/record_fixture.hpp"

namespace rung {
namespace {

struct Tile {
  alignas(1024) int words[32][32];
  ptx::MemoryBarrier full;
};

__global__ void copy_and_multiply(const __grid_constant__ TensorMap map, int* out, float* sum) {
  Tile& tile = shared<Tile>();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(tile.full, 1);
    ptx::mbarrier_fence_init();
    ptx::mbarrier_arrive_expect(tile.full, sizeof(tile.words));
    ptx::tensor_load(tile.words, map, {16, 0}, tile.full);  // half of the box is outside the tensor
  }
  __syncthreads();
  ptx::mbarrier_wait(tile.full, 0);
  if (threadIdx.x == 0) {
    ptx::bulk_store(out + blockIdx.x * 256, tile.words, 512);
    ptx::bulk_store(out + blockIdx.x * 256 + 128, tile.words, 512);
    ptx::bulk_commit();
    ptx::bulk_wait_read<0>();
  }
  float sums[4] = {};
  const auto a = ptx::matrix_descriptor(tile.words, Swizzle::none, 128, 256);
  ptx::wgmma_fence(sums);
  for (int i = 0; i < 3; ++i) ptx::wgmma<bf16>(sums, a, a, true);
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>(sums);
  sum[blockIdx.x * blockDim.x + threadIdx.x] = sums[0];
}

TEST(RecordBulk, CopiesAndProductsAreCountedApart) {
  Buffer<int> in(std::vector<int>(32 * 32, 0)), out(512);
  Buffer<float> sum(512);
  const TensorMap map = make_tensor_map(View<int, 2>{in.data(), {32, 32}, {32, 1}}, {32, 32});
  const Report report = recorded_launch({.grid = 2, .block = 256, .shared_bytes = sizeof(Tile)},
                                        copy_and_multiply, map, out.data(), sum.data());
  expect_clean(report);
  ASSERT_EQ(report.kernels.size(), 1u);
  const simt::record::Counters& c = report.kernels[0].totals;
  EXPECT_EQ(c.bulk_copies, 2u * 3);
  EXPECT_EQ(c.bulk_load_bytes, 2u * sizeof(Tile::words));
  EXPECT_EQ(c.bulk_store_bytes, 2u * 1024);
  EXPECT_EQ(c.matrix_products, 2u * 2 * 3);
  EXPECT_EQ(c.matrix_operations, c.matrix_products * 2 * 64 * 8 * 16);
  EXPECT_EQ(c.global_load_requests, 0u);
  EXPECT_EQ(c.global_store_requests, 2u * 8);
  int lines = 0;
  for (const simt::record::Line& line : report.kernels[0].lines) {
    if (line.counters.bulk_copies + line.counters.matrix_products == 0) continue;
    EXPECT_NE(line.file.find("record_bulk_test.cpp"), std::string::npos) << line.file;
    ++lines;
  }
  EXPECT_EQ(lines, 4);
  const std::string json = to_json(report);
  EXPECT_NE(json.find("\"bulk_load_bytes\":" + std::to_string(c.bulk_load_bytes)),
            std::string::npos)
      << json;
}

/// Ways in which the readers of a copy wait for it.
enum class Waits { each, one_then_barrier, one_behind_barrier, nobody, next_copy_does_not };

/// Copies in rounds to the same destination by one thread, which has read it in the previous round.
__global__ void in_rounds(const int* in, int* out, Waits waits, int rounds) {
  Tile& tile = shared<Tile>();
  const bool first = threadIdx.x == 0;
  if (first) {
    ptx::mbarrier_init(tile.full, 1);
    ptx::mbarrier_fence_init();
  }
  __syncthreads();
  int sum = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto parity = static_cast<unsigned>(round % 2);
    if (first) {
      ptx::mbarrier_arrive_expect(tile.full, 128);
      ptx::bulk_load(tile.words, in, 64, tile.full);
      ptx::bulk_load(waits == Waits::next_copy_does_not ? &tile.words[0][0] : &tile.words[0][16],
                     in + 16, 64, tile.full);
    }
    if (waits == Waits::one_behind_barrier || waits == Waits::nobody) __syncthreads();
    const bool all = waits == Waits::each || waits == Waits::next_copy_does_not;
    if (waits != Waits::nobody && (first || all)) ptx::mbarrier_wait(tile.full, parity);
    if (waits == Waits::one_then_barrier) __syncthreads();
    sum += tile.words[0][threadIdx.x % 16];
    __syncthreads();
    if (waits == Waits::nobody && first) ptx::mbarrier_wait(tile.full, parity);
    if (waits == Waits::nobody) __syncthreads();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

TEST(RecordBulk, ACopyIsThereForWhoHasWaitedForIt) {
  std::vector<int> values(32, 3);
  std::fill(values.begin() + 16, values.end(), 5);
  Buffer<int> in(values), out(128);
  const LaunchShape shape{.grid = 2, .block = 64, .shared_bytes = sizeof(Tile)};
  for (const std::string& order : thread_orders()) {
    simt::set_thread_order(simt::ThreadOrder::parse(order));
    const auto run = [&](Waits waits) {
      return recorded_launch(shape, in_rounds, in.data(), out.data(), waits, 3);
    };
    expect_clean(run(Waits::each));
    expect_clean(run(Waits::one_then_barrier));
    EXPECT_EQ(out.values()[100], 9);
    for (const Waits wrong :
         {Waits::one_behind_barrier, Waits::nobody, Waits::next_copy_does_not}) {
      expect_finding(run(wrong), Kind::race, Space::shared);
    }
  }
  simt::set_thread_order({});
}

/// Copies by a thread that is the only reader: it needs no barrier before the next copy.
__global__ void alone(const int* in, int* out, int rounds, bool waits_at_last) {
  Tile& tile = shared<Tile>();
  ptx::mbarrier_init(tile.full, 1);
  ptx::mbarrier_fence_init();
  int sum = 0;
  for (int round = 0; round < rounds; ++round) {
    ptx::mbarrier_arrive_expect(tile.full, 16);
    ptx::bulk_load(tile.words, in, 16, tile.full);
    if (!waits_at_last && round + 1 == rounds) sum += tile.words[0][1];
    ptx::mbarrier_wait(tile.full, static_cast<unsigned>(round % 2));
    sum += tile.words[0][1];
  }
  out[0] = sum;
}

TEST(RecordBulk, MoreCopiesThanACellCanNumber) {
  Buffer<int> in(std::vector<int>(4, 1)), out(1);
  const LaunchShape shape{.grid = 1, .block = 1, .shared_bytes = sizeof(Tile)};
  expect_clean(recorded_launch(shape, alone, in.data(), out.data(), 40000, true));
  EXPECT_EQ(out.values()[0], 40000);
  expect_finding(recorded_launch(shape, alone, in.data(), out.data(), 40000, false), Kind::race,
                 Space::shared);
}

/// Threads that write to the source of a bulk copy.
enum class Writers { behind_waits, behind_a_wait_and_barrier, behind_barrier, the_issuing_one };

/// Rounds of a copy of memory that threads write before its start and again behind a wait for it.
__global__ void in_place(int* data, int* out, Writers writers, int rounds) {
  Tile& tile = shared<Tile>();
  const bool first = threadIdx.x == 0;
  if (first) {
    ptx::mbarrier_init(tile.full, 1);
    ptx::mbarrier_fence_init();
  }
  int sum = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto parity = static_cast<unsigned>(round % 2);
    data[threadIdx.x] = round + 1;
    ptx::fence_async_proxy();
    __syncthreads();
    if (first) {
      data[0] = round + 1;
      ptx::fence_async_proxy();
      ptx::mbarrier_arrive_expect(tile.full, 256);
      ptx::bulk_load(tile.words, data, 256, tile.full);
      if (writers == Writers::the_issuing_one) data[5] = 0;
    }
    if (writers == Writers::behind_barrier) {
      __syncthreads();
      if (threadIdx.x == 40) data[40] = 0;
    }
    const bool all = writers != Writers::behind_a_wait_and_barrier;
    if (first || all) ptx::mbarrier_wait(tile.full, parity);
    if (!all) __syncthreads();
    sum += tile.words[0][threadIdx.x % 32];
    if (writers == Writers::behind_waits || !all) data[threadIdx.x] = 0;
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}

TEST(RecordBulk, TheSourceOfACopyIsReadUntilAWait) {
  Buffer<int> data(64), out(64);
  const LaunchShape shape{.grid = 1, .block = 64, .shared_bytes = sizeof(Tile)};
  for (const std::string& order : thread_orders()) {
    simt::set_thread_order(simt::ThreadOrder::parse(order));
    const auto run = [&](Writers writers) {
      return recorded_launch(shape, in_place, data.data(), out.data(), writers, 3);
    };
    for (const Writers right : {Writers::behind_waits, Writers::behind_a_wait_and_barrier}) {
      expect_clean(run(right));
      EXPECT_EQ(out.values()[7], 1 + 2 + 3);
    }
    for (const Writers wrong : {Writers::behind_barrier, Writers::the_issuing_one}) {
      const Report report = run(wrong);
      expect_finding(report, Kind::race, Space::global);
      EXPECT_NE(all_text(report).find("overwrites the source of a bulk copy"), std::string::npos)
          << all_text(report);
    }
  }
  simt::set_thread_order({});
}

/// Announces bytes of a phase that may never complete; no thread waits for it.
__global__ void announce(const int* in, int* out, unsigned bytes) {
  Tile& tile = shared<Tile>();
  ptx::mbarrier_init(tile.full, 1);
  ptx::mbarrier_fence_init();
  ptx::mbarrier_arrive_expect(tile.full, 16);
  ptx::bulk_load(tile.words, in, 16, tile.full);
  ptx::mbarrier_wait(tile.full, 0);
  if (bytes != 0) ptx::mbarrier_arrive_expect(tile.full, bytes);
  out[0] = tile.words[0][0];
}

TEST(RecordBulk, BytesThatNoCopyBringsAreReportedAtTheBlocksEnd) {
  Buffer<int> in(std::vector<int>(4, 1)), out(1);
  const LaunchShape shape{.grid = 2, .block = 1, .shared_bytes = sizeof(Tile)};
  expect_clean(recorded_launch(shape, announce, in.data(), out.data(), 0));
  const Report report = recorded_launch(shape, announce, in.data(), out.data(), 48);
  expect_finding(report, Kind::barrier, Space::shared);
  EXPECT_NE(all_text(report).find("lacks 48 bytes"), std::string::npos) << all_text(report);
}

}  // namespace
}  // namespace rung
