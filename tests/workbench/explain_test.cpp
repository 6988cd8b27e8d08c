// SPDX-License-Identifier: Apache-2.0
// rung explain: input, counts, comparisons, and invalid input.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "explained.hpp"
#include "rung/device/kernel_usage.hpp"
#include "rung/workbench/annotate.hpp"
#include "rung/workbench/kernel_name.hpp"
#include "rung/workbench/quantity.hpp"
#include "rung/workbench/rung_source.hpp"
#include "rung/workbench/table.hpp"

namespace rung::test {
namespace {

using nlohmann::json;

TEST(RungHeader, FieldsGoOnOverLines) {
  const workbench::RungHeader header = workbench::parse_rung_header(
      "// SPDX-License-Identifier: Apache-2.0\n// gemm / some tile\n//\n"
      "// Idea     one thread,\n//          one element.\n// Tried    -\n#include <x>\n"
      "// Limits   are not told here\n");
  EXPECT_EQ(header.title, "gemm / some tile");
  ASSERT_EQ(header.fields.size(), 2u);
  EXPECT_EQ(header.fields[0].name, "Idea");
  EXPECT_EQ(header.fields[0].text, "one thread, one element.");
  EXPECT_EQ(header.fields[1].text, "-");
}

TEST(Quantity, RatesHavePrefixesAndUnits) {
  EXPECT_DOUBLE_EQ(workbench::parse_rate("x", "4.8TB/s", "B/s"), 4.8e12);
  EXPECT_DOUBLE_EQ(workbench::parse_rate("x", "696 GB/s", "B/s"), 696e9);
  EXPECT_DOUBLE_EQ(workbench::parse_rate("x", "3e9", "B/s"), 3e9);
  for (const char* wrong :
       {"", "B/s", "4 TFLOP/s", "-1TB/s", "0", "1TB/s!", "inf", "nan", "1e300T", "1e-300"}) {
    EXPECT_THROW(workbench::parse_rate("x", wrong, "B/s"), Error) << wrong;
  }
}

TEST(Explain, ACpuRungIsHeldAgainstItsDeclaredCost) {
  const json result =
      explained({"fake/wrong", "f32 4x16", "--bandwidth", "1GB/s", "--peak", "1TFLOP/s"});
  const json& rung = result.at("rungs").at(0);
  EXPECT_EQ(rung.at("before"), "right");
  EXPECT_FALSE(rung.at("counted"));
  EXPECT_TRUE(rung.at("counters").empty());
  const json& point = rung.at("roofline").at(0);
  EXPECT_EQ(point.at("bytes_are"), "compulsory");
  EXPECT_DOUBLE_EQ(point.at("seconds_at_best").get<double>(),
                   point.at("bytes").get<double>() / 1e9);
}

TEST(Explain, ThisCpusCeilingsAreTheMeasuredOnes) {
  const KnownMachine machine;
  const json result = explained({"fake/right", "f32 4x16"});
  EXPECT_DOUBLE_EQ(result.at("chip").at("bytes_per_second").get<double>(), 1e11);
}

TEST(Explain, WhatAllRungsOfACpuHaveInCommonIsSaidOnce) {
  const KnownMachine machine;
  const Outcome outcome = run_rung({"explain", "gemm", "--backend", "cpu"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto times = [&](std::string_view words) {
    int count = 0;
    for (std::size_t at = 0; (at = outcome.out.find(words, at)) != std::string::npos; ++at) ++count;
    return count;
  };
  EXPECT_EQ(times("at best"), 1) << outcome.out;
  EXPECT_EQ(times("no such counters"), 1) << outcome.out;
  EXPECT_GT(times("against "), 8) << "what each rung changes\n" << outcome.out;
}

TEST(Explain, TextOfRungAndLadderFitsThePage) {
  ::setenv("COLUMNS", std::to_string(workbench::page_width).c_str(), 1);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"explain", "gemm/shared_tile", "f32 32x32x32", "--annotate"},
        std::vector<std::string>{"explain", "gemm/naive_ijk", "f32 8x8x8", "--gpu", "a40"},
        std::vector<std::string>{"explain", "gemm", "f32 32x32x32"}}) {
    const Outcome outcome = run_rung(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    expect_fits_the_page(outcome.out);
    const bool is_ladder = words[1].find('/') == std::string::npos;
#if defined(__SANITIZE_ADDRESS__)  // kernels have no hooks: no rung of the ladder is counted
    const char* const expected = is_ladder ? "not counted: this program was built" : "Idea";
#else
    const char* const expected = is_ladder ? "naive_coalesced" : "Idea";
#endif
    EXPECT_NE(outcome.out.find(expected), std::string::npos) << outcome.out;
  }
}

#if !defined(__SANITIZE_ADDRESS__)  // under it kernels have no hooks

TEST(Explain, CountsWhatTheFirstStepsOfGemmChange) {
  const json result = explained({"gemm", "f32 64x64x64", "--gpu", "a40"});
  const auto rung = [&](const char* name) {
    const json& all = result.at("rungs");
    return *std::find_if(all.begin(), all.end(),
                         [&](const json& r) { return r.at("rung") == name; });
  };
  // The lanes of a warp are in 32 rows of C, then in one.
  EXPECT_EQ(counter(rung("naive_uncoalesced"), "global_store_sectors_per_request"), 32);
  EXPECT_EQ(counter(rung("naive_coalesced"), "global_store_sectors_per_request"), 4);
  EXPECT_EQ(counter(rung("naive_coalesced"), "barriers"), 0);
  // 4 blocks of 32 warps, 2 steps of k, 2 barriers per step.
  const json tiled = rung("shared_tile");
  EXPECT_EQ(counter(tiled, "barriers"), 4 * 32 * 2 * 2);
  EXPECT_EQ(counter(tiled, "shared_reuse"), 32);
  EXPECT_EQ(counter(tiled, "shared_load_conflicts"), 0);
  EXPECT_GT(counter(rung("shared_tile_transposed"), "shared_load_conflicts"), 0);
  // 2 k per thread, and the scaling of C; both matrices are read from memory once.
  EXPECT_EQ(counter(tiled, "thread_operations"), 2 * 64 * 64 * 64 + 64 * 64);
  EXPECT_EQ(counter(tiled, "dram_read_bytes"), 2 * 64 * 64 * 4);
  EXPECT_EQ(counter(tiled, "dram_written_bytes"), 64 * 64 * 4);
  EXPECT_EQ(tiled.at("before"), "naive_coalesced");
  EXPECT_EQ(tiled.at("header").at("Idea").get<std::string>().substr(0, 7), "a block");
  // Row 21 of the quiz, from the counters: only its loads, on a chip of 696 GB/s.
  const double loaded = 32 * counter(tiled, "global_load_sectors");
  const double operations = tiled.at("declared").at("operations").get<double>();
  EXPECT_DOUBLE_EQ(operations / loaded * 696, 5568);
  EXPECT_TRUE(tiled.at("roofline").at(1).at("bound_by_memory"));
}

TEST(Explain, ThreadsBeyondTheEdgesCostOperations) {
  // Row 3 of the quiz: 12 blocks of 1024 threads process five tiles of 32 steps.
  const json result = explained({"gemm/shared_tile", "f32 100x92x141"});
  const json& rung = result.at("rungs").at(0);
  EXPECT_EQ(rung.at("declared").at("operations"), 2594400);
  EXPECT_EQ(rung.at("counters").at("thread_operations"), 3932160 + 100 * 92);
  double most = 0;
  for (const json& line : rung.at("kernels").at(0).at("lines")) {
    most = std::max(most, line.at("operations").at("total").get<double>());
  }
  EXPECT_EQ(most, 3932160);
}

TEST(Explain, DefaultProblemsShowWhatEachRungOfGemmIsFor) {
  const json result = explained({"gemm"});
  EXPECT_EQ(result.at("chip").at("of"), "multiply-adds in f32");
  for (const json& rung : result.at("rungs")) {
    EXPECT_TRUE(rung.at("counted")) << rung.at("rung") << ": " << rung.at("why_not");
  }
  for (const char* name : {"vectorized", "unrolled", "prefetch", "async_copy", "warp_tile"}) {
    EXPECT_EQ(counter(rung_of(result, name), "divergent_warps"), 0) << name << ": half a tile";
  }
  for (const char* name : {"vectorized", "unrolled", "prefetch"}) {
    EXPECT_EQ(counter(rung_of(result, name), "global_load_sectors_per_request"), 16) << name;
  }
  EXPECT_EQ(counter(rung_of(result, "split_k"), "launches"), 2) << "nothing is split";
  for (const json& rung : result.at("rungs")) {
    const auto problem = rung.at("problem").get<std::string>();
    const auto of = rung.at("chip").at("of").get<std::string>();
    EXPECT_EQ(problem.find("tf32") != std::string::npos, of.find("tf32") != std::string::npos)
        << rung.at("rung") << " on " << problem << " is held against " << of;
  }
}

TEST(Explain, CountsInTheLadderAreGroupedByThousands) {
  ::setenv("COLUMNS", "130", 1);
  const Outcome outcome = run_rung({"explain", "gemm", "f32 256x256x64"});
  ::setenv("COLUMNS", std::to_string(workbench::page_width).c_str(), 1);
  EXPECT_NE(outcome.out.find(" 4,190,208 "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find(" 8,192 "), std::string::npos) << outcome.out;
}

void expect_no_line_longer(const std::string& text, std::size_t width) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    EXPECT_LE(end - begin, width) << text.substr(begin, end - begin);
    begin = end + 1;
  }
}

TEST(Explain, OneNumberGivenByHandLeavesTheOtherToTheDefaultGpu) {
  const Outcome outcome =
      run_rung({"explain", "gemm/shared_tile", "f32 8x8x8", "--bandwidth", "1TB/s"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("H200 (with numbers given by hand)"), std::string::npos)
      << outcome.out;
}

TEST(Explain, NarrowTerminalsGetFewerColumnsAndSayWhich) {
  ::setenv("COLUMNS", "60", 1);
  const Outcome narrow = run_rung({"explain", "gemm", "f32 64x64x64"});
  const Outcome one = run_rung({"explain", "gemm/shared_tile", "f32 64x64x64"});
  ::setenv("COLUMNS", "44", 1);
  const Outcome narrower = run_rung({"explain", "gemm", "f32 64x64x64"});
  ::setenv("COLUMNS", std::to_string(workbench::page_width).c_str(), 1);
  EXPECT_NE(narrow.out.find("\nNo room in some table for: declared, counted, stores"),
            std::string::npos)
      << narrow.out;
  expect_no_line_longer(narrow.out, 60);
  EXPECT_NE(narrower.out.find(" bound  "), std::string::npos) << "the column of all columns";
  EXPECT_EQ(narrow.out.find("lanes: active"), std::string::npos) << "explains what is not there";
  EXPECT_NE(narrow.out.find("conflicts: bank"), std::string::npos) << narrow.out;
  expect_no_line_longer(one.out, 60);
  EXPECT_NE(one.out.find("shared_tile  change"), std::string::npos) << one.out;
}

TEST(Explain, RungsOfALadderRunOnProblemsThatTheyTake) {
  const json result = explained({"scan", "--gpu", "a40"});
  EXPECT_EQ(result.at("problem"), "f32 20x1024");
  std::size_t on_the_first = 0;
  for (const json& rung : result.at("rungs")) {
    EXPECT_TRUE(rung.at("counted")) << rung.at("rung") << ": " << rung.at("why_not");
    on_the_first += rung.at("problem") == result.at("problem") ? 1 : 0;
  }
  EXPECT_EQ(on_the_first, 11u);  // from kogge_stone to ring
  const Outcome text = run_rung({"explain", "scan"});
  EXPECT_NE(text.out.find("scan f32 20x1024: 163,840 bytes must move\n"), std::string::npos);
  EXPECT_NE(text.out.find("scan f32 20000: 160,000 bytes must move; of rungs that do not take"),
            std::string::npos)
      << text.out;
}

TEST(Explain, ColumnsOfDifferentProblemsSayWhich) {
  const Outcome outcome = run_rung({"explain", "transpose/pieces"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::size_t row = outcome.out.find("\nproblem ");
  ASSERT_NE(row, std::string::npos) << outcome.out;
  const std::string problems = outcome.out.substr(row, outcome.out.find('\n', row + 1) - row);
  EXPECT_NE(problems.find("f32 128x128"), std::string::npos) << problems;
  EXPECT_NE(problems.find("order=0213"), std::string::npos) << problems;
  EXPECT_EQ(outcome.out.find("change"), std::string::npos) << outcome.out;
}

TEST(Explain, RegistersAreThoseOfTheBuild) {
  const Outcome outcome = run_rung({"explain", "transpose/padded"});
  const json rung = explained({"transpose/padded"}).at("rungs").at(0);
  const json registers = rung.at("kernels").at(0).at("registers");
  const bool told = outcome.out.find("registers per thread, ") != std::string::npos;
  EXPECT_EQ(told, !kernel_usage().empty()) << outcome.out;
  EXPECT_EQ(outcome.out.find("without CUDA in the build") != std::string::npos, !told);
  EXPECT_EQ(registers.is_null(), !told) << registers;
  if (told) {
    EXPECT_GT(registers.at("per_thread"), 10);
  }
}

TEST(KernelName, IsWithoutScopesAndParameters) {
  EXPECT_EQ(workbench::short_name("kernel"), "kernel");
  EXPECT_EQ(workbench::short_name("void a::(anonymous namespace)::tile<a::b_2::F<float>, (a::K)1>"
                                  "(a::Rows<2>, float*)"),
            "tile<F<float>, (K)1>");
}

TEST(Explain, BulkAndTensorCopiesAreBytesToo) {
  const json rung = explained({"transpose/tma", "f32 128x128"}).at("rungs").at(0);
  EXPECT_EQ(counter(rung, "bulk_load_bytes"), 128 * 128 * 4);
  EXPECT_EQ(counter(rung, "global_bytes"), rung.at("declared").at("bytes").get<double>());
}

TEST(Explain, SaysWhyARungDoesNotTakeAProblem) {
  for (const char* json : {"--json=yes", "--json=no"}) {
    const Outcome outcome = run_rung({"explain", "gemm/vectorized", "f32 5x7x3", json});
    EXPECT_EQ(outcome.code, 3) << outcome.out;
    EXPECT_NE(outcome.err.find("16 bytes"), std::string::npos) << outcome.err;
  }
  const json rung = rung_of(explained({"gemm", "f32 5x7x3"}), "vectorized");
  EXPECT_FALSE(rung.at("counted"));
  EXPECT_NE(rung.at("why_not").get<std::string>().find("16 bytes"), std::string::npos) << rung;
}

#endif

TEST(Explain, WrongInputSaysWhatIsAccepted) {
  const struct {
    std::vector<std::string> words;
    int code;
    const char* says;
  } cases[] = {
      {{}, 2, "op is required"},
      {{"nothing"}, 2, "gemm"},
      {{"gemm/nothing"}, 2, "shared_tile"},
      {{"gemm/best"}, 2, "name a rung"},
      {{"gemm/naive_ijk", "--backend", "simt"}, 2, "shared_tile"},
      {{"gemm", "--backend", "gpu"}, 2, "simt"},
      {{"gemm/shared_tile", "f32 8x8"}, 2, "8x8"},
      {{"gemm/bytes", "--backend", "cpu", "f32 8x8x8"}, 3, "f32 8x8x8 does not take this problem"},
      {{"gemm/shared_tile", "f32 8x8x8", "--at", "f32 64x64"}, 2, "64x64"},
      {{"gemm/shared_tile", "f32 8x8x8", "--at", "f64 64x64x64"}, 2, "its extents"},
      {{"gemm", "f32 8x8x8", "--at", "f32 64x64x64,ta"}, 2, "its extents"},
      {{"gemm/naive_ijk", "f32 8x8x8", "--at", "f32 64x64x64"}, 2, "on simt"},
      {{"gemm/shared_tile", "f32 8x8x8", "f32 9x9x9"}, 2, "one"},
      {{"gemm/shared_tile", "f32 4096x4096x4096"}, 3, "minutes"},
      {{"gemm/shared_tile", "f32 8x8x8", "--gpu", "voodoo"}, 2, "rtx4090"},
      {{"gemm/shared_tile", "f32 8x8x8", "--bandwidth", "fast"}, 2, "TB/s"},
      {{"gemm/shared_tile", "f32 8x8x8", "--bandwidth", "fast", "--peak", "1"}, 2, "TB/s"},
      {{"gemm/shared_tile", "f32 8x8x8", "--gpu", "a40", "--peak", "0"}, 2, "TFLOP/s"},
      {{"gemm", "f32 8x8x8", "--annotate"}, 2, "one rung"},
      {{"gemm/shared_tile", "f32 8x8x8", "--annotate", "--json"}, 2, "no --json"},
      {{"gemm/shared_tile", "--fast"}, 2, "--fast"},
  };
  for (const auto& one : cases) {
    std::vector<std::string> words = {"explain"};
    words.insert(words.end(), one.words.begin(), one.words.end());
    const Outcome outcome = run_rung(words);
    const std::string said = one.words.empty() ? "" : one.words.back();
    EXPECT_EQ(outcome.code, one.code) << said << outcome.out;
    EXPECT_NE(outcome.err.find(one.says), std::string::npos) << said << ": " << outcome.err;
  }
}

// ccache with base_dir passes the compiler paths relative to the build's folder.
TEST(Annotate, FilesNamedFromTheBuildFolderOnAreFound) {
  const char* const file = "rung/core/version.hpp";
  ASSERT_TRUE(workbench::find_source(file).has_value());
  for (const char* folder : {"../../", "build/dev/../../", "../../../home/somebody/src/"}) {
    EXPECT_EQ(workbench::find_source(std::string(folder) + file), workbench::find_source(file))
        << folder;
  }
  EXPECT_FALSE(workbench::find_source("../../rung/core/none.hpp").has_value());
}

TEST(Annotate, FilesThatAreNotHereGiveTheirLines) {
  const json kernels = json::parse(R"([{"name": "kernel",
      "lines": [{"file": "no/such.cu", "line": 7,
      "global_load_requests": 2000000, "global_load_sectors": 8000000, "global_store_requests": 0,
      "global_store_sectors": 0, "atomic_requests": 0, "atomic_sectors": 0, "shared_requests": 0,
      "shared_wavefronts": 0, "shared_atomic_requests": 0, "shared_atomic_wavefronts": 0,
      "constant_requests": 0, "texture_requests": 0, "local_requests": 0, "barriers": 0,
      "branches": 0, "divergent_branches": 0, "active_lanes": 31.5,
      "exact": false}]}])");
  const std::string text = workbench::annotate(kernels);
  EXPECT_NE(text.find("no/such.cu"), std::string::npos) << text;
  EXPECT_NE(text.find("   2M    4            31.5~               7"), std::string::npos) << text;
  EXPECT_EQ(workbench::annotate(json::array()), "nothing was counted in any line\n");
}

}  // namespace
}  // namespace rung::test
