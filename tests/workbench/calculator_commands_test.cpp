// SPDX-License-Identifier: Apache-2.0
// Properties of all calculators' command lines: pages, tables, units, invalid input; and the times
// of `rung reuse both`.
#include <cmath>
#include <filesystem>

#include "command_line.hpp"
#include "rung/workbench/command.hpp"
#include "rung/workbench/quantity.hpp"

namespace rung::test {
namespace {

// --- times of this machine -----------------------------------------------------------------------

TEST(ReuseBoth, PredictsFromWhatTheMachineRemembers) {
  const KnownMachine known(1e11);  // 100 GB/s everywhere
  const std::string line = "reuse both 64x64 4x8 --n 1024";
  const double far = (std::pow(1024, 2) + std::pow(1024, 3) / 64) * 4;
  const double near = (std::pow(1024, 3) / 8 + std::pow(1024, 3) / 4) * 4;
  EXPECT_EQ(figure(line, "bytes_to_l1"), far);
  EXPECT_EQ(figure(line, "bytes_to_registers"), near);
  EXPECT_DOUBLE_EQ(figure(line, "time_of_l1"), near / 1e11);
  EXPECT_DOUBLE_EQ(figure(line, "time_of_arithmetic"), 2 * std::pow(1024, 3) / 1e11);
  EXPECT_DOUBLE_EQ(figure(line, "at_best"), 2 * std::pow(1024, 3) / 1e11);
  EXPECT_DOUBLE_EQ(figure(line + " --bandwidth 1GB/s", "at_best"), far / 1e9);
}

TEST(ReuseBoth, SaysHowToMeasureWhereNothingIsKnown) {
  const KnownMachine known;
  std::filesystem::remove_all(known.folder);
  const std::string text = page_of("reuse both 64x64 4x8 --n 1024");
  EXPECT_NE(text.find("`rung machine` measures"), std::string::npos) << text;
  EXPECT_EQ(text.find("at best "), std::string::npos) << text;
  EXPECT_FALSE(std::filesystem::exists(known.folder)) << "a calculator measures nothing";
}

// --- style of all calculators --------------------------------------------------------------------

constexpr const char* all_lines[] = {
    "reuse register 4x8x1 --n 1024",
    "reuse cache 8x8 --n 100 --l1 32K",
    "reuse both 64x64 4x8 --n 1000 --bandwidth 20GB/s --l1-bandwidth 200GB/s --peak 100GFLOP/s",
    "reuse shared 128x64x16x8x4 --n 1000",
    "reuse stencil --tile 8x16x32 --mask 3x5x7 --loads-per-thread 10",
    "roofline --reuse 32 --gpu a40",
    "waves --grid 900 --blocks-per-sm 2",
    "littles-law --latency 500ns --bandwidth 3TB/s --blocks 100 --sms 132",
    "burst --stride 3 --peak 1TB/s",
    "pcie --bytes 1GiB",
    "mixture 90%=5ns 10%=500ns --target 20ns",
    "work brent-kung --n 1000",
    "conv-shape 2x4x8x9 --out 8 --kernel 3x2 --stride 2x1 --padding 1 --dilation 2 --groups 2",
    "divergence --paths 1us,2us,3us --divergent 50%",
    "occupancy --sm warps=48 --threads 100",
    "amdahl 90% 8",
    "amdahl --measured 5 8",
};

TEST(Calculators, ATableWarnsOfALineThatNoGpuCanRun) {
  const std::string possible = page_of("reuse stencil --tile 8,16 --mask 5 --dims 2");
  EXPECT_EQ(possible.find("1,024 threads"), std::string::npos) << possible;
  const std::string table = page_of("reuse stencil --tile 16,32 --mask 9 --dims 2");
  EXPECT_NE(table.find("In part of the lines: No block has more than 1,024 threads"),
            std::string::npos)
      << table;
}

TEST(Calculators, ARooflineNamesTheChipsRatesForTheTypeOfItsElements) {
  const std::string line = "roofline --intensity 1 --gpu h100";
  const std::string page = page_of(line);
  for (const char* text : {"3.35 TB/s", "67 TFLOP/s", "rung explain gemm --gpu h100"}) {
    EXPECT_NE(page.find(text), std::string::npos) << page;
  }
  EXPECT_NE(page_of(line + " --element 8").find("34 TFLOP/s"), std::string::npos);
}

TEST(Calculators, ARooflineKnowsTheGpusOfCoursesAndClouds) {
  const std::pair<const char*, const char*> bandwidths[] = {
      {"t4", "320 GB/s"},   {"v100", "900 GB/s"},    {"a10", "600 GB/s"},    {"l4", "300 GB/s"},
      {"l40s", "864 GB/s"}, {"rtx3090", "936 GB/s"}, {"rtx4060", "272 GB/s"}};
  for (const auto& [gpu, bandwidth] : bandwidths) {
    const std::string page = page_of(std::string("roofline --intensity 1 --gpu ") + gpu);
    EXPECT_NE(page.find(bandwidth), std::string::npos) << page;
  }
}

TEST(Calculators, TheCommandThatCountsHasTheSameExtents) {
  const std::string page = page_of("reuse shared 32x32x1 --shape 100x141x92");
  EXPECT_NE(page.find("explain gemm/shared_tile \"f32 100x92x141\""), std::string::npos) << page;
}

TEST(Calculators, WhatIsCountedEqualsWhatIsComputed) {
  const struct {
    const char* line;
    std::vector<std::string> equal;
  } rows[] = {
      {"reuse shared 128x128x8x8x8 --n 256",
       {"from_global_memory", "from_shared_memory", "threads_per_block", "barriers_per_block"}},
      {"reuse shared 32x32x1 --shape 100x141x92",
       {"from_global_memory", "threads_per_block", "shared_memory", "barriers_per_block"}},
      {"reuse stencil --tile 16 --mask 9x5 --dims 2", {"reuse", "threads", "shared_memory"}},
      {"reuse stencil --tile 8 --mask 5 --dims 1", {"reuse"}}};
  for (const auto& [line, equal] : rows) {
    if (page_of(line).find("not counted here") != std::string::npos) {
      GTEST_SKIP() << "this build does not count";
    }
    const nlohmann::json page = json_of(line);
    for (const std::string& name : equal) {
      EXPECT_DOUBLE_EQ(page["counted"][0]["figures"].at(name).get<double>(),
                       page["rows"][0]["results"].at(name).get<double>())
          << line << ' ' << name;
    }
  }
  const nlohmann::json halo = json_of("reuse stencil --tile 16 --mask 9x5 --dims 2");
  EXPECT_EQ(halo["counted"][1]["figures"]["from_shared_memory"], 9176);  // quiz, row 12
}

TEST(Calculators, WordsAreReadInCapitalsToo) {
  EXPECT_EQ(page_of("roofline --reuse 2 --gpu H100"), page_of("roofline --reuse 2 --gpu h100"));
}

TEST(Calculators, PagesFitAndShowInputsFormulasAndResults) {
  const KnownMachine known;
  for (const char* line : all_lines) {
    for (const char* width : {"60", "80", "100"}) {
      setenv("COLUMNS", width, 1);
      const Outcome outcome = run_line(line);
      unsetenv("COLUMNS");
      EXPECT_EQ(outcome.code, 0) << line << outcome.err;
      EXPECT_NE(outcome.out.find(" = "), std::string::npos) << outcome.out;
      EXPECT_EQ(outcome.out.find("{"), std::string::npos) << outcome.out;
      EXPECT_EQ(outcome.out.find("nan"), std::string::npos) << outcome.out;
      EXPECT_EQ(outcome.out.find("inf"), std::string::npos) << outcome.out;
    }
    EXPECT_TRUE(json_of(line).is_object()) << line;
  }
}

TEST(Calculators, ListsMakeTables) {
  const std::string text = page_of("reuse stencil --tile 8,16 --mask 3,5 --dims 2");
  EXPECT_EQ(figures("reuse stencil --tile 8,16 --mask 3,5 --dims 2", "loads"),
            (Figures{100, 144, 324, 400}));
  EXPECT_NE(text.find("tile T  mask M"), std::string::npos) << text;
  EXPECT_EQ(page_of("burst --stride 1,2,4").find("Counted"),
            page_of("burst --stride 1,2,4").rfind("Counted"));
}

TEST(Calculators, LargeNumbersStayFiniteOrAreRefused) {
  EXPECT_EQ(figure("work kogge-stone --n 9007199254740992", "steps"), 53);
  EXPECT_GT(figure("reuse register 4x8 --n 1e7", "loads"), 1e20);
  for (const char* line : {"work tree --n 9007199254740994", "reuse register 4x8 --n 1e8"}) {
    EXPECT_EQ(run_line(line).code, 2) << line;
  }
}

TEST(Calculators, UnitsAreUnderstood) {
  const auto bytes = [](const std::string& text) {
    return json_of("pcie --bytes " + text).at("rows")[0].at("inputs").at("bytes").get<double>();
  };
  EXPECT_EQ(bytes("4096"), 4096);
  EXPECT_EQ(bytes("4K"), 4096);
  EXPECT_EQ(bytes("4KiB"), 4096);
  EXPECT_EQ(bytes("4KB"), 4000);
  EXPECT_EQ(bytes("1.5GB"), 1.5e9);
  const auto latency = [](const std::string& text) {
    const nlohmann::json rows =
        json_of("littles-law --bandwidth 1e12 --latency " + text).at("rows");
    return rows[0].at("inputs").at("latency").get<double>();
  };
  EXPECT_EQ(latency("500ns"), 500e-9);
  EXPECT_EQ(latency("0.5us"), 500e-9);
  EXPECT_EQ(latency("5e-7"), 500e-9);
  EXPECT_EQ(latency("2ms"), 2e-3);
  const auto peak = [](const std::string& text) {
    return json_of("roofline --reuse 1 --bandwidth 1e9 --peak " + text)
        .at("rows")[0]
        .at("inputs")
        .at("peak")
        .get<double>();
  };
  EXPECT_EQ(peak("37.4TFLOP/s"), 37.4e12);
  EXPECT_EQ(peak("37.4TFLOPS"), 37.4e12);
  EXPECT_EQ(peak("100GFLOP/s"), 1e11);
  EXPECT_EQ(peak("1e9"), 1e9);
}

TEST(Calculators, WrongInputNamesOptionValueAndWhatIsAccepted) {
  const struct {
    const char* line;
    const char* says;
  } cases[] = {
      {"reuse", "register cache both shared stencil"},
      {"reuse registre 4x8 --n 9", "did you mean 'register'?"},
      {"rouse", "did you mean 'reuse'?"},
      {"litles-law", "did you mean 'littles-law'?"},
      {"reuse register 4x8", "--n: not given"},
      {"reuse register --n 4", "tile: not given"},
      {"reuse register 4 --n 9",
       "tile: '4' given; accepted: 2 or 3 whole numbers of 1 or more with x between, as in 16x8"},
      {"reuse register 0x8 --n 9", "tile: '0x8' given"},
      {"reuse register 4x8 --n 0", "--n: '0' given; accepted: a whole number from 1"},
      {"reuse register 4x8 --n -5", "--n: '-5' given"},
      {"reuse register 4x8 --n 1.5", "--n: '1.5' given"},
      {"reuse register 4x8 --n nan", "--n: 'nan' given"},
      {"reuse cache 8x8 --n 9 --l1 0", "--l1: '0' given; accepted: bytes above 0"},
      {"reuse shared 128x8x7 --n 9", "a thread's tile that divides the block's"},
      {"reuse stencil --tile 8 --mask 4", "--mask: '4' given; accepted: odd extents"},
      {"reuse stencil --mask 5", "one of --tile and --input-tile"},
      {"reuse stencil --input-tile 4 --mask 5", "the mask fits into"},
      {"reuse stencil --tile 8x8 --mask 5 --dims 3", "1 or 3 extents"},
      {"reuse stencil --tile 8 --mask 5 --dims 4",
       "--dims: '4' given; accepted: a whole number "
       "from 1 to 3"},
      {"roofline --reuse 2", "--bandwidth: not given; accepted: a rate, or --gpu h200"},
      {"roofline --gpu a40", "not given; accepted: one of --intensity, --reuse, and --bytes with"},
      {"roofline --gpu a40 --bytes 4 --operations 4 --reuse 2",
       "--reuse beside --bytes and --operations given; accepted: one of"},
      {"roofline --gpu a40 --bytes 4", "--bytes: given without --operations; accepted: both"},
      {"roofline --gpu a40 --operations 4", "--operations: given without --bytes"},
      {"roofline --gpu a40 --bytes 0 --operations 4", "--bytes: '0' given"},
      {"roofline --gpu a41 --reuse 2", "did you mean 'a40'?"},
      {"roofline --reuse 2 --peak 1 --bandwidth 3parsecs", "as in 204.8GB/s"},
      {"roofline --reuse 0 --gpu a40", "--reuse: '0' given; accepted: a number above 0"},
      {"waves --grid 0 --blocks-per-sm 2", "--grid: '0' given"},
      {"waves --grid 9 --blocks-per-sm 2 --gpu h101", "did you mean 'h100'?"},
      {"waves --grid 9 --blocks-per-sm 2 --gpu h100 --sms 4", "--sms: given with --gpu h100"},
      {"littles-law --latency 5parsecs --bandwidth 1e9", "as in 500ns"},
      {"littles-law --latency 0 --bandwidth 1e9", "--latency: '0' given; accepted: a time above 0"},
      {"burst --threads 2e6",
       "--threads: '2e6' given; accepted: a whole number from 1 to 1,048,576"},
      {"pcie --generation 7", "--generation: '7' given; accepted: a whole number from 1 to 6"},
      {"mixture", "part: 'nothing' given"},
      {"mixture 50%=1ns 40%=2ns", "part: '90 %' given; accepted: shares and times that add up"},
      {"mixture 50%=1ns 50%=2ns --target 5ns", "a mean between"},
      {"mixture 100%=1ns --target 5ns", "only with two parts"},
      {"mixture 100%=1ns --target 1GFLOP/s", "a rate only with --plus"},
      {"work kogge --n 4", "algorithm: 'kogge' given"},
      {"work kogge-stone --n 4 --coarsening 2",
       "--coarsening: given with kogge-stone; accepted "
       "with: tree"},
      {"conv-shape 3x4 --out 2 --k 3", "input: '3x4' given"},
      {"conv-shape 1x1x4x4 --out 2 --k 5",
       "--kernel: a window of 5 elements given; accepted: at "
       "most 4"},
      {"conv-shape 1x4x9x9 --out 2 --k 3 --groups 3", "--groups: 3 given"},
      {"divergence --paths 1ms,soon", "--paths: 'soon' given"},
      {"occupancy --sm blocks=16", "warps= or threads="},
      {"occupancy --sm warp=16", "--sm: 'warp=16' given; accepted: warps="},
      {"occupancy --sm threads=100", "whole warps of 32"},
      {"occupancy --sm warps=0", "--sm warps: '0' given"},
      {"occupancy --sm warps=8 --threads 512", "a block of this SM has at most 256"},
      {"occupancy --sm warps=8 --compute-capability 9.0", "accepted: one of the two"},
      {"occupancy --gpu h100 --compute-capability 9.0", "accepted: one of the two"},
      {"occupancy --gpu h100 --sm warps=8", "accepted: one of the two"},
      {"occupancy --gpu h100,a41", "--gpu: 'a41' given (did you mean 'a40'?); accepted: h200"},
      {"occupancy --gpu h100,t4 --threads 2048", "2048 given; a block of compute capability 9.0"},
      {"occupancy --registers 3 --registers-per-block 4K", "accepted: one of the two"},
      {"occupancy --registers-per-block 0", "--registers-per-block: '0' given"},
      {"work tree --n 1,2,x", "--n: 'x' given"},
      {"work tree --n 1,,2", "--n: '' given"},
  };
  for (const auto& [line, says] : cases) {
    const Outcome outcome = run_line(line);
    EXPECT_EQ(outcome.code, 2) << line << outcome.out;
    EXPECT_EQ(outcome.out, "") << line;
    EXPECT_NE(outcome.err.find(says), std::string::npos) << line << ": " << outcome.err;
  }
}

TEST(Calculators, ATableSaysWhoseFormulaALineIs) {
  const std::string words = page_of("work kogge-stone,tree --n 16");
  EXPECT_NE(words.find("\nadditions                kogge-stone: n x log2 n - (n - 1)\n"),
            std::string::npos)
      << words;
  EXPECT_NE(words.find("\nadditions                tree: n - 1\n"), std::string::npos) << words;
  EXPECT_NE(words.find("\nsequential               n - 1\n"), std::string::npos) << words;
  const std::string numbers = page_of("work brent-kung --n 16,1000,2048");
  EXPECT_NE(numbers.find("additions                n = 16 and 2,048: 2 x (n - 1) - log2 n"),
            std::string::npos)
      << numbers;
}

TEST(Calculators, CountsHavePrefixesToo) {
  EXPECT_EQ(figure("work tree --n 1M", "additions"), 1e6 - 1);
  EXPECT_EQ(figure("work tree --n 1Mi", "additions"), 1048576 - 1);
  EXPECT_EQ(figure("work tree --n 2k", "additions"), 1999);
  const Outcome wrong = run_line("work tree --n 1MB");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("1M (10^6) or 1Mi (2^20)"), std::string::npos) << wrong.err;
}

TEST(Calculators, LargeNumbersOfBytesAreReadable) {
  using workbench::Unit;
  EXPECT_EQ(workbench::format_quantity(6912, Unit::bytes), "6,912 bytes");
  EXPECT_EQ(workbench::format_quantity(10377600, Unit::bytes), "10,377,600 bytes");
  EXPECT_EQ(workbench::format_quantity(1536.0 * 1048576, Unit::bytes), "1,536 MiB");
  EXPECT_EQ(workbench::format_quantity(1024.0 * 1054689, Unit::bytes), "1.006 GiB");
  EXPECT_EQ(workbench::format_quantity(1e12, Unit::bytes), "931.3 GiB");
}

TEST(Calculators, PcieAndAmdahlPrintAsJsonWhatTheirPagesShow) {
  const auto nvlink = json_of("pcie").at("nvlink");
  ASSERT_EQ(nvlink.size(), 5u);
  EXPECT_EQ(nvlink.at(3).at("gpu"), "H100");
  EXPECT_EQ(nvlink.at(3).at("bytes_per_second"), 450000000000);
  EXPECT_NEAR(json_of("amdahl 90% 1000").at("rows").at(0).at("of_limit").get<double>(), 0.9911,
              1e-4);
  EXPECT_TRUE(json_of("amdahl 1 8").at("rows").at(0).at("of_limit").is_null());
}

TEST(Calculators, ShellsCompleteThem) {
  EXPECT_EQ(workbench::complete({"reuse", "st"}), std::vector<std::string>{"stencil"});
  EXPECT_EQ(workbench::complete({"littl"}), std::vector<std::string>{"littles-law"});
  EXPECT_EQ(workbench::complete({"work", ""}),
            (std::vector<std::string>{"kogge-stone", "brent-kung", "tree"}));
  EXPECT_EQ(workbench::complete({"roofline", "--gpu", "h2"}), std::vector<std::string>{"h200"});
}

TEST(Calculators, TooManyLinesAreRefused) {
  std::string list = "1";
  for (int i = 2; i < 40; ++i) list += "," + std::to_string(i);
  const Outcome outcome = run_rung({"conv-shape", "1x1x64x64", "--out", list, "--k", list});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("more than 1000 lines"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace rung::test
