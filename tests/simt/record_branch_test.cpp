// SPDX-License-Identifier: Apache-2.0
// Basic blocks and branches of kernels.
#include "tests/simt/record_fixture.hpp"

namespace rung {
namespace {

Kernel branches_of(void (*kernel)(int*, int), int argument) {
  Buffer<int> out(256);
  const Report report = recorded_launch({.grid = 2, .block = 64}, kernel, out.data(), argument);
  expect_clean(report);
  return report.kernels.at(0);
}

/// Returns the thread's own output element, so that blocks do not share memory.
__device__ inline int* mine(int* out) { return out + blockIdx.x * 128 + threadIdx.x; }

TEST(RecordBranch, OddLanesPartOnceAWarp) {
  const Kernel kernel = branches_of(
      +[](int* out, int) {
        if (threadIdx.x % 2 == 1) *mine(out) = 1;
      },
      0);
  EXPECT_EQ(kernel.totals.branches, 4u);
  EXPECT_EQ(kernel.totals.divergent_branches, 4u);
  EXPECT_EQ(kernel.branch_efficiency(), 0.0);
}

TEST(RecordBranch, LanesPerInstructionAreThoseOfRequestsAndBlocks) {
  // One basic block before the branch, one of 8 lanes with a store, one after it.
  const Kernel kernel = branches_of(
      +[](int* out, int) {
        if (threadIdx.x % 4 == 1) *mine(out) = 1;
      },
      0);
  EXPECT_EQ(kernel.totals.basic_blocks, 4u * 3);
  EXPECT_EQ(kernel.totals.basic_block_lanes, 4u * (32 + 8 + 32));
  EXPECT_DOUBLE_EQ(kernel.lanes_per_instruction(), (32 + 8 + 32 + 8) / 4.0);
  EXPECT_EQ(kernel.divergent_warps, 4u);
}

TEST(RecordBranch, TestsOfOneConditionAreOneBranch) {
  // Lane 0 of each warp fails the first test, all others the second.
  static constexpr auto kernel = [](int* out, int limit) {
    const auto lane = static_cast<int>(threadIdx.x) % 32;
    if (lane > 0 && lane < limit) *mine(out) = 1;
  };
  const Kernel nobody = branches_of(kernel, 1);
  EXPECT_EQ(nobody.divergent_warps, 0u);
  const Kernel half = branches_of(kernel, 16);
  EXPECT_EQ(half.divergent_warps, 4u);
  EXPECT_EQ(half.totals.divergent_branches, 4u);
  EXPECT_EQ(half.totals.branches, 4u);
}

TEST(RecordBranch, WholeWarpsPartNowhere) {
  const Kernel kernel = branches_of(
      +[](int* out, int) {
        if (threadIdx.x / 32 == 1) *mine(out) = 1;
      },
      0);
  EXPECT_EQ(kernel.totals.branches, 4u) << "it goes both ways, by warps";
  EXPECT_EQ(kernel.totals.divergent_branches, 0u);
  EXPECT_EQ(kernel.branch_efficiency(), 1.0);
}

TEST(RecordBranch, LoopsOfOneTripCountPartNowhere) {
  const Kernel kernel = branches_of(
      +[](int* out, int rounds) {
        for (int i = 0; i < rounds; ++i) mine(out)[i % 2 * 64] = i;
      },
      10);
  EXPECT_EQ(kernel.totals.branches, 4u * 10);
  EXPECT_EQ(kernel.totals.divergent_branches, 0u);
}

TEST(RecordBranch, LoopsOfManyTripCountsPartUntilOneLaneIsLeft) {
  // Lane i iterates i + 1 times: the warp iterates 32 times, and one lane leaves each time; the
  // last exit leaves no other lane behind.
  const Kernel kernel = branches_of(
      +[](int* out, int) {
        const int rounds = static_cast<int>(threadIdx.x) % 32 + 1;
        for (int i = 0; i < rounds; ++i) mine(out)[i % 2 * 64] = i;
      },
      0);
  EXPECT_EQ(kernel.totals.branches, 4u * 32);
  EXPECT_EQ(kernel.totals.divergent_branches, 4u * 31);
}

TEST(RecordBranch, ABarrierBeforeTheBranchHidesNothing) {
  const Kernel kernel = branches_of(
      +[](int* out, int) {
        *mine(out) = 1;
        __syncthreads();
        if (threadIdx.x % 2 == 1) *mine(out) = 2;
      },
      0);
  EXPECT_EQ(kernel.totals.branches, 4u);
  EXPECT_EQ(kernel.totals.divergent_branches, 4u);
}

TEST(RecordBranch, ArithmeticAloneIsSeenToo) {
  // Neither side accesses memory; the loop prevents a conditional move.
  const Kernel kernel = branches_of(
      +[](int* out, int rounds) {
        int x = static_cast<int>(threadIdx.x);
        if (threadIdx.x % 4 == 0) {
          for (int i = 0; i < rounds; ++i) x = x * 3 + i;
        }
        *mine(out) = x;
      },
      5);
  EXPECT_EQ(kernel.divergent_warps, 4u) << "though memory is accessed by all";
  EXPECT_EQ(kernel.totals.divergent_branches, 4u);
  EXPECT_EQ(kernel.totals.branches, 4u + 4 * 5);
}

}  // namespace
}  // namespace rung
