// SPDX-License-Identifier: Apache-2.0
// rung explain: roofs, bounds, and which of them a backend has.
#include <gtest/gtest.h>

#include <sstream>

#include "explained.hpp"
#include "rung/device/kernel_usage.hpp"
#include "rung/workbench/table.hpp"

namespace rung::test {
namespace {

using nlohmann::json;

#if !defined(__SANITIZE_ADDRESS__)  // under it kernels have no hooks

TEST(Explain, RequestsOfEachKindAreCountedWhereTheMeanHidesThem) {
  const Outcome outcome = run_rung({"explain", "gemm/naive_uncoalesced", "f32 64x64x64"});
  for (const char* row :
       {"\n  sectors per request ", "\n  requests of 1 ", "\n  requests of 32 "}) {
    EXPECT_NE(outcome.out.find(row), std::string::npos) << row << outcome.out;
  }
  const Outcome tiled = run_rung({"explain", "gemm/shared_tile_transposed", "f32 64x64x64"});
  EXPECT_NE(tiled.out.find("\n  wavefronts per request "), std::string::npos) << tiled.out;
  EXPECT_NE(tiled.out.find("\n  requests of 32 "), std::string::npos) << tiled.out;
}

TEST(Explain, LaddersSayHowManyTimesFasterThanTheRungBefore) {
  const json result = explained({"gemm", "f32 64x64x64"});
  const json naive = rung_of(result, "naive_coalesced"), tile = rung_of(result, "shared_tile");
  const auto seconds = [](const json& rung) {
    return rung.at("bound").at("seconds").get<double>();
  };
  EXPECT_DOUBLE_EQ(tile.at("times_the_rung_before").get<double>(), seconds(naive) / seconds(tile));
  const Outcome text = run_rung({"explain", "gemm", "f32 64x64x64"});
  EXPECT_NE(text.out.find(" x before "), std::string::npos) << text.out;
}

TEST(Explain, BoundsOfALargerProblemAreExtrapolated) {
  const auto bound = [](const char* counted, const char* at) {
    return explained({"gemm/shared_tile", counted, "--at", at}).at("rungs").at(0).at("bound");
  };
  // The work is the same whichever problem it is extrapolated from.
  const json small = bound("f32 64x64x64", "f32 256x128x96");
  const json large = bound("f32 128x64x32", "f32 256x128x96");
  EXPECT_EQ(small.at("problem"), "f32 256x128x96");
  const json there = explained({"gemm/shared_tile", "f32 256x128x96", "--at", "f32 256x128x96"})
                         .at("rungs")
                         .at(0)
                         .at("bound");
  const json &work = there.at("kernels").at(0), &of_small = small.at("kernels").at(0),
             &of_large = large.at("kernels").at(0);
  for (const char* name : {"blocks", "instructions", "shared_wavefronts", "l1_lines", "barriers",
                           "l2_store_sectors"}) {
    EXPECT_DOUBLE_EQ(of_small.at(name).get<double>(), work.at(name).get<double>()) << name;
    EXPECT_DOUBLE_EQ(of_large.at(name).get<double>(), work.at(name).get<double>()) << name;
  }
  // Two blocks by the SM's 2048 threads; one by their registers, which a build with CUDA knows.
  const double resident = kernel_usage().empty() ? 2 : 1;
  EXPECT_DOUBLE_EQ(small.at("waves").get<double>(), 8 * 4 / (132 * resident));
  const Outcome text =
      run_rung({"explain", "gemm/shared_tile", "f32 64x64x64", "--at", "f32 4096x4096x4096"});
  EXPECT_NE(text.out.find("extrapolated to f32 4096x4096x4096"), std::string::npos) << text.out;
}

TEST(Explain, SharedMemoryAndL1AreRoofs) {
  const json result = explained({"gemm", "f32 256x256x64", "--gpu", "h200"});
  const auto seconds = [&](const char* name) {
    return roof_of(rung_of(result, name), "distinct").at("seconds_at_best").get<double>();
  };
  const auto bound = [&](const char* name) {
    return roof_of(rung_of(result, name), "distinct").at("bound_by").get<std::string>();
  };
  EXPECT_EQ(bound("naive_coalesced"), "L1");
  EXPECT_EQ(bound("shared_tile"), "shared memory");
  // 33 cache lines per multiply-add of a warp against two wavefronts.
  EXPECT_NEAR(seconds("naive_uncoalesced") / seconds("naive_coalesced"), 16.5, 0.5);
  EXPECT_LT(seconds("shared_tile"), seconds("naive_coalesced"));
  // nvcc merges four conflicting loads into one, and four loads of the other tile into one.
  EXPECT_NEAR(seconds("shared_tile_transposed") / seconds("shared_tile"), 33.0 / 5, 0.3);
  EXPECT_LT(seconds("outer_product"), seconds("shared_tile") / 2);
  EXPECT_NEAR(seconds("register_tile_1d") / seconds("outer_product"), 1, 0.1);
  EXPECT_LT(seconds("register_tile_2d"), seconds("register_tile_1d"));
  EXPECT_LT(seconds("vectorized"), seconds("register_tile_2d"));
  EXPECT_EQ(bound("vectorized"), "issue");
  const Outcome text = run_rung({"explain", "gemm/shared_tile", "f32 256x256x64"});
  EXPECT_NE(text.out.find("  shared memory\n"), std::string::npos) << text.out;
}

TEST(Explain, TensorCoresAreHeldAgainstTheirRates) {
  const struct {
    const char *rung, *problem;
    double operations_per_second;
  } cases[] = {{"gemm/fp8_wgmma", "e4m3 64x128x128,tb", 2 * 989.5e12},
               {"gemm/int8_wgmma", "i8 64x128x128,tb", 2 * 989.5e12},
               {"gemm/naive_bytes", "i8 8x8x8", 67e12},  // not of tensor cores
               {"gemm/split_bf16", "f32 64x64x64,split", 989.5e12 / 6},
               {"gemm/mma_f64", "f64 64x64x16", 2 * 34e12},
               {"gemm/naive_coalesced", "f64 8x8x8", 34e12}};
  for (const auto& one : cases) {
    const json result = explained({one.rung, one.problem, "--gpu", "h200"});
    EXPECT_TRUE(result.at("rungs").at(0).at("counted")) << one.rung;
    EXPECT_NEAR(result.at("chip").at("operations_per_second").get<double>(),
                one.operations_per_second, 1e9)
        << one.rung;
  }
}

TEST(Explain, RoofsThatAreNotKnownOfAGpuAreNamed) {
  const char* const words = "are not known of this GPU";
  const Outcome known = run_rung({"explain", "transpose/padded", "f32 64x64"});
  EXPECT_NE(known.out.find("\nlatency "), std::string::npos) << known.out;
  EXPECT_EQ(known.out.find(words), std::string::npos) << known.out;
  const Outcome other = run_rung({"explain", "transpose/padded", "f32 64x64", "--gpu", "rtx4090"});
  EXPECT_EQ(other.out.find("\nlatency "), std::string::npos) << other.out;
  EXPECT_NE(other.out.find(words), std::string::npos) << other.out;
}

#endif

TEST(Explain, BackendsAreThoseThatThereAre) {
  const Outcome help = run_rung({"explain", "--help"});
  EXPECT_NE(help.out.find("cpu, cuda, simt, opencl"), std::string::npos) << help.out;
}

TEST(Explain, AnOpenClRungHasNoRoofButOneThatIsGiven) {
  const Outcome none =
      run_rung({"explain", "gemm/shared_tile", "f32 8x8x8", "--backend", "opencl"});
  if (none.code == 2) GTEST_SKIP() << "a build without OpenCL";
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_EQ(none.out.find("H200"), std::string::npos) << none.out;
  EXPECT_NE(none.out.find("No roof: the rates of the OpenCL device are not known"),
            std::string::npos)
      << none.out;
  const Outcome given = run_rung(
      {"explain", "gemm/shared_tile", "f32 8x8x8", "--backend", "opencl", "--gpu", "h100"});
  EXPECT_NE(given.out.find("On NVIDIA H100"), std::string::npos) << given.out;
  const Outcome one = run_rung(
      {"explain", "gemm/shared_tile", "f32 8x8x8", "--backend", "opencl", "--peak", "1TFLOP/s"});
  EXPECT_EQ(one.code, 2) << one.out;
  EXPECT_NE(one.err.find("accepted: both"), std::string::npos) << one.err;
}

TEST(Explain, ARungOfCudaThatDoesNotTakeTheProblemIsRefusedWithoutAGpu) {
  const Outcome outcome =
      run_rung({"explain", "gemm/naive_bytes", "f32 8x8x8", "--backend", "cuda"});
  EXPECT_NE(outcome.code, 0) << outcome.out;  // 2 in a build without CUDA
  EXPECT_EQ(outcome.out.find("at best"), std::string::npos) << outcome.out;
}

TEST(Explain, LoadsOfCpuRungsFollowFromTheirTiles) {
  const KnownMachine machine;
  ::setenv("COLUMNS", "120", 1);
  const Outcome ladder = run_rung({"explain", "gemm", "f32 1024x1024x1024", "--backend", "cpu"});
  ::setenv("COLUMNS", std::to_string(workbench::page_width).c_str(), 1);
  const auto figures = [&](const std::string& rung) {
    std::istringstream row(ladder.out.substr(ladder.out.find("\n" + rung + " ")));
    std::vector<std::string> words(4);
    for (std::string& word : words) row >> word;
    return std::vector<std::string>(words.begin() + 1, words.end());
  };
  using Figures = std::vector<std::string>;
  EXPECT_EQ(figures("naive_ijk"), (Figures{"2.00", "1.00", "1024"})) << ladder.out;
  // 1 / 8 + 1 / 4 loads per multiply-add; one pass over B per 4 rows.
  EXPECT_EQ(figures("register_tiled"), (Figures{"0.38", "1.00", "256"})) << ladder.out;
  EXPECT_EQ(figures("cache_tiled"), (Figures{"2.00", "4.00", "16.0"})) << ladder.out;
  EXPECT_EQ(figures("cache_and_register_tiled"), (Figures{"0.38", "16.0", "16.0"})) << ladder.out;
}

}  // namespace
}  // namespace rung::test
