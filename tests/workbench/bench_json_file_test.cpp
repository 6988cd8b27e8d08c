// SPDX-License-Identifier: Apache-2.0
// rung bench --json with a file name after it, like survey's and emulate's option.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "command_line.hpp"

namespace rung::test {
namespace {

std::string content_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

const std::vector<std::string> quick{"bench",   "fake", "f32 4x8", "--backend", "cpu",
                                     "--pairs", "1",    "--rungs", "right"};

Outcome run_quick(const std::vector<std::string>& more) {
  std::vector<std::string> words = quick;
  words.insert(words.end(), more.begin(), more.end());
  return run_rung(words);
}

TEST(BenchJson, TakesAFile) {
  const KnownMachine machine;
  const std::string path = machine.folder + "/bench.json";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--json", path}, {"--json=" + path}}) {
    std::filesystem::remove(path);
    const Outcome outcome = run_quick(words);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("right"), std::string::npos) << "the tables: " << outcome.out;
    const nlohmann::json json = nlohmann::json::parse(content_of(path));
    EXPECT_TRUE(json.at("complete"));
    EXPECT_EQ(json.at("rows")[0].at("problem"), "f32 4x8");
  }
}

// A problem after the flag is still a problem, and the object goes to standard output.
TEST(BenchJson, WithoutAFilePrints) {
  const KnownMachine machine;
  const Outcome last = run_quick({"--json"});
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_EQ(nlohmann::json::parse(last.out).at("rows").size(), 1u);
  const Outcome before = run_quick({"--json", "f32 2x8"});
  ASSERT_EQ(before.code, 0) << before.err;
  EXPECT_EQ(nlohmann::json::parse(before.out).at("rows").size(), 2u);
}

TEST(BenchJson, RefusesWhatItCannotWrite) {
  const KnownMachine machine;
  const Outcome nowhere = run_quick({"--json", machine.folder + "/none/bench.json"});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_NE(nowhere.err.find("--output"), std::string::npos) << nowhere.err;
  EXPECT_EQ(run_quick({"--json=a.json", "--output", "b.json"}).code, 2);
  const Outcome gate =
      run_rung({"bench", "--gate", "fake", "--json", machine.folder + "/none/gate.json"});
  EXPECT_EQ(gate.code, 2) << "nothing is timed in vain";
}

}  // namespace
}  // namespace rung::test
