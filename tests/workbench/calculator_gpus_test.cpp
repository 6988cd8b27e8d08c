// SPDX-License-Identifier: Apache-2.0
// Calculators with names of GPUs, and with bytes and operations of the user's kernel.
#include "command_line.hpp"

namespace rung::test {
namespace {

using nlohmann::json;

TEST(CalculatorsByGpu, OccupancyIsThatOfItsComputeCapability) {
  const json by_name = json_of("occupancy --threads 256 --shared 48K --gpu rtx4090");
  json by_capability = json_of("occupancy --threads 256 --shared 48K --compute-capability 8.9");
  EXPECT_EQ(by_name.at("gpu"), "rtx4090");
  by_capability["gpu"] = "rtx4090";
  EXPECT_EQ(by_name, by_capability);
  EXPECT_EQ(page_of("occupancy --gpu H100"), page_of("occupancy --gpu h100"));
  EXPECT_NE(page_of("occupancy --gpu t4 --threads 64").find("gpu "), std::string::npos);
}

TEST(CalculatorsByGpu, OccupancyHasALinePerGpu) {
  const json both = json_of("occupancy --threads 256 --shared 64K --gpu h100,t4");
  ASSERT_EQ(both.at("gpus").size(), 2u);
  const json& first = both.at("gpus")[0];
  EXPECT_EQ(first.at("gpu"), "h100");
  EXPECT_EQ(first.at("compute_capability"), "9.0");
  // 228 KiB hold three blocks of 64 KiB, each with the 1 KiB that the system reserves.
  EXPECT_EQ(first.at("sweep")[0].at("blocks"), 3);
  EXPECT_EQ(first.at("sweep")[0].at("occupancy"), 24.0 / 64);
  EXPECT_EQ(both.at("gpus")[1].at("sweep")[0].at("occupancy"), 8.0 / 32);
  const std::string page = page_of("occupancy --threads 256 --shared 64K --gpu h100,t4");
  EXPECT_NE(page.find("37.5 %"), std::string::npos) << page;
  EXPECT_NE(page.find("25 %"), std::string::npos) << page;
}

// The line of a GPU that cannot run a block says so; if no GPU can, the command fails.
TEST(CalculatorsByGpu, OccupancyNamesTheGpuThatTakesNoSuchBlock) {
  const json both = json_of("occupancy --threads 256 --shared 100K --gpu h100,t4");
  EXPECT_EQ(both.at("gpus")[0].at("why_not"), "");
  EXPECT_NE(both.at("gpus")[1].at("why_not"), "");
  EXPECT_TRUE(both.at("gpus")[1].at("sweep").empty());
}

TEST(CalculatorsByGpu, OccupancyOfEverySizeNamesTheBest) {
  const std::string page = page_of("occupancy --registers 40 --gpu h100,a100");
  EXPECT_NE(page.find("best threads"), std::string::npos) << page;
  EXPECT_GT(json_of("occupancy --registers 40 --gpu h100,a100").at("gpus")[1].at("sweep").size(),
            20u);
}

TEST(CalculatorsByGpu, WavesTakesTheSmsOfTheGpu) {
  EXPECT_EQ(figures("waves --grid 900 --blocks-per-sm 2 --gpu h100,a100,rtx4090", "waves"),
            (Figures{900 / 264.0, 900 / 216.0, 900 / 256.0}));
  EXPECT_EQ(figure("waves --grid 900 --blocks-per-sm 2", "waves"), 900 / 264.0);
  EXPECT_EQ(
      json_of("waves --grid 900 --blocks-per-sm 2 --gpu a100").at("rows")[0].at("inputs").at("sms"),
      108);
}

TEST(CalculatorsByGpu, RooflineOfBytesAndOperations) {
  const std::string line = "roofline --bytes 12MB --operations 1e6 --bandwidth 3TB/s --peak 60e12";
  EXPECT_DOUBLE_EQ(figure(line, "flop_per_byte"), 1.0 / 12);
  EXPECT_DOUBLE_EQ(figure(line, "time_of_memory"), 4e-6);
  EXPECT_DOUBLE_EQ(figure(line, "time_of_arithmetic"), 1e6 / 60e12);
  EXPECT_DOUBLE_EQ(figure(line, "time_at_best"), 4e-6);
  EXPECT_DOUBLE_EQ(figure("roofline --bytes 1MB --operations 60G --bandwidth 3TB/s --peak 60e12",
                          "time_at_best"),
                   1e-3);
  EXPECT_NE(page_of(line).find("bytes / bandwidth"), std::string::npos) << page_of(line);
}

}  // namespace
}  // namespace rung::test
