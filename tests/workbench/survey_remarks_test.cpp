// SPDX-License-Identifier: Apache-2.0
// Remarks of `rung survey` beside its figures, and rejected patterns.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "fake_operator.hpp"
#include "rung/workbench/survey.hpp"

namespace rung::test {
namespace {

workbench::SurveyRow plain_row(double of_fastest) {
  workbench::SurveyRow row;
  row.problem = "f32 1x1";
  row.seconds = 1e-3;
  row.floor = 1e-3;
  row.of_floor = 1;
  row.vs_peer = 2;
  row.of_fastest = of_fastest;
  return row;
}

// The column includes teaching rungs, the best choice does not: the summary has both.
TEST(Survey, TheSummaryHasTheStatisticOfEachColumn) {
  workbench::SurveyResults survey;
  survey.draw = {{"f32 1..4x1"}, 1 << 20};
  survey.rows = {plain_row(0.9)};
  survey.rows[0].teaching = "polynomial";
  survey.rows[0].of_teaching = 0.65;
  const std::string text = workbench::survey_text(survey);
  EXPECT_NE(text.find("against the best choice  geometric mean 0.90"), std::string::npos) << text;
  EXPECT_NE(text.find("against the fastest rung geometric mean 0.65"), std::string::npos) << text;
  EXPECT_NE(text.find("of fastest: against the fastest rung, also one that is there to be read"),
            std::string::npos)
      << text;
}

TEST(Survey, ABusyMachineIsNoticedByTheSpread) {
  std::vector<workbench::SurveyRow> rows{plain_row(1), plain_row(1), plain_row(1)};
  EXPECT_EQ(workbench::survey_busy_text(rows), "") << "files of earlier versions have no spread";
  rows[0].spread = 0.02;
  rows[1].spread = 0.9;
  rows[2].spread = 0.03;
  EXPECT_EQ(workbench::survey_busy_text(rows), "");
  rows[2].spread = 0.5;
  const std::string busy = workbench::survey_busy_text(rows);
  EXPECT_NE(busy.find("The machine was busy: the times of a call spread by 50 %"),
            std::string::npos)
      << busy;
}

TEST(Survey, TimesOfABusyMachineAreNotSteady) {
  constexpr double unknown = workbench::not_measured;
  EXPECT_TRUE(workbench::is_steady(0.05, 1.1e-5, 1e-5));
  EXPECT_TRUE(workbench::is_steady(unknown, unknown, unknown));
  EXPECT_FALSE(workbench::is_steady(0.9, 1.1e-5, 1e-5)) << "they spread";
  EXPECT_FALSE(workbench::is_steady(0.05, 4e-4, 1e-5)) << "every round was slow";
}

// A stalled peer gave a ratio of 40, which looked like a measured one.
TEST(Survey, AnUndecidedRowIsNeitherAFaultNorInTheMeans) {
  workbench::SurveyResults survey;
  survey.op = "fake";
  survey.draw = {{"f32 1..4x1"}, 1 << 20};
  survey.rows = {plain_row(1), plain_row(0.1)};
  survey.rows[1].vs_peer = 40;
  survey.rows[1].undecided = true;
  EXPECT_EQ(workbench::fault_of(survey.rows[1]), "undecided");
  EXPECT_FALSE(workbench::is_wrong_choice(survey.rows[1]));
  EXPECT_EQ(workbench::mean_of(survey.rows, &workbench::SurveyRow::vs_peer).count, 1);
  EXPECT_EQ(workbench::worst_of(survey.rows, 2).front(), 0u) << "it is behind all others";
  const std::string text = workbench::survey_text(survey);
  EXPECT_NE(text.find("0 wrong choices, 0 missing kernels, 1 undecided"), std::string::npos)
      << text;
  const std::string busy = workbench::survey_busy_text(survey.rows);
  EXPECT_NE(busy.find("The machine was busy at times: 1 problem undecided"), std::string::npos)
      << busy;
  survey.rows[1].vs_peer = 0.1;
  survey.rows[1].failed = true;
  EXPECT_EQ(workbench::fault_of(survey.rows[1]), "WRONG RESULT") << "that is decided";
}

TEST(Survey, ADecidedRowReplacesAnUndecidedOne) {
  workbench::SurveyRow good = plain_row(0.5), undecided = plain_row(1), failed = plain_row(1);
  undecided.undecided = true;
  failed.failed = true;
  EXPECT_TRUE(workbench::replaces(good, undecided));
  EXPECT_FALSE(workbench::replaces(undecided, good));
  EXPECT_TRUE(workbench::replaces(undecided, undecided)) << "the later of two";
  EXPECT_TRUE(workbench::replaces(failed, good));
  EXPECT_TRUE(workbench::replaces(good, failed));
  EXPECT_TRUE(workbench::replaces(plain_row(1), good)) << "the better of two";
  EXPECT_FALSE(workbench::replaces(plain_row(0.4), good));
}

TEST(Survey, APeerThatStallsLeavesTheRowUndecided) {
  const KnownMachine machine;
  const std::string path = machine.folder + "/survey.json";
  const Outcome outcome = run_rung({"survey", "fake", "f32 5x43", "--backend", "cpu", "--threads",
                                    "1", "--count", "1", "--json", path});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  const nlohmann::json row = nlohmann::json::parse(text.str()).at("rows")[0];
  // Both peers stall: the one that was faster in its brief timing is raced.
  EXPECT_TRUE(row.at("peer").get<std::string>().starts_with("peer_")) << row;
  EXPECT_GT(row.at("peer_spread").get<double>(), workbench::max_steady_spread) << row;
  EXPECT_TRUE(row.at("undecided")) << row;
  EXPECT_EQ(row.at("fault"), "undecided");
  EXPECT_NE(outcome.out.find("1 problem undecided"), std::string::npos) << outcome.out;
}

// No problem of the second pattern is drawn within --count, so it used to be accepted unchecked.
TEST(Survey, APatternOfWhichNothingIsValidIsRefusedAtOnce) {
  const KnownMachine machine;
  const Outcome outcome =
      run_rung({"survey", "fake", "f32 4x4", "f32 1..9", "--backend", "cpu", "--count", "1"});
  EXPECT_EQ(outcome.code, 2) << outcome.out;
  EXPECT_NE(outcome.err.find("pattern 'f32 1..9': none of "), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

TEST(Survey, WhatNoRungTakesIsNoWrongResult) {
  workbench::SurveyRow none;
  none.unsupported = true;
  none.problem = "f64 1x1";
  EXPECT_EQ(workbench::fault_of(none), "not supported");
  if (!available(Backend::opencl)) GTEST_SKIP() << "no OpenCL";
  const KnownMachine machine;
  const Outcome outcome =
      run_rung({"survey", "reduce", "f64 1..1000", "--backend", "opencl", "--count", "2"});
  EXPECT_EQ(outcome.code, 3) << outcome.out;
  EXPECT_NE(outcome.err.find("no rung on opencl takes one of"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace rung::test
