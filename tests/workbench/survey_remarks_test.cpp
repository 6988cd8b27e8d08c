// SPDX-License-Identifier: Apache-2.0
// What `rung survey` says beside its figures, and which patterns it refuses.
#include <gtest/gtest.h>

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

// The column counts teaching rungs, the best choice does not: the summary has both.
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

// Of the second pattern nothing is drawn within --count: it was taken, whatever it said.
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
