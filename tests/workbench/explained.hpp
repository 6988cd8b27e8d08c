// SPDX-License-Identifier: Apache-2.0
// Output of `rung explain --json`, for its tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fake_operator.hpp"

namespace rung::test {

inline nlohmann::json explained(std::vector<std::string> words) {
  words.insert(words.begin(), "explain");
  words.emplace_back("--json");
  const Outcome outcome = run_rung(words);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out);
}

inline nlohmann::json rung_of(const nlohmann::json& result, const std::string& name) {
  const nlohmann::json& all = result.at("rungs");
  return *std::find_if(all.begin(), all.end(),
                       [&](const nlohmann::json& r) { return r.at("rung") == name; });
}

inline nlohmann::json roof_of(const nlohmann::json& rung, const char* bytes_are) {
  const nlohmann::json& all = rung.at("roofline");
  return *std::find_if(all.begin(), all.end(),
                       [&](const nlohmann::json& r) { return r.at("bytes_are") == bytes_are; });
}

inline double counter(const nlohmann::json& rung, const char* name) {
  return rung.at("counters").at(name).get<double>();
}

}  // namespace rung::test
