// SPDX-License-Identifier: Apache-2.0
// Command lines of calculators as one text, and figures from their output.
#pragma once

#include <gtest/gtest.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "fake_operator.hpp"

namespace rung::test {

using Figures = std::vector<double>;

/// Runs a command line whose words contain no blanks.
inline Outcome run_line(const std::string& line) {
  std::istringstream text(line);
  return run_rung({std::istream_iterator<std::string>(text), {}});
}

inline nlohmann::json json_of(const std::string& line) {
  const Outcome outcome = run_line(line + " --json");
  EXPECT_EQ(outcome.code, 0) << line << ": " << outcome.err;
  return nlohmann::json::parse(outcome.out);
}

/// Returns one result from each line of a calculator's table.
inline Figures figures(const std::string& line, const std::string& result) {
  Figures all;
  const nlohmann::json printed = json_of(line);
  for (const nlohmann::json& row : printed.at("rows")) {
    all.push_back(row.at("results").at(result).get<double>());
  }
  return all;
}

inline double figure(const std::string& line, const std::string& result) {
  const Figures all = figures(line, result);
  EXPECT_EQ(all.size(), 1u) << line;
  return all.at(0);
}

inline std::string page_of(const std::string& line) {
  const Outcome outcome = run_line(line);
  EXPECT_EQ(outcome.code, 0) << line << ": " << outcome.err;
  expect_fits_the_page(outcome.out);
  return outcome.out;
}

}  // namespace rung::test
