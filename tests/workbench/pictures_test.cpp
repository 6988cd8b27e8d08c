// SPDX-License-Identifier: Apache-2.0
// Pictures of results: the drawings, and rejected input.
#include "rung/workbench/pictures.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "../core/expect_error.hpp"

namespace rung::workbench {
namespace {

constexpr const char* ladder = R"({"machine": {"cpu": "a <fast> CPU", "gpus": []}, "rows": [
  {"op": "gemm", "rung": "second", "backend": "cpu", "peer": false, "problem": "f32 8x8x8",
   "rate": 2000, "unit": "GFLOP/s", "step": 20},
  {"op": "gemm", "rung": "first", "backend": "cpu", "peer": false, "problem": "f32 8x8x8",
   "rate": 20, "unit": "GFLOP/s", "step": 10},
  {"op": "gemm", "rung": "vendor", "backend": "cpu", "peer": true, "problem": "f32 8x8x8",
   "rate": 1000, "unit": "GFLOP/s", "step": 0},
  {"op": "gemm", "rung": "best", "backend": "cpu", "peer": false, "problem": "f32 8x8x8",
   "rate": 2000, "unit": "GFLOP/s", "step": 0}]})";

int count(const std::string& text, const std::string& word) {
  int found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++found;
  }
  return found;
}

TEST(Pictures, HaveABarPerStepAndPeerInTheLaddersOrder) {
  const std::string svg = results_to_picture(ladder, "f32 8x8x8");
  EXPECT_EQ(count(svg, "<rect"), 3) << "the public call repeats a rung";
  EXPECT_LT(svg.find(">first<"), svg.find(">second<"));
  EXPECT_LT(svg.find(">second<"), svg.find(">vendor<"));
  EXPECT_NE(svg.find("2 TFLOP/s"), std::string::npos);
  EXPECT_NE(svg.find("a &lt;fast&gt; CPU"), std::string::npos) << "names are text, not markup";
}

TEST(Pictures, HaveAPointPerDecidedProblemWithAPeer) {
  const std::string rows = R"({"survey": {"where": "GPU"}, "rows": [
    {"vs_peer": 2.0, "seconds": 1e-5}, {"vs_peer": 0.5, "seconds": 1e-5},
    {"vs_peer": null, "seconds": 1e-5}, {"vs_peer": 0.1, "seconds": 1e-5, "undecided": true}]})";
  const std::string svg = results_to_picture("[" + rows + "," + rows + "]", "");
  EXPECT_EQ(count(svg, "<circle"), 4);
  EXPECT_NE(svg.find("2 below 0.9"), std::string::npos);
}

TEST(Pictures, AreRenewedFromTheirFirstLine) {
  const auto results = [](const std::string& name) {
    EXPECT_EQ(name, "here/gemm");
    return std::string(ladder);
  };
  const std::string once =
      renewed_picture("<!-- rung:picture here/gemm f32 8x8x8 -->\nold", results);
  EXPECT_TRUE(once.starts_with("<!-- rung:picture here/gemm f32 8x8x8 -->\n<svg"));
  EXPECT_EQ(renewed_picture(once, results), once);
}

TEST(Pictures, RefuseWhatTheyCannotDraw) {
  test::expect_error(ErrorCode::invalid_argument, {"f32 9x9x9"},
                     [] { results_to_picture(ladder, "f32 9x9x9"); });
  test::expect_error(ErrorCode::io, {}, [] { results_to_picture("[1]", ""); });
  test::expect_error(ErrorCode::invalid_argument, {"first line"},
                     [] { renewed_picture("<svg/>", [](const auto&) { return std::string(); }); });
}

}  // namespace
}  // namespace rung::workbench
