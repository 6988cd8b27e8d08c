// SPDX-License-Identifier: Apache-2.0
// The model of L1 and L2, on small chips whose hits can be counted by hand.
#include "tests/simt/record_fixture.hpp"

namespace rung {
namespace {

using simt::record::Chip;
using simt::record::Counters;

/// Returns a chip with one SM that holds one block, without shared memory.
Chip small_chip(std::size_t l1_bytes, std::size_t l2_bytes) {
  return {.multiprocessors = 1,
          .threads = 2048,
          .blocks = 1,
          .l1_bytes = l1_bytes,
          .carveouts = {0},
          .shared_reserved = 0,
          .l2_bytes = l2_bytes};
}

template <class... Parameters, class... Arguments>
Kernel on_chip(const Chip& chip, const LaunchShape& shape, void (*kernel)(Parameters...),
               Arguments&&... arguments) {
  const Report report = recorded(
      [&] {
        Context context = Context::on(Backend::simt, 2);
        launch(context, shape, kernel, std::forward<Arguments>(arguments)...);
      },
      {.chip = chip});
  expect_clean(report);
  return report.kernels.at(0);
}

__global__ void read_twice(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x] + in[31 - threadIdx.x];
}

TEST(RecordCache, ASecondLoadOfALineHits) {
  Buffer<float> in(std::vector<float>(32, 1)), out(32);
  const Kernel kernel = on_chip(small_chip(64 << 10, 1 << 20), {.grid = 1, .block = 32}, read_twice,
                                in.data(), out.data());
  const Counters& c = kernel.totals;
  EXPECT_EQ(c.global_load_sectors, 8u);
  EXPECT_EQ(c.l1_load_hits, 4u);
  EXPECT_EQ(c.l2_sectors, 4u + 4) << "the first load's, and the store's";
  EXPECT_EQ(c.l2_hits, 4u) << "a store never misses";
  EXPECT_EQ(c.dram_read_bytes, 128u);
  EXPECT_EQ(c.dram_write_bytes, 0u);
  EXPECT_EQ(kernel.dirty_bytes, 128u);
  EXPECT_EQ(c.l1_evictions + c.l2_evictions, 0u);
}

/// Reads `lines` lines by one warp, `rounds` times.
__global__ void sweep(const float* in, float* out, int lines, int rounds) {
  const auto lane = static_cast<int>(threadIdx.x);
  float sum = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int line = 0; line < lines; ++line) sum += in[32 * line + lane];
  }
  out[lane] = sum;
}

TEST(RecordCache, WhatFitsHitsAndWhatDoesNotIsEvicted) {
  Buffer<float> in(std::vector<float>(32 * 64, 1)), out(32);
  const LaunchShape shape{.grid = 1, .block = 32};
  const Kernel fits =
      on_chip(small_chip(64 << 10, 1 << 20), shape, sweep, in.data(), out.data(), 64, 2);
  EXPECT_EQ(fits.totals.l1_load_hits, 64u * 4);
  EXPECT_EQ(fits.totals.l1_evictions, 0u);
  EXPECT_EQ(fits.totals.dram_read_bytes, 64u * 128);
  // L1 of four lines: LRU evicts every line before its reuse; L2 keeps all of them.
  const Kernel small =
      on_chip(small_chip(4 * 128, 1 << 20), shape, sweep, in.data(), out.data(), 64, 2);
  EXPECT_EQ(small.totals.l1_load_hits, 0u);
  EXPECT_EQ(small.totals.l1_evictions, 2u * 64 + 1 - 4) << "with the line that is stored";
  EXPECT_EQ(small.totals.l2_hits, 64u * 4 + 4);
  EXPECT_EQ(small.totals.dram_read_bytes, 64u * 128);
}

__global__ void fill(float* out, int lines) {
  for (int line = 0; line < lines; ++line) out[32 * line + static_cast<int>(threadIdx.x)] = 1;
}

TEST(RecordCache, L2WritesBackWhatItEvicts) {
  Buffer<float> out(32 * 20);
  // L2 of one set: 16 lines, of which the last ones remain.
  const Kernel kernel =
      on_chip(small_chip(64 << 10, 16 * 128), {.grid = 1, .block = 32}, fill, out.data(), 20);
  EXPECT_EQ(kernel.totals.l2_evictions, 4u);
  EXPECT_EQ(kernel.totals.dram_write_bytes, 4u * 128);
  EXPECT_EQ(kernel.dirty_bytes, 16u * 128);
  EXPECT_EQ(kernel.totals.dram_read_bytes, 0u);
  EXPECT_EQ(kernel.totals.l1_store_hits, 0u);
}

__global__ void store_and_load(float* whole, float* parts, float* out) {
  const auto lane = static_cast<int>(threadIdx.x);
  whole[lane] = 1;
  parts[8 * lane] = 1;
  parts[8 * lane + 1] = 2;
  __syncwarp();
  out[lane] = whole[31 - lane] + parts[8 * lane + 2];
}

TEST(RecordCache, L1KeepsWhatIsStored) {
  Buffer<float> whole(32), parts(std::vector<float>(32 * 8, 1)), out(32);
  const Kernel kernel = on_chip(small_chip(64 << 10, 1 << 20), {.grid = 1, .block = 32},
                                store_and_load, whole.data(), parts.data(), out.data());
  EXPECT_EQ(kernel.totals.l1_store_hits, 32u) << "the second store to each sector of parts";
  EXPECT_EQ(kernel.totals.l1_load_hits, 4u) << "whole: of a sector of parts only 8 bytes are known";
}

