// SPDX-License-Identifier: Apache-2.0
// rung list and rung check: their output, and that every kind of mistake is detected.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "fake_operator.hpp"
#include "rung/core/varying_bits.hpp"
#include "rung/workbench/check.hpp"

namespace rung::test {
namespace {

using nlohmann::json;

json parsed(const Outcome& outcome) { return json::parse(outcome.out); }

TEST(List, JsonHasTheDocumentedKeys) {
  const Outcome outcome = run_rung({"list", "fake", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json rungs = parsed(outcome);
  ASSERT_EQ(rungs.size(), 16u);
  for (const json& rung : rungs) {
    EXPECT_EQ(rung.at("op"), "fake");
    EXPECT_EQ(rung.at("summary"), "y = 2 x");
    EXPECT_TRUE(rung.at("header").is_object());
    EXPECT_TRUE(rung.at("rung").is_string());
    EXPECT_TRUE(rung.at("step").is_number_integer());
    EXPECT_EQ(rung.at("backend"), "cpu");
    EXPECT_TRUE(rung.at("peer").is_boolean());
    const std::string kind = rung.at("kind");
    EXPECT_EQ(kind == "peer", rung.at("peer"));
    EXPECT_EQ(kind == "step", rung.at("step") != 0);
    EXPECT_EQ(rung.at("file"), kind == "shape"  ? "rung/ops/fake/cpu/shapes/column.cpp"
                               : kind == "type" ? "rung/ops/fake/cpu/types/a_type.cpp"
                                                : "tests/workbench/fake_operator_test.cpp");
    EXPECT_EQ(rung.at("available"), rung.at("rung") != "peer_absent");
    EXPECT_EQ(rung.at("why_not"),
              rung.at("rung") == "peer_absent" ? "libfake is not installed" : "");
  }
  EXPECT_EQ(rungs.front().at("rung"), "right") << "the first step comes first";
  EXPECT_EQ(rungs.at(10).at("kind"), "step");
  EXPECT_EQ(rungs.at(11).at("kind"), "shape") << "kernels for shapes follow the steps";
  EXPECT_EQ(rungs.at(12).at("kind"), "type") << "kernels for types follow those for shapes";
  EXPECT_TRUE(rungs.back().at("peer")) << "peers come last";
}

TEST(List, TextNamesStepsPeersAndWhatIsMissing) {
  const Outcome outcome = run_rung({"list", "fake"});
  EXPECT_EQ(outcome.code, 0);
  for (const char* word : {"y = 2 x", "leaves_one_out", "Fake 1.0", "libfake is not installed"}) {
    EXPECT_NE(outcome.out.find(word), std::string::npos) << word;
  }
}

TEST(List, TextShowsWhatIsNoStep) {
  const Outcome outcome = run_rung({"list", "fake"});
  for (const char* line :
       {" shape  column ", " type  a_type ", " shapes/column.cpp", " types/a_type.cpp"}) {
    EXPECT_NE(outcome.out.find(line), std::string::npos) << line << outcome.out;
  }
}

TEST(List, OverviewFitsOneScreenWithOneLinePerOperator) {
  const auto at = [](const char* width) {
    setenv("COLUMNS", width, 1);
    Outcome listed = run_rung({"list"});
    unsetenv("COLUMNS");
    return listed;
  };
  const std::string screen = at("80").out;
  // 24 lines, and one for the tests' own operator.
  EXPECT_LE(std::count(screen.begin(), screen.end(), '\n'), 25) << screen;
  const Outcome outcome = at("200");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::size_t line = outcome.out.find("\nfake ");
  ASSERT_NE(line, std::string::npos) << outcome.out;
  const std::string row = outcome.out.substr(line + 1, outcome.out.find('\n', line + 1) - line - 1);
  EXPECT_NE(row.find("y = 2 x"), std::string::npos) << row;
  EXPECT_NE(row.find(" 13 "), std::string::npos) << "rungs without peers: " << row;
  EXPECT_NE(row.find("peer_eight, peer_two"), std::string::npos) << "not the absent one: " << row;
  for (const Backend backend : {Backend::cuda, Backend::simt}) {
    const std::string& why = available(backend).why;
    if (available(backend)) continue;
    const std::size_t first = outcome.out.find(why);
    EXPECT_NE(first, std::string::npos) << why;
    EXPECT_EQ(outcome.out.find(why, first + 1), std::string::npos) << "said twice: " << why;
  }
  EXPECT_NE(run_rung({"list", "--all"}).out.find("leaves_one_out"), std::string::npos);
}

TEST(List, ABackendAloneCanBeAskedFor) {
  const Outcome cpu = run_rung({"list", "fake", "--backend", "cpu", "--json"});
  ASSERT_EQ(cpu.code, 0) << cpu.err;
  EXPECT_GT(parsed(cpu).size(), 5u);
  const Outcome cuda = run_rung({"list", "fake", "--backend", "cuda", "--json"});
  EXPECT_EQ(parsed(cuda).size(), 0u) << cuda.out;
  EXPECT_NE(run_rung({"list", "fake", "--backend", "cuda"}).out.find("no rung on cuda\n"),
            std::string::npos);
  EXPECT_EQ(run_rung({"list", "--backend", "gpu"}).code, 2);
  const std::string overview = run_rung({"list", "--backend", "cpu"}).out;
  EXPECT_EQ(overview.substr(0, overview.find('\n')).find("simt"), std::string::npos) << overview;
}

TEST(Check, ARemarkIsWhole) {
  workbench::CheckReport report;
  workbench::Case where;
  where.op = "gemm";
  where.rung = "best";
  report.add(where, {workbench::Verdict::Kind::skipped, "no rung takes it:\n  a: no f64\n  b: no"},
             0);
  testing::internal::CaptureStdout();
  report.print_text();
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_NE(text.find("1 skipped: no rung takes it: a: no f64; b: no"), std::string::npos) << text;
}

TEST(Check, RightRungPasses) {
  const Outcome outcome = run_rung({"check", "fake/right", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const json result = parsed(outcome);
  // Every variant once, the plain one with three thread counts, for each of three problems.
  const auto variants = static_cast<int>(all_variants().size());
  EXPECT_EQ(result.at("cases"), 3 * (variants + 2));
  EXPECT_EQ(result.at("passed"), 3 * (variants + 2));
  EXPECT_EQ(result.at("failed"), 0);
  EXPECT_EQ(result.at("skipped"), 0);
  EXPECT_TRUE(result.at("failures").empty());
}

struct Mistake {
  const char* rung;
  const char* says;
};
class CheckFinds : public testing::TestWithParam<Mistake> {};

TEST_P(CheckFinds, TheMistake) {
  const Mistake& mistake = GetParam();
  const Outcome outcome = run_rung({"check", std::string("fake/") + mistake.rung, "--json"});
  EXPECT_EQ(outcome.code, 1);
  const json result = parsed(outcome);
  ASSERT_FALSE(result.at("failures").empty());
  EXPECT_EQ(result.at("failed"), result.at("failures").size());
  for (const json& failure : result.at("failures")) {
    EXPECT_EQ(failure.at("op"), "fake");
    EXPECT_EQ(failure.at("rung"), mistake.rung);
    EXPECT_EQ(failure.at("backend"), "cpu");
    EXPECT_TRUE(failure.at("problem").is_string());
    EXPECT_TRUE(failure.at("variant").is_string());
    EXPECT_NE(failure.at("message").get<std::string>().find(mistake.says), std::string::npos)
        << failure.at("message");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, CheckFinds,
    testing::Values(Mistake{"wrong", "expected"}, Mistake{"leaves_one_out", "never written"},
                    Mistake{"past_the_end", "y"}, Mistake{"changes_input", "x"},
                    Mistake{"differs", "two runs differ"}, Mistake{"throws", "it broke"}),
    [](const auto& test) { return std::string(test.param.rung); });

TEST(Check, TheWholeLadderNamesExactlyTheRungsThatAreWrong) {
  const Outcome outcome = run_rung({"check", "fake", "--json"});
  EXPECT_EQ(outcome.code, 1);
  std::set<std::string> failed;
  const json result = parsed(outcome);
  for (const json& failure : result.at("failures")) failed.insert(failure.at("rung"));
  EXPECT_EQ(failed, (std::set<std::string>{"wrong", "leaves_one_out", "past_the_end",
                                           "changes_input", "differs", "throws", "unreached"}));
}

TEST(Check, OneTeachingRungMayDifferFromRunToRun) {
  std::vector<std::string> varying;
  for (const AnyOperator* op : operators()) {
    for (const RungInfo* rung : op->rungs()) {
      if (!VaryingBits::of(*rung) || rung->backend != Backend::simt) continue;
      varying.push_back(std::string(op->name()) + '/' + std::string(rung->name));
    }
  }
  static const RungInfo chosen{.name = "chosen"};
  static const VaryingBits mark(chosen);
  EXPECT_FALSE(VaryingBits::of(chosen)) << "what calls choose must repeat";
  if (varying.empty()) GTEST_SKIP() << "without reduce, or without the simulated GPU";
  EXPECT_EQ(varying, std::vector<std::string>{"reduce/float_atomic_per_block"});
}

TEST(Check, FirstFailureEndsIt) {
  const json all = parsed(run_rung({"check", "fake/wrong", "--json"}));
  ASSERT_GT(all.at("failed"), 1);
  const Outcome outcome = run_rung({"check", "fake/wrong", "--first-failure", "--json"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  const json first = parsed(outcome);
  EXPECT_EQ(first.at("failed"), 1);
  EXPECT_LT(first.at("cases"), all.at("cases"));
  EXPECT_EQ(first.at("failures").front(), all.at("failures").front());
  EXPECT_EQ(run_rung({"check", "fake/right", "--first-failure"}).code, 0);
}

TEST(Check, FailureComesWithTheCommandThatRepeatsIt) {
  const Outcome outcome = run_rung({"check", "fake/wrong", "--json"});
  const json result = parsed(outcome);
  const json& failure = result.at("failures").at(0);
  EXPECT_NE(failure.at("command").get<std::string>().find("fake/wrong"), std::string::npos);
  const Outcome again =
      run_rung({"check", "fake/wrong", "--backend", failure.at("backend"), "--problem",
                failure.at("problem"), "--variant", failure.at("variant"), "--seed",
                std::to_string(failure.at("seed").get<int>()), "--threads",
                std::to_string(failure.at("threads").get<int>()), "--json"});
  EXPECT_EQ(again.code, 1);
  EXPECT_EQ(parsed(again).at("cases"), 1);
  EXPECT_EQ(parsed(again).at("failures").at(0).at("message"), failure.at("message"));
}

TEST(Check, UnsupportedProblemsAreSkippedAndSaidWhy) {
  const Outcome outcome = run_rung({"check", "fake/columns", "--json"});
  EXPECT_EQ(outcome.code, 0);
  const json result = parsed(outcome);
  EXPECT_GT(result.at("skipped"), 0);
  EXPECT_GT(result.at("passed"), 0);
  const json reasons = result.at("rungs").at(0).at("reasons");
  EXPECT_EQ(reasons.at("takes a single column"), result.at("skipped"));
}

TEST(Check, BriefRunsEachRungOnEachProblemInOneVariant) {
  const std::int64_t problems =
      static_cast<std::int64_t>(find_operator("fake").check_problems(Backend::cpu).size());
  const json right = parsed(run_rung({"check", "fake/right", "--brief", "--json"}));
  EXPECT_EQ(right.at("passed"), problems);
  const json all = parsed(run_rung({"check", "fake/right", "--json"}));
  EXPECT_GT(all.at("passed"), 8 * problems);
  // Mistakes are still found, and reported with the command that reproduces them.
  for (const char* rung : {"wrong", "leaves_one_out", "past_the_end", "changes_input", "differs"}) {
    const Outcome outcome = run_rung({"check", std::string("fake/") + rung, "--brief", "--json"});
    EXPECT_EQ(outcome.code, 1) << rung;
    const json failures = parsed(outcome).at("failures");
    ASSERT_FALSE(failures.empty()) << rung;
    EXPECT_LE(failures.size(), static_cast<std::size_t>(problems)) << rung;
  }
  // A rung that supports one kind of problem only gets a problem of that kind.
  EXPECT_GT(parsed(run_rung({"check", "fake/columns", "--brief", "--json"})).at("passed"), 0);
}

TEST(Check, ARungThatNoProblemReachesHasFailed) {
  const Outcome outcome = run_rung({"check", "fake/unreached", "--json"});
  EXPECT_EQ(outcome.code, 1);
  const json failures = parsed(outcome).at("failures");
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_NE(failures.at(0).at("message").get<std::string>().find("never ran"), std::string::npos);
  EXPECT_EQ(failures.at(0).at("command"), "rung check fake/unreached --backend cpu");
}

// Zero cases, none of them failed, must not count as a pass.
TEST(Check, ABackendOnWhichNothingIsImplementedIsNoPass) {
  for (const Backend backend : {Backend::simt, Backend::opencl}) {
    const Outcome outcome = run_rung({"check", "fake", "--backend", to_string(backend)});
    EXPECT_EQ(outcome.code, 3) << outcome.out;
    if (!available(backend)) continue;
    EXPECT_NE(outcome.err.find(std::string("fake has no rung on ") + to_string(backend)),
              std::string::npos)
        << outcome.err;
  }
}

// For x = 0, 2.001 x equals 2 x, and so does an unwritten 0.
TEST(Check, MistrustsAPassThatZerosWouldGet) {
  const std::vector<std::string> words{"check", "fake/wrong", "--problem", "f32 5x7,zero"};
  const Outcome text = run_rung(words);
  EXPECT_EQ(text.code, 0) << text.out;
  EXPECT_NE(text.out.find("mistrusted: "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("fake f32 5x7,zero: plain, misaligned"), std::string::npos) << text.out;
  std::vector<std::string> with_json = words;
  with_json.emplace_back("--json");
  const json result = parsed(run_rung(with_json));
  EXPECT_GT(result.at("passed"), 0);
  EXPECT_EQ(result.at("mistrusted"), result.at("passed"));
  EXPECT_EQ(result.at("rungs").at(0).at("mistrusted"), result.at("passed"));
  const json& problems = result.at("mistrusted_problems");
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems.at(0).at("problem"), "f32 5x7,zero");
  EXPECT_EQ(problems.at(0).at("variants").size(), all_variants().size());
}

TEST(Check, TrustsAPassOfNumbersAndOfNothing) {
  const Outcome outcome = run_rung({"check", "fake/right", "--json"});
  EXPECT_GT(parsed(outcome).at("passed"), 0);
  EXPECT_EQ(parsed(outcome).at("mistrusted"), 0);
  EXPECT_TRUE(parsed(outcome).at("mistrusted_problems").empty());
}

TEST(Check, PublicCallIsCheckedAsBest) {
  const Outcome outcome = run_rung({"check", "fake/best", "--json"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(parsed(outcome).at("rungs").at(0).at("rung"), "best");
  EXPECT_GT(parsed(outcome).at("passed"), 0);
}

TEST(Usage, WrongWordsSayWhatExistsAndEndWithTwo) {
  const struct {
    std::vector<std::string> words;
    std::string says;
  } cases[] = {
      {{}, "check"},
      {{"chekc"}, "check"},
      {{"check", "--bakend", "cpu"}, "--backend"},
      {{"check", "nothing"}, "fake"},
      {{"check", "fake/nothing"}, "leaves_one_out"},
      {{"check", "fake", "--backend", "gpu"}, "cuda"},
      {{"check", "fake", "--variant", "odd"}, to_string(Variant{})},
      {{"check", "fake", "--problem", "f32 axb"}, "axb"},
      {{"run", "nothing"}, "fake"},
      {{"bench", "fake", "--rungs", "nothing"}, "one_unit"},
      {{"bench", "fake", "--threads", "some"}, "some"},
  };
  for (const auto& one : cases) {
    const Outcome outcome = run_rung(one.words);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find(one.says), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(Usage, HelpTeaches) {
  const Outcome program = run_rung({"--help"});
  EXPECT_EQ(program.code, 0);
  EXPECT_NE(program.out.find("ladder"), std::string::npos);
  for (const char* command : {"list", "check", "bench", "machine", "run", "report"}) {
    EXPECT_NE(program.out.find(command), std::string::npos) << command;
    const Outcome help = run_rung({command, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_NE(help.out.find("rung "), std::string::npos) << "no example: " << command;
  }
}

TEST(Usage, BackendThatIsNotHereEndsWithThree) {
  for (const Backend backend : {Backend::cuda, Backend::simt}) {
    if (available(backend)) continue;
    const Outcome outcome = run_rung({"check", "fake", "--backend", to_string(backend)});
    EXPECT_EQ(outcome.code, 3);
    EXPECT_NE(outcome.err.find(available(backend).why), std::string::npos) << outcome.err;
  }
}

}  // namespace
}  // namespace rung::test
