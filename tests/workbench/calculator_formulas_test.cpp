// SPDX-License-Identifier: Apache-2.0
// The calculators' formulas, against published figures and against counts of a simple loop.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "rung/bench/burst.hpp"
#include "rung/bench/conv_shape.hpp"
#include "rung/bench/divergence.hpp"
#include "rung/bench/links.hpp"
#include "rung/bench/littles_law.hpp"
#include "rung/bench/mixture.hpp"
#include "rung/bench/occupancy.hpp"
#include "rung/bench/reuse.hpp"
#include "rung/bench/waves.hpp"
#include "rung/bench/work.hpp"
#include "rung/core/error.hpp"

namespace rung::test {
namespace {

// --- work ----------------------------------------------------------------------------------------

/// Runs the algorithm on ones and counts its work; checks the sums.
bench::ParallelWork counted_kogge_stone(int n) {
  std::vector<int> x(static_cast<std::size_t>(n), 1);
  bench::ParallelWork work;
  for (int stride = 1; stride < n; stride *= 2) {
    for (int i = n - 1; i >= stride; --i) {
      x[i] += x[i - stride];
      ++work.additions;
    }
    ++work.steps;
  }
  for (int i = 0; i < n; ++i) EXPECT_EQ(x[i], i + 1);
  return work;
}

bench::ParallelWork counted_brent_kung(int n) {
  std::vector<int> x(static_cast<std::size_t>(n), 1);
  bench::ParallelWork work;
  const auto step = [&](int first, int every, int distance) {
    bool any = false;
    for (int i = first; i < n; i += every) {
      x[i] += x[i - distance];
      ++work.additions;
      any = true;
    }
    if (any) ++work.steps;
  };
  int stride = 1;
  for (; stride < n; stride *= 2) step(2 * stride - 1, 2 * stride, stride);
  for (; stride > 0; stride /= 2) step(3 * stride - 1, 2 * stride, stride);
  for (int i = 0; i < n; ++i) EXPECT_EQ(x[i], i + 1) << n;
  return work;
}

TEST(Work, ScansOfAnySizeAgreeWithCounting) {
  for (int n = 1; n <= 300; ++n) {
    EXPECT_EQ(bench::kogge_stone(n).additions, counted_kogge_stone(n).additions) << n;
    EXPECT_EQ(bench::kogge_stone(n).steps, counted_kogge_stone(n).steps) << n;
    EXPECT_EQ(bench::brent_kung(n).additions, counted_brent_kung(n).additions) << n;
    EXPECT_EQ(bench::brent_kung(n).steps, counted_brent_kung(n).steps) << n;
  }
}

TEST(Work, PowersOfTwoAgreeWithTheirTextbooks) {
  for (int log = 1; log < 50; ++log) {
    const double n = std::exp2(log);
    EXPECT_EQ(bench::ceil_log2(n), log);
    EXPECT_DOUBLE_EQ(bench::kogge_stone(n).additions, n * log - (n - 1));
    EXPECT_DOUBLE_EQ(bench::brent_kung(n).additions, 2 * (n - 1) - log);
    EXPECT_EQ(bench::brent_kung(n).steps, 2 * log - 1);
  }
  EXPECT_EQ(bench::tree_sum(1000).additions, 999);
  EXPECT_EQ(bench::tree_sum(1000).steps, 10);
  EXPECT_EQ(bench::serialized_steps(1024, 4), 40);
  EXPECT_EQ(bench::coarsened_steps(1024, 4), 16);
}

// --- reuse ---------------------------------------------------------------------------------------

TEST(Reuse, TiledLoadsCountTilesAtTheEdgeAsWhole) {
  const bench::OperandLoads even = bench::tiled_loads({1024, 1024, 1024}, 4, 8);
  EXPECT_EQ(even.a, std::pow(1024, 3) / 8);
  EXPECT_EQ(even.b, std::pow(1024, 3) / 4);
  const bench::OperandLoads ragged = bench::tiled_loads({80, 41, 69}, 16, 16);
  EXPECT_EQ(ragged.a, 16400);
  EXPECT_EQ(ragged.b, 14145);
}

TEST(Reuse, TheLargestCacheBlockFitsAndTheNextDoesNot) {
  for (const double n : {1.0, 7.0, 128.0, 1000.0, 1e6}) {
    for (const double elements : {1.0, 8.0, 8192.0, 1e6, 1e9}) {
      const double b = bench::largest_cache_block(n, elements);
      EXPECT_GE(b, 0);
      EXPECT_LE(bench::cache_blocking(n, b, b).elements, elements);
      EXPECT_GT(bench::cache_blocking(n, b + 1, b + 1).elements, elements);
    }
  }
}

TEST(Reuse, StencilReadsAgreeWithCounting) {
  for (int tile = 1; tile <= 20; ++tile) {
    for (int mask = 1; mask <= 15; mask += 2) {
      const int radius = mask / 2;
      int beyond = 0;
      for (int i = 0; i < tile; ++i) {
        for (int j = i - radius; j <= i + radius; ++j) beyond += j < 0;
      }
      const bench::StencilAxis axis{.tile = 1.0 * tile, .mask = 1.0 * mask};
      EXPECT_EQ(axis.reads_beyond(), beyond) << tile << " " << mask;
      EXPECT_EQ(axis.reads(), tile * mask);
      EXPECT_EQ(axis.input_tile(), tile + mask - 1);
    }
  }
  EXPECT_DOUBLE_EQ((bench::StencilAxis{.tile = 8, .mask = 5}.boundary_reuse()), 3.7);
}

// --- the others ----------------------------------------------------------------------------------

TEST(Burst, LinesAgreeWithASetOfThem) {
  for (const double stride : {0.0, 1.0, 2.0, 3.0, 8.0, 33.0}) {
    for (const double element : {1.0, 4.0, 8.0, 100.0}) {
      for (const double offset : {0.0, 4.0, 60.0}) {
        for (const double line : {32.0, 64.0, 512.0}) {
          const bench::StridedAccess access{32, element, stride, offset};
          std::vector<bool> touched(20000);
          for (int i = 0; i < 32; ++i) {
            for (double byte = 0; byte < element; ++byte) {
              touched[static_cast<std::size_t>((offset + i * stride * element + byte) / line)] =
                  true;
            }
          }
          EXPECT_EQ(access.lines(line), std::count(touched.begin(), touched.end(), true))
              << stride << " " << element << " " << offset << " " << line;
        }
      }
    }
  }
}

TEST(Waves, FullAndPartialLastWaves) {
  const bench::Waves one = bench::waves_of(900, 2, 132);
  EXPECT_EQ(one.capacity, 264);
  EXPECT_EQ(one.rounds, 4);
  EXPECT_EQ(one.last_wave, 108);
  EXPECT_EQ(one.waiting, 636);
  EXPECT_DOUBLE_EQ(one.efficiency(), 900.0 / 1056);
  EXPECT_EQ(bench::waves_of(528, 2, 132).last_wave, 264);
  EXPECT_EQ(bench::waves_of(528, 2, 132).efficiency(), 1);
  EXPECT_EQ(bench::waves_of(1, 2, 132).waiting, 0);
}

TEST(LittlesLaw, RoundsUpToWholeLoadsAndWarps) {
  EXPECT_DOUBLE_EQ(bench::bytes_in_flight(500e-9, 3e12), 1.5e6);
  EXPECT_EQ(bench::loads_in_flight(1.5e6, 16), 93750);
  EXPECT_EQ(bench::warps_for_loads(93750, 1), 2930);
}

TEST(Links, PcieGenerationsHaveTheirPublishedRates) {
  const double published[] = {0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9};
  const auto generations = bench::pcie_generations();
  ASSERT_EQ(generations.size(), std::size(published));
  for (std::size_t i = 0; i < generations.size(); ++i) {
    EXPECT_EQ(generations[i].generation, static_cast<int>(i) + 1);
    EXPECT_NEAR(generations[i].bytes_per_second(1), published[i], 1e6);
  }
  for (const bench::NvlinkGeneration& one : bench::nvlink_generations()) {
    EXPECT_GE(one.links * one.bytes_per_second_per_link, 80e9);
  }
}

TEST(Mixture, MeanAndTheShareThatGivesIt) {
  const bench::MixturePart parts[] = {{0.5, 120e-9}, {0.5, 5e-9}};
  EXPECT_DOUBLE_EQ(bench::mean_operation_seconds(parts, 5, 100e-9), 412.5e-9);
  EXPECT_DOUBLE_EQ(bench::slow_share_for(412.5e-9, 700e-9, 125e-9), 0.5);
}

TEST(ConvShape, OutputsAgreeWithCountingWindows) {
  for (int input = 1; input <= 12; ++input) {
    for (int window = 1; window <= 5; ++window) {
      for (int stride = 1; stride <= 3; ++stride) {
        for (int padding = 0; padding <= 2; ++padding) {
          for (int dilation = 1; dilation <= 2; ++dilation) {
            const bench::ConvAxis axis{1.0 * input, 1.0 * window, 1.0 * stride, 1.0 * padding,
                                       1.0 * dilation};
            int count = 0;
            for (int at = -padding; at + dilation * (window - 1) < input + padding; at += stride) {
              ++count;
            }
            EXPECT_EQ(std::max(0.0, axis.output()), count);
          }
        }
      }
    }
  }
}

TEST(Divergence, PathsAddUp) {
  const double paths[] = {10e-3, 2e-3};
  EXPECT_DOUBLE_EQ(bench::divergent_seconds(paths), 12e-3);
  EXPECT_DOUBLE_EQ(bench::uniform_seconds(paths), 10e-3);
}

TEST(OwnMultiprocessor, WhatIsLeftOutIsNoLimit) {
  const bench::Multiprocessor chip = bench::own_multiprocessor({.threads = 1536, .blocks = 16});
  const bench::Occupancy one =
      bench::occupancy(chip, {.threads = 96, .registers = 255, .shared_bytes = 1 << 20});
  EXPECT_EQ(one.blocks, 16);
  EXPECT_EQ(one.by_registers, bench::Occupancy::no_limit);
  EXPECT_EQ(one.by_shared, bench::Occupancy::no_limit);
  EXPECT_EQ(one.limited_by(), (std::vector<std::string>{"warps", "blocks"}));
  const bench::Multiprocessor warps = bench::own_multiprocessor({.warps = 8});
  EXPECT_EQ(bench::occupancy(warps, {.threads = 32}).by_blocks, bench::Occupancy::no_limit);
  EXPECT_THROW(bench::occupancy(warps, {.threads = 288}), Error);
}

}  // namespace
}  // namespace rung::test
