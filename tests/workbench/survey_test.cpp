// SPDX-License-Identifier: Apache-2.0
// rung survey: the problems that it draws, its remarks on them, and resumption after a stop.
#include "rung/workbench/survey.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "fake_operator.hpp"
#include "rung/core/error.hpp"
#include "rung/harness/problem_pattern.hpp"

namespace rung::test {
namespace {

using nlohmann::json;
using workbench::SurveyDraw;
using workbench::SurveyResults;
using workbench::SurveyRow;

std::string file_text(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<const AnyOperator*> surveyed_operators() {
  std::vector<const AnyOperator*> all = operators();
  std::erase_if(all, [](const AnyOperator* op) {
    return op->survey_patterns().empty() || op->name() == "fake";
  });
  return all;
}

// Recorded on x86-64 with GCC. The drawing uses only integers, so every machine draws the same.
TEST(Survey, TheSameProblemsOnEveryMachine) {
  const SurveyDraw draw{{"f32 1..1000000x1..300", "f32 (7|9*2)x1..5(|,zero)"}, 1e15};
  const AnyOperator& fake = find_operator("fake");
  std::string drawn;
  for (int index = 0; index < 8; ++index) {
    drawn += workbench::draw_problem(fake, draw, 1, index).to_string() + "; ";
  }
  EXPECT_EQ(drawn,
            "f32 1x63; f32 9x4,zero; f32 64x198; f32 9x1,zero; f32 48303x4; f32 9x1,zero; f32 "
            "7459x8; f32 7x1; ");
}

TEST(Survey, AProblemDependsOnSeedAndIndexAlone) {
  const AnyOperator& fake = find_operator("fake");
  const SurveyDraw draw{{"f32 1..1000000x1..1000000"}, 1e15};
  const auto text = [&](std::uint64_t seed, std::int64_t index) {
    return workbench::draw_problem(fake, draw, seed, index).to_string();
  };
  const std::string tenth = text(3, 10);
  EXPECT_EQ(text(3, 10), tenth);
  EXPECT_NE(text(4, 10), tenth);
  EXPECT_NE(text(3, 11), tenth);
}

// Problems are valid, within the bound and diverse, and no pattern is mostly rejected.
TEST(Survey, EveryOperatorsProblemsAreValid) {
  const Context context = Context::cpu(1);
  const auto surveyed = surveyed_operators();
  EXPECT_GE(surveyed.size(), 11u);
  for (const AnyOperator* op : surveyed) {
    SCOPED_TRACE(std::string(op->name()));
    for (const double max_bytes : {65536.0, 64e6, 1e12}) {
      SurveyDraw draw{workbench::patterns_of(*op), max_bytes};
      std::set<std::string> seen;
      double largest = 0;
      constexpr int draws = 1000;
      for (int index = 0; index < draws; ++index) {
        const Problem problem = workbench::draw_problem(*op, draw, 7, index);
        EXPECT_EQ(Problem::parse(problem.to_string()), problem);
        const double bytes = op->footprint(problem, context);  // throws if the problem is invalid
        ASSERT_LE(bytes, max_bytes) << problem.to_string();
        largest = std::max(largest, bytes);
        seen.insert(problem.to_string());
      }
      EXPECT_GT(seen.size(), 300u) << max_bytes;
      EXPECT_GT(largest, std::min(max_bytes, 64e6) / 4);
    }
    for (const std::string& pattern : workbench::patterns_of(*op)) {
      int valid = 0;
      constexpr int draws = 300;
      Random random(8);
      for (int i = 0; i < draws; ++i) {
        const std::string text = draw_text(pattern, random);
        try {
          valid += op->footprint(Problem::parse(text), context) > 0;
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << text << error.what();
        }
      }
      EXPECT_GT(valid, draws / 2) << pattern << ": most of its problems are refused";
    }
  }
}

TEST(Survey, LooksAtProblemsBeyondAllMemory) {
  const Context context = Context::cpu(1);
  EXPECT_EQ(find_operator("fake").footprint(Problem::parse("f32 1000000x1000000"), context), 8e12);
  EXPECT_GT(find_operator("gemm").footprint(Problem::parse("f64 1000000x1000000x9"), context),
            8e12);
}

SurveyRow row_of(double vs_peer, double of_fastest, double of_floor, double seconds = 1e-3) {
  SurveyRow row;
  row.problem = "f32 1x1";
  row.seconds = seconds;
  row.floor = seconds * of_floor;
  row.of_floor = of_floor;
  row.vs_peer = vs_peer;
  row.of_fastest = of_fastest;
  row.chosen = "one";
  row.fastest = of_fastest < 1 ? "another" : "one";
  return row;
}

TEST(Survey, AWrongChoiceIsNoMissingKernel) {
  const double none = workbench::not_measured;
  EXPECT_EQ(workbench::fault_of(row_of(1.2, 1, 0.1)), "");
  EXPECT_EQ(workbench::fault_of(row_of(0.5, 1, 0.9)), "missing kernel");
  // A rung twice as fast would have been as fast as the peer.
  EXPECT_EQ(workbench::fault_of(row_of(0.5, 0.5, 0.9)), "wrong choice");
  EXPECT_EQ(workbench::fault_of(row_of(0.2, 0.5, 0.9)), "wrong choice, missing kernel");
  // Without a peer, the floor is the criterion: 1.6 times the floor, or 6 us.
  EXPECT_EQ(workbench::fault_of(row_of(none, 1, 0.7)), "");
  EXPECT_EQ(workbench::fault_of(row_of(none, 1, 0.5)), "missing kernel");
  EXPECT_EQ(workbench::fault_of(row_of(none, 1, 0.5, 8e-6)), "");
  EXPECT_EQ(workbench::fault_of(row_of(none, 0.6, 0.5)), "wrong choice");
  // A teaching rung cannot be selected.
  SurveyRow read = row_of(1.2, 1, 0.9);
  read.of_teaching = 0.5;
  EXPECT_EQ(workbench::fault_of(read), "missing kernel");
  EXPECT_EQ(workbench::goodness(read), 0.5);
  read.of_fastest = 0.5;
  EXPECT_EQ(workbench::fault_of(read), "wrong choice");
  // A difference below the cost of a call is no fault.
  EXPECT_EQ(workbench::fault_of(row_of(0.5, 0.5, 0.5, 30e-9)), "");
  SurveyRow failed = row_of(1, 1, 1);
  failed.failed = true;
  EXPECT_EQ(workbench::fault_of(failed), "WRONG RESULT");
}

TEST(Survey, MeansAreGeometricAndTheWorstComeFirst) {
  const double none = workbench::not_measured;
  const std::vector<SurveyRow> rows{row_of(4, 1, 0.5), row_of(0.25, 1, 0.5), row_of(none, 1, 0.2),
                                    row_of(1, 0.1, 0.5)};
  const auto mean = workbench::mean_of(rows, &SurveyRow::vs_peer);
  EXPECT_EQ(mean.count, 3);
  EXPECT_DOUBLE_EQ(mean.mean, 1);
  EXPECT_EQ(mean.worst, 0.25);
  EXPECT_EQ(mean.bad, 1);
  EXPECT_EQ(workbench::worst_of(rows, 3), (std::vector<std::size_t>{3, 1, 2}));
  EXPECT_EQ(workbench::mean_of({}, &SurveyRow::vs_peer).count, 0);
}

TEST(Survey, JsonRoundTrip) {
  SurveyResults survey;
  survey.op = "fake";
  survey.threads = 2;
  survey.where = "a CPU";
  survey.date = "2026-11-25";
  survey.draw = {{"f32 1..4x1"}, 1e6};
  survey.rows = {row_of(0.5, 1, workbench::not_measured)};
  survey.rows[0].seed = 3;
  survey.rows[0].index = 9;
  survey.rows[0].note = "a \"note\"";
  survey.rows[0].times = {{"right", 1e-6}, {"naive", workbench::not_measured}};
  const std::string text = workbench::survey_json(survey, bench::Machine{});
  SurveyResults again = workbench::survey_from_json(text);
  EXPECT_EQ(workbench::survey_json(again, bench::Machine{}), text);
  EXPECT_NE(again.find(3, 9), nullptr);
  EXPECT_EQ(again.find(3, 8), nullptr);
  EXPECT_THROW(workbench::survey_from_json("{}"), Error);
  EXPECT_THROW(workbench::survey_from_json("["), Error);
}

const std::vector<std::string> small_survey{
    "survey", "fake", "f32 4..64x4..64", "--backend", "cpu", "--threads", "1"};

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Some of the fake operator's rungs are wrong and as fast as the right one; the peers are slower.
TEST(Survey, TellsHowThePublicCallFares) {
  const KnownMachine machine;
  const std::string path = machine.folder + "/survey.json";
  const Outcome outcome = run_rung(with(small_survey, {"--count", "6", "--json", path}));
  EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_NE(outcome.out.find("6 random problems"), std::string::npos) << outcome.out;
  const bool decided = outcome.out.find("geometric mean") != std::string::npos;
  const bool all_undecided = outcome.out.find("6 undecided") != std::string::npos;
  EXPECT_TRUE(decided || all_undecided) << outcome.out;  // the latter on a busy machine
  expect_fits_the_page(outcome.out);
  const json rows = json::parse(file_text(path)).at("rows");
  ASSERT_EQ(rows.size(), 6u);
  for (const json& row : rows) {
    EXPECT_EQ(row.at("chosen"), "right");
    // On a busy machine it is undetermined which of the two peers is faster.
    EXPECT_TRUE(row.at("peer").get<std::string>().starts_with("peer_")) << row;
    EXPECT_GT(row.at("vs_peer").get<double>(), 0);
    EXPECT_GT(row.at("floor").get<double>(), 0);
    EXPECT_TRUE(row.at("times").contains("one_unit")) << row;
    EXPECT_FALSE(row.at("times").contains("unreached")) << row;
    EXPECT_FALSE(row.at("failed"));
    EXPECT_NE(row.at("note").get<std::string>().find("throws: it broke"), std::string::npos) << row;
  }
}

TEST(Survey, GoesOnWhereItStopped) {
  const KnownMachine machine;
  const std::string path = machine.folder + "/survey.json";
  const Outcome none = run_rung(with(small_survey, {"--count", "3", "--seconds", "1e-9"}));
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_NE(none.out.find("3 of 3 problems left: "), std::string::npos) << none.out;
  ASSERT_EQ(run_rung(with(small_survey, {"--count", "3", "--json", path})).code, 0);
  const json before = json::parse(file_text(path)).at("rows");
  ASSERT_EQ(before.size(), 3u);
  ASSERT_EQ(run_rung(with(small_survey, {"--count", "5", "--json", path})).code, 0);
  const json after = json::parse(file_text(path)).at("rows");
  ASSERT_EQ(after.size(), 5u);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(after[i], before[i]) << "not again";
  EXPECT_EQ(after[4].at("index"), 4);
  // Rows without a fault are not timed again.
  json faulty = json::parse(file_text(path));
  const bool fine = faulty["rows"][0].at("fault") == "";
  faulty["rows"][1]["vs_peer"] = 0.01;
  faulty["rows"][1]["seconds"] = 1.0;
  // Undecided, so that any new row replaces it, however busy the machine is.
  faulty["rows"][1]["undecided"] = true;
  std::ofstream(path) << faulty.dump();
  ASSERT_EQ(run_rung(with(small_survey, {"--count", "5", "--json", path, "--again"})).code, 0);
  const json again = json::parse(file_text(path)).at("rows");
  // The values written above are gone.
  EXPECT_NE(again[1].at("vs_peer").get<double>(), 0.01);
  EXPECT_NE(again[1].at("seconds").get<double>(), 1.0);
  if (fine) {
    EXPECT_EQ(again[0], before[0]);
  }
  // Another seed adds rows; a change of any other option is an error.
  ASSERT_EQ(run_rung(with(small_survey, {"--count", "2", "--seed", "2", "--json", path})).code, 0);
  EXPECT_EQ(json::parse(file_text(path)).at("rows").size(), 7u);
  const Outcome other =
      run_rung(with(small_survey, {"--count", "2", "--max-bytes", "1M", "--json", path}));
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("another --max-bytes"), std::string::npos) << other.err;
}

TEST(Survey, ReportMakesTablesOfSurveys) {
  const KnownMachine machine;
  SurveyResults survey;
  survey.where = "a CPU";
  survey.date = "2026-11-25";
  survey.draw = {{"f32 1..4x1"}, 1 << 20};
  survey.rows = {row_of(0.5, 1, 0.1), row_of(2, 0.5, 0.1)};
  survey.rows[1].problem = "f32 2x2";
  survey.rows[1].seed = 2;
  for (const char* op : {"one", "two"}) {
    survey.op = op;
    std::ofstream(machine.folder + "/" + op + "_survey.json")
        << workbench::survey_json(survey, bench::Machine{});
  }
  const std::string document = machine.folder + "/README.md";
  std::ofstream(document) << "<!-- rung:table *_survey -->\n<!-- rung:end -->\n"
                             "<!-- rung:table two_survey worst -->\n<!-- rung:end -->\n";
  const Outcome outcome = run_rung({"report", "--into", document, "--results", machine.folder});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string text = file_text(document);
  for (const char* expected :
       {"Random problems of up to 1 MiB on a CPU, 1 thread",
        "| one | 2 of seeds 1, 2 | 1.00 | 0.50 | 0.71 | 0.50 | 0.10 | 1 | 1 | 2026-11-25 |",
        "| two | 2 of seeds 1, 2 |", "The worst of 2 random problems of two",
        "| `f32 2x2` | 1.00 ms | 0.10 | 2.00 |  | one | 0.50 | another | wrong choice |"}) {
    EXPECT_NE(text.find(expected), std::string::npos) << expected << "\n" << text;
  }
  EXPECT_EQ(run_rung({"report", "--check", "--into", document, "--results", machine.folder}).code,
            0);
  std::ofstream(document) << "<!-- rung:table *_nothing -->\n<!-- rung:end -->\n";
  EXPECT_EQ(run_rung({"report", "--into", document, "--results", machine.folder}).code, 2);
}

TEST(Survey, FitsANarrowTerminal) {
  SurveyResults survey;
  survey.op = "one";
  survey.where = "a CPU of a rather long name";
  survey.draw = {{"f32 1..4x1"}, 1 << 20};
  survey.rows = {row_of(0.5, 1, 0.1)};
  SurveyRow& row = survey.rows.front();
  row.problem = "f32 31x1021x16,along_the_first";
  row.chosen = "threads_with_a_long_name";
  row.fastest = "another_with_a_long_name";
  ::setenv("COLUMNS", "60", 1);
  const std::string text = workbench::survey_text(survey);
  ::unsetenv("COLUMNS");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 60u) << text;
  EXPECT_NE(text.find(row.problem), std::string::npos) << "it is to be copied\n" << text;
  EXPECT_NE(text.find("no room for: "), std::string::npos) << text;
  EXPECT_NE(text.find(": 1 random\nproblem of up to 1 MiB"), std::string::npos) << text;
}

TEST(Survey, ListsProblemsAlone) {
  const Outcome outcome = run_rung(with(small_survey, {"--count", "5", "--list"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 5);
  EXPECT_EQ(outcome.out, run_rung(with(small_survey, {"--count", "5", "--list"})).out);
  EXPECT_EQ(outcome.out.substr(0, 4), "f32 ");
}

TEST(Survey, WrongUsageSaysWhatIsAccepted) {
  const KnownMachine machine;
  const std::string path = machine.folder + "/other.json";
  std::ofstream(path) << "{\"rows\": []}";
  const std::string cut = machine.folder + "/cut.json";
  std::ofstream(cut) << "{\"machine\": {";
  const struct {
    std::vector<std::string> words;
    const char* says;
  } cases[] = {
      {{"survey"}, "op"},
      {{"survey", "fakke"}, "did you mean 'fake'?"},
      {{"survey", "transfer"}, "transfer declares no random problems"},
      {{"survey", "fake", "--backend", "simt"}, "accepted: cpu, cuda, opencl"},
      {{"survey", "fake", "--list", "--json", machine.folder + "/x.json"}, "given with --list"},
      {{"survey", "fake", "--count", "0"}, "accepted: a whole number from 1"},
      {{"survey", "fake", "--seed", "0"}, "accepted: a whole number from 1"},
      {{"survey", "fake", "--seconds", "-1"}, "accepted: a number above 0"},
      {{"survey", "fake", "--max-bytes", "64Q"}, "as in 4096, 48K"},
      {{"survey", "fake", "--max-bytes", "0"}, "from 1 to 2^50"},
      {{"survey", "fake", "--max-bytes", "7", "--list"}, "more than 7 B"},
      {{"survey", "fake", "f32 1..", "--list"}, "is no range"},
      {{"survey", "fake", "f99 1..4x1", "--list"}, "not with a dtype"},
      {{"survey", "fake", "f32 1..4x1,axis=1", "--list"}, "fake has no option 'axis'"},
      {{"survey", "fake", "--again"}, "--json"},
      {{"survey", "fake", "--backend", "cpu", "--json", path},
       "other.json: 'survey' is missing; accepted: what `rung survey --json` writes"},
      {{"survey", "fake", "--backend", "cpu", "--json", cut}, "cut.json: the file is cut off: it "},
      {{"survey", "fake", "--json", "-"}, "--json: '-' given; accepted: a file"},
      {{"survey", "fake", "--backend", "cpu", "--json", path + "/x.json", "--count", "1"},
       "other.json/x.json"},
  };
  for (const auto& one : cases) {
    const Outcome outcome = run_rung(one.words);
    EXPECT_EQ(outcome.code, 2) << outcome.out << outcome.err;
    EXPECT_NE(outcome.err.find(one.says), std::string::npos) << outcome.err;
  }
}

}  // namespace
}  // namespace rung::test