__global__ void read_one_line(const float* in, float* out) {
  out[32 * blockIdx.x + threadIdx.x] = in[threadIdx.x];
}

TEST(RecordCache, EachMultiprocessorHasItsOwnL1) {
  Buffer<float> in(std::vector<float>(32, 1)), out(32 * 6);
  Chip chip = small_chip(64 << 10, 1 << 20);
  chip.multiprocessors = 2;
  const Kernel kernel =
      on_chip(chip, {.grid = 6, .block = 32}, read_one_line, in.data(), out.data());
  EXPECT_EQ(kernel.totals.l1_load_hits, 4u * 4) << "of three blocks each all but the first";
  EXPECT_EQ(kernel.totals.l2_hits, 4u + 6 * 4) << "the second multiprocessor's, and the stores";
  EXPECT_EQ(kernel.totals.dram_read_bytes, 128u);
}

TEST(RecordCache, LinesOfTheSourceHaveTheirShare) {
  Buffer<float> in(std::vector<float>(32, 1)), out(32);
  const Kernel kernel = on_chip(
      small_chip(64 << 10, 1 << 20), {.grid = 1, .block = 32},
      +[](const float* from, float* to) {
        const float first = from[threadIdx.x];
        to[threadIdx.x] = first + from[31 - threadIdx.x];
      },
      in.data(), out.data());
  std::uint64_t hits = 0;
  for (const simt::record::Line& line : kernel.lines) {
    if (line.counters.l1_load_hits == 0) continue;
    hits += line.counters.l1_load_hits;
    EXPECT_EQ(line.counters.dram_read_bytes, 0u);
  }
  EXPECT_EQ(hits, 4u);
}

TEST(RecordCache, SharedMemoryTakesOfL1WhatItsBlocksNeed) {
  Buffer<float> out(64);
  const Kernel kernel = on_chip(
      Chip{}, {.grid = 2, .block = 32, .shared_bytes = 50 << 10},
      +[](float* to) { to[32 * blockIdx.x + threadIdx.x] = 1; }, out.data());
  // Four blocks of 51 KiB fit in the 228 KiB of an H200's SM: 204 KiB, for which it reserves 228 of
  // 256.
  EXPECT_EQ(kernel.l1_bytes, 28u << 10);
}

TEST(RecordEfficiency, BytesThatLanesUseOfTheSectorsTheyMove) {
  Buffer<float> in(std::vector<float>(32 * 8, 1)), out(32 * 2);
  const Kernel kernel = on_chip(
      Chip{}, {.grid = 1, .block = 32},
      +[](const float* from, float* to) { to[2 * threadIdx.x] = from[8 * threadIdx.x] + from[0]; },
      in.data(), out.data());
  EXPECT_EQ(kernel.totals.global_load_sectors, 32u + 1);
  EXPECT_EQ(kernel.totals.global_load_used_bytes, 128u + 4) << "all lanes read one word: 4 bytes";
  EXPECT_EQ(kernel.totals.global_store_sectors, 8u);
  EXPECT_EQ(kernel.totals.global_store_used_bytes, 128u);
}

TEST(RecordEfficiency, AtomicsOnOneAddressTakeTurns) {
  Buffer<int> out(std::vector<int>(32, 0));
  const Kernel kernel = on_chip(
      Chip{}, {.grid = 1, .block = 64},
      +[](int* to) {
        atomicAdd(&to[threadIdx.x % 32 / 8], 1);
        atomicAdd(&to[threadIdx.x % 32], 1);
        atomicAdd(to, 1);
      },
      out.data());
  EXPECT_EQ(kernel.totals.atomic_requests, 6u);
  EXPECT_EQ(kernel.totals.atomic_rounds, 2u * (8 + 1 + 32));
}

/// Iterates `first` times in block 0 and `others` times in the other blocks.
__global__ void rounds(int* out, int first, int others) {
  const int count = blockIdx.x == 0 ? first : others;
  for (int i = 0; i < count; ++i) out[64 * blockIdx.x + threadIdx.x] = i;
}

TEST(RecordBalance, LongestBlockAndWarpOverTheMean) {
  Buffer<int> out(std::vector<int>(64 * 4, 0));
  const LaunchShape shape{.grid = 4, .block = 64};
  const Kernel even = on_chip(Chip{}, shape, rounds, out.data(), 40, 40);
  EXPECT_DOUBLE_EQ(even.block_imbalance, 1.0);
  EXPECT_DOUBLE_EQ(even.warp_imbalance, 1.0);
  const Kernel skew = on_chip(Chip{}, shape, rounds, out.data(), 80, 40);
  EXPECT_EQ(skew.longest_warp - even.longest_warp, 40u) << "a visit of the body for each round";
  EXPECT_EQ(skew.visits - even.visits, 2u * 40) << "of the block's two warps";
  EXPECT_DOUBLE_EQ(skew.block_imbalance, 4.0 * static_cast<double>(skew.longest_block) /
                                             static_cast<double>(skew.visits));
  EXPECT_GT(skew.block_imbalance, 1.5);
}

}  // namespace
}  // namespace rung
