// SPDX-License-Identifier: Apache-2.0
// Versions that `rung bench` does not time, and the reason that it prints: peers that do not
// support a problem, unknown ceilings, more threads than cores, and an interrupted run.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "fake_operator.hpp"
#include "rung/workbench/bench.hpp"
#include "rung/workbench/command.hpp"
#include "rung/workbench/interrupt.hpp"
#include "rung/workbench/progress.hpp"
#include "rung/workbench/table.hpp"

namespace rung::test {
namespace {

// `columns` supports a single column only; peer_absent needs a library that does not exist.
TEST(BenchGaps, SaysWhyWhatWasNamedIsNotTimed) {
  const KnownMachine machine;
  const std::vector<std::string> words{
      "bench",   "fake", "f32 4x16", "--backend", "cpu", "--rungs", "right,columns,peer_absent",
      "--pairs", "1"};
  const Outcome text = run_rung(words);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("\ncolumns: not timed: takes a single column\n"), std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("\npeer_absent: not timed: libfake is not installed\n"),
            std::string::npos)
      << text.out;
  std::vector<std::string> as_json = words;
  as_json.emplace_back("--json");
  const auto all = nlohmann::json::parse(run_rung(as_json).out);
  EXPECT_EQ(all.at("rows").size(), 1u);
  ASSERT_EQ(all.at("not_timed").size(), 2u);
  EXPECT_EQ(all.at("not_timed").at(0).at("rung"), "columns");
  EXPECT_EQ(all.at("not_timed").at(0).at("why"), "takes a single column");
  EXPECT_EQ(all.at("not_timed").at(1).at("rung"), "peer_absent");
}

TEST(BenchGaps, VersionsThatShareAReasonShareALine) {
  workbench::BenchTable table;
  table.title = "gemm";
  for (const char* rung : {"openblas", "onednn", "blis"}) {
    workbench::BenchRow& row = table.not_timed.emplace_back();
    row.rung = rung;
    row.note = std::string(rung) == "onednn" ? "no rung takes it:\n  a: no i8\n  b: no i8"
                                             : "multiplies f32 and f64";
  }
  const std::string text = workbench::bench_text({table});
  EXPECT_NE(text.find("\nopenblas, blis: not timed: multiplies f32 and f64\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\nonednn: not timed: no rung takes it: a: no i8; b: no i8\n"),
            std::string::npos)
      << text;
}

TEST(BenchGaps, SaysWhyThereIsNoCeiling) {
  const KnownMachine machine;
  const std::string problem = "i8 16x16x16";
  const Outcome text =
      run_rung({"bench", "gemm", problem, "--backend", "cpu", "--rungs", "best", "--pairs", "1"});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("no ceiling: the rate of multiply-adds in i8 is not measured"),
            std::string::npos)
      << text.out;
}

TEST(BenchGaps, MoreThreadsThanCoresAreRemarkedOn) {
  const KnownMachine machine;
  const Outcome many = run_rung({"bench", "fake", "--backend", "cpu", "--rungs", "right", "--pairs",
                                 "1", "--threads", "4096"});
  EXPECT_NE(many.out.find("4096 threads were requested on "), std::string::npos) << many.out;
  const Outcome one = run_rung(
      {"bench", "fake", "--backend", "cpu", "--rungs", "right", "--pairs", "1", "--threads", "1"});
  EXPECT_EQ(one.out.find("were requested on "), std::string::npos) << one.out;
}

TEST(BenchGaps, ADeviceIsChosenOnABackendThatHasSeveral) {
  const Outcome cpu = run_rung({"bench", "fake", "--backend", "cpu", "--device", "1"});
  EXPECT_EQ(cpu.code, 2) << cpu.out;
  EXPECT_NE(cpu.err.find("--device: 1 given with cpu"), std::string::npos) << cpu.err;
  const Outcome none = run_rung({"check", "fake", "--device", "1"});
  EXPECT_EQ(none.code, 2) << none.out;
  EXPECT_NE(none.err.find("--backend"), std::string::npos) << none.err;
  if (!available(Backend::opencl)) GTEST_SKIP() << "no OpenCL";
  const Outcome last = run_rung({"check", "gemm/naive_coalesced", "--backend", "opencl",
                                 "--problem", "f32 8x8x8", "--device", "1023"});
  EXPECT_NE(last.code, 0) << last.out;
  const KnownMachine machine;
  const Outcome named = run_rung({"bench", "gemm", "f32 8x8x8", "--backend", "opencl", "--rungs",
                                  "naive_coalesced", "--pairs", "1", "--json"});
  ASSERT_EQ(named.code, 0) << named.err;
  const auto rows = nlohmann::json::parse(named.out).at("rows");
  EXPECT_EQ(rows.at(0).at("device"), Context::opencl().info().name);
  const Outcome check = run_rung({"check", "gemm/naive_coalesced", "--backend", "opencl",
                                  "--problem", "f32 8x8x8", "--variant", "plain"});
  EXPECT_EQ(check.out.find("opencl: " + Context::opencl().info().name), 0u) << check.out;
}

/// File into which the child of the next test writes its times.
std::string kept_path;

void exit_once_kept(int) {
  if (::access(kept_path.c_str(), F_OK) == 0) std::_Exit(7);
  ::alarm(1);
}

/// Runs a bench whose second problem has one version only, which sleeps for half a second, 100
/// times.
void bench_until_kept() {
  std::signal(SIGALRM, exit_once_kept);
  ::alarm(1);
  const std::vector<const char*> words{
      "rung",    "bench",         "fake",    "f32 4x16", "f32 3x41", "--backend",      "cpu",
      "--rungs", "slow_at_times", "--pairs", "100",      "--output", kept_path.c_str()};
  workbench::run_program(static_cast<int>(words.size()), words.data());
}

// Completed results are in the file at once: they survive a second Ctrl-C or a kill.
TEST(BenchGaps, EachProblemIsKeptBeforeTheNextIsTimed) {
  const KnownMachine machine;
  kept_path = machine.folder + "/kept.json";
  EXPECT_EXIT(bench_until_kept(), testing::ExitedWithCode(7), "");
  std::stringstream text;
  text << std::ifstream(kept_path).rdbuf();
  const auto kept = nlohmann::json::parse(text.str());
  EXPECT_EQ(kept.at("complete"), false);
  ASSERT_EQ(kept.at("rows").size(), 1u);
  EXPECT_EQ(kept.at("rows").at(0).at("problem"), "f32 4x16");
}

// LLVM, which OpenCL drivers contain, installs such a handler: it ended the program without a
// report.
TEST(Interrupt, ALibrarysHandlerDoesNotTakeCtrlC) {
  EXPECT_EXIT(
      {
        std::signal(SIGINT, [](int) { std::_Exit(9); });
        const workbench::InterruptGuard guard;
        std::raise(SIGINT);
        std::_Exit(workbench::InterruptGuard::interrupted() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "stopping after the call that runs");
}

TEST(Progress, APipeHearsOfWhatTakesLong) {
  const double usual = workbench::Progress::line_seconds;
  testing::internal::CaptureStderr();
  {
    workbench::Progress progress(4);
    progress.step("quick");
    workbench::Progress::line_seconds = 0;
    progress.mention("gemm/naive opencl f32 8x8x8");
  }
  workbench::Progress::line_seconds = usual;
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "25 % after 0 s: gemm/naive opencl f32 8x8x8\n");
}

}  // namespace
}  // namespace rung::test
