// SPDX-License-Identifier: Apache-2.0
// Figures of course material, reproduced by the calculators' command lines only.
#include <cmath>

#include "command_line.hpp"

namespace rung::test {
namespace {

using nlohmann::json;

// --- rows of the quiz, by commands only ----------------------------------------------------------

TEST(QuizByCommand, Row1Amdahl) {
  EXPECT_NEAR(json_of("amdahl 90% 1000").at("rows")[0].at("speedup").get<double>(), 9.91, 0.005);
  EXPECT_NE(page_of("amdahl 90% 1000")
                .find("1 / ((1 - p) + p / n) = 1 / ((1 - 90 %) + 90 % / "
                      "1000) = 9.911"),
            std::string::npos);
}

TEST(QuizByCommand, Row8BlockSizeAtBothLimits) {
  const json result = json_of("occupancy --sm threads=1536,blocks=16");
  for (const json& one : result.at("sweep")) {
    EXPECT_EQ(one.at("limited_by").size() == 2, one.at("threads") == 96) << one;
  }
  EXPECT_NE(page_of("occupancy --sm threads=1536,blocks=16")
                .find("at the limits of warps and of blocks: 96 threads"),
            std::string::npos);
}

TEST(QuizByCommand, Row9ActiveWarps) {
  const struct {
    const char* block;
    int warps;
  } kernels[] = {{"--threads 160 --shared 7K --registers-per-block 1K", 10},
                 {"--threads 224 --shared 8K --registers-per-block 6K", 14},
                 {"--threads 288 --shared 10K --registers-per-block 9K", 9},
                 {"--threads 96 --shared 4K --registers-per-block 2K", 12}};
  for (const auto& [block, warps] : kernels) {
    for (const char* chip :
         {"--sm warps=32,blocks=8,shared=16K,registers=16K", "--compute-capability 1.3"}) {
      EXPECT_EQ(json_of(std::string("occupancy ") + chip + " " + block).at("warps"), warps)
          << chip << " " << block;
    }
  }
}

TEST(QuizByCommand, Row10StencilTile) {
  const std::string line = "reuse stencil --tile 16x16 --mask 9x9";
  EXPECT_EQ(figure(line, "threads"), 576);
  EXPECT_EQ(figure(line, "blocks_per_sm"), 3);
  EXPECT_EQ(figure(line, "shared_memory_in_use"), 6912);
  EXPECT_EQ(figure(line, "reuse"), 36);
  EXPECT_EQ(json_of(line).at("rows")[0].at("results").at("input_tile"), "24x24");
}

TEST(QuizByCommand, Row11FourLoadsPerThread) {
  const std::string line = "reuse stencil --input-tile 48x48 --mask 9x9 --loads-per-thread 4";
  EXPECT_EQ(figure(line, "reuse"), 56.25);
  EXPECT_EQ(figure(line, "threads"), 576);
}

TEST(QuizByCommand, Row12HaloFromGlobalMemory) {
  const std::string line = "reuse stencil --tile 16x16 --mask 9x5";
  EXPECT_EQ(figure(line, "reads"), 11520);
  EXPECT_EQ(figure(line, "without_halo_from_shared_memory"), 9176);
  EXPECT_EQ(figure(line, "without_halo_from_global_memory"), 2344);
}

TEST(QuizByCommand, Row13OneDimension) {
  const std::string line = "reuse stencil --tile 8 --mask 5";
  EXPECT_EQ(figure(line, "loads"), 12);
  EXPECT_EQ(figure(line, "reads"), 40);
  EXPECT_NEAR(figure(line, "reuse"), 3.3, 0.05);
}

TEST(QuizByCommand, Row14HalfOfABurst) {
  const std::string line = "burst --burst 512 --element 8 --stride 2 --peak 240GB/s";
  EXPECT_EQ(figure(line, "efficiency"), 0.5);
  EXPECT_EQ(figure(line, "effective_bandwidth"), 120e9);
}

TEST(QuizByCommand, Rows15To17Work) {
  EXPECT_EQ(figures("work kogge-stone --n 16,128,1024", "additions"), (Figures{49, 769, 9217}));
  EXPECT_EQ(figures("work brent-kung --n 16,2048", "additions"), (Figures{26, 4083}));
  EXPECT_EQ(figures("work tree --n 16,1000", "additions"), (Figures{15, 999}));
  EXPECT_NEAR(figure("work kogge-stone --n 1e6", "log2_of_n"), 20, 0.1);
}

TEST(QuizByCommand, Row21Roofline) {
  const std::string line = "roofline --reuse 32 --bandwidth 696GB/s --peak 37.4TFLOP/s";
  EXPECT_EQ(figure(line, "at_most"), 5568e9);
  EXPECT_EQ(json_of(line).at("rows")[0].at("results").at("bound_by"), "memory");
  EXPECT_EQ(figure("roofline --reuse 32 --gpu a40", "at_most"), 5568e9);
}

TEST(QuizByCommand, Rows2To4MatrixProducts) {
  EXPECT_EQ(figure("reuse shared 1x1x1 --shape 40x31x33", "from_global_memory"), 327360);
  const std::string row3 = "reuse shared 32x32x1 --shape 100x141x92";
  EXPECT_EQ(figure(row3, "useful_operations"), 2594400);
  EXPECT_EQ(figure(row3, "operations_of_all_threads"), 3932160);
  const std::string row4 = "reuse shared 16x16x1 --shape 80x41x69";
  EXPECT_EQ(figure(row4, "a_from_global_memory"), 16400);
  EXPECT_EQ(figure(row4, "b_from_global_memory"), 14145);
  EXPECT_EQ(figure(row4, "from_global_memory"), 122180);
}

// --- other figures of the courses ----------------------------------------------------------------

TEST(CourseFigures, RegisterTile) {
  const std::string line = "reuse register 4x8x1 --n 1024";
  EXPECT_EQ(figure(line, "loads_of_a"), std::pow(1024, 3) / 8);
  EXPECT_EQ(figure(line, "loads_of_b"), std::pow(1024, 3) / 4);
  EXPECT_EQ(figure(line, "registers"), 4 + 8 + 32);
  EXPECT_EQ(figures("reuse register 4x8x1,4x8x4 --n 1024", "registers"), (Figures{44, 80}));
}

TEST(CourseFigures, CacheBlocks) {
  const std::string line = "reuse cache 4x4 --n 1024 --l1 32K";
  EXPECT_EQ(figure(line, "loads_of_a"), 1024 * 1024);
  EXPECT_EQ(figure(line, "loads_of_b"), std::pow(1024, 3) / 4);
  EXPECT_EQ(figure(line, "held_at_once"), 8 * 1024 + 16);
  EXPECT_EQ(figure(line, "too_many"), 64);
  EXPECT_EQ(figure("reuse cache 3x3 --n 1024 --l1 32K", "left_over"), 32768 - 4 * 6153);
  EXPECT_EQ(figure(line, "largest_b1_b2"), 3);
  EXPECT_EQ(json_of(line).at("rows")[0].at("results").at("fits"), false);
}

TEST(CourseFigures, SharedTile) {
  const std::string line = "reuse shared 128x8x8 --n 256";
  EXPECT_EQ(figure(line, "from_global_memory"), 2 * std::pow(256, 3) / 128 * 4);
  EXPECT_EQ(figure(line, "from_shared_memory"), 2 * std::pow(256, 3) / 8 * 4);
  EXPECT_EQ(figure(line, "threads_per_block"), 256);
  EXPECT_EQ(figure(line, "barriers_per_block"), 64);
  const std::string oblong = "reuse shared 128x64x16x8x4 --n 1024";
  EXPECT_EQ(figure(oblong, "reuse_of_a"), 64);
  EXPECT_EQ(figure(oblong, "reuse_of_b"), 128);
  EXPECT_EQ(figure(oblong, "from_global_memory"),
            (std::pow(1024, 3) / 64 + std::pow(1024, 3) / 128) * 4);
}

TEST(CourseFigures, RooflineRidge) {
  EXPECT_EQ(figure("roofline --intensity 0.25 --bandwidth 204.8GB/s --peak 1TFLOP/s", "at_most"),
            51.2e9);
  const std::string a40 = "roofline --reuse 32 --gpu a40";
  EXPECT_NEAR(figure(a40, "reuse_at_the_ridge"), 214.9, 0.1);
  EXPECT_EQ(figure(a40, "tile_at_the_ridge"), 256);
  EXPECT_EQ(figure(a40, "fma_per_thread_1024"), 64);
  EXPECT_EQ(figure(a40, "fma_per_thread_512"), 128);
}

TEST(CourseFigures, WavesAndLittlesLaw) {
  const std::string waves = "waves --grid 30x30 --blocks-per-sm 2 --sms 132";
  EXPECT_NEAR(figure(waves, "waves"), 3.41, 0.005);
  EXPECT_EQ(figure(waves, "last_wave"), 108);
  EXPECT_EQ(figure(waves, "blocks_that_wait"), 636);
  const std::string law = "littles-law --latency 500ns --bandwidth 3TB/s --bytes-per-load 16";
  EXPECT_DOUBLE_EQ(figure(law, "bytes_in_flight"), 1.5e6);
  EXPECT_EQ(figure(law, "loads_in_flight"), 93750);
  EXPECT_EQ(figure(law + " --blocks 264 --threads 256", "loads_pending"), 264 * 256);
}

TEST(CourseFigures, Pcie) {
  const Figures rates = figures("pcie --generation 3 --lanes 1,2,4,8,16", "bandwidth");
  const Figures published = {0.985e9, 1.97e9, 3.94e9, 7.88e9, 15.75e9};
  ASSERT_EQ(rates.size(), published.size());
  for (std::size_t i = 0; i < rates.size(); ++i) EXPECT_NEAR(rates[i] / published[i], 1, 1e-3);
}

TEST(CourseFigures, Mixture) {
  const std::string line = "mixture 50%=120ns 50%=5ns --each 5 --plus 100ops@1GFLOP/s";
  EXPECT_DOUBLE_EQ(figure(line, "part_1"), 700e-9);
  EXPECT_DOUBLE_EQ(figure(line, "part_2"), 125e-9);
  EXPECT_DOUBLE_EQ(figure(line, "mean"), 412.5e-9);
  EXPECT_NEAR(figure(line, "rate"), 0.2424e9, 1e5);
  EXPECT_NEAR(figure(line + " --target 412.5ns", "share_of_the_slow"), 0.5, 1e-9);
  EXPECT_NEAR(figure(line + " --target 0.5GFLOP/s", "share_of_the_slow"), 75.0 / 575, 1e-9);
}

TEST(CourseFigures, WorkCoarsenedAndConvolutionsAndDivergence) {
  EXPECT_EQ(figures("work tree --n 1024 --coarsening 2,4", "steps_blocks_in_turn"),
            (Figures{20, 40}));
  EXPECT_EQ(figures("work tree --n 1024 --coarsening 2,4", "steps_coarsened"), (Figures{12, 16}));
  EXPECT_EQ(figure("conv-shape 1x1x32x32 --out 6 --k 5", "output_rows"), 32 - 5 + 1);
  EXPECT_EQ(figure("conv-shape 1x1x32x32 --out 6 --k 5", "parameters"), 6 * 26);
  EXPECT_EQ(figure("conv-shape 2x3x224x224 --out 64 --k 7 --s 2 --p 3", "output_columns"), 112);
  EXPECT_DOUBLE_EQ(figure("divergence --paths 10ms,2ms", "lanes_on_every_path"), 12e-3);
}

}  // namespace
}  // namespace rung::test
