// SPDX-License-Identifier: Apache-2.0
// docs/json.md has exactly the keys that the commands print as JSON.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "fake_operator.hpp"
#include "rung/bench/machine.hpp"
#include "rung/workbench/gate.hpp"

namespace rung::test {
namespace {

using Keys = std::set<std::string>;

/// Returns the keys of each section's table, by its heading.
std::map<std::string, Keys> documented_keys() {
  std::ifstream page(RUNG_SOURCE_DIR "/docs/json.md");
  std::map<std::string, Keys> sections;
  std::string heading;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) heading = line.substr(3);
    if (!line.starts_with("| `")) continue;
    const std::size_t end = line.find('`', 3);
    const bool is_new = sections[heading].insert(line.substr(3, end - 3)).second;
    EXPECT_TRUE(is_new) << heading << ": twice: " << line;
  }
  return sections;
}

/// Paths of all keys in a command's output.
class PrintedKeys {
 public:
  explicit PrintedKeys(const Keys& documented) : documented_(documented) {}

  void add(const nlohmann::json& value, const std::string& path = "") {
    const std::string dot = path.empty() ? "" : path + ".";
    if (value.is_structured() && value.empty()) {
      empty_.insert(path);
    } else if (path == "machine") {  // an object that has its own section
      keys_.insert(path);
    } else if (value.is_object() && documented_.count(dot + "*") != 0) {
      keys_.insert(dot + "*");
    } else if (value.is_object()) {
      for (const auto& [key, below] : value.items()) add(below, dot + key);
    } else if (value.is_array() && value.front().is_object()) {
      for (const nlohmann::json& one : value) add(one, path + "[]");
    } else {
      keys_.insert(path);
    }
  }

  void expect_documented(const std::string& heading) const {
    for (const std::string& key : keys_) {
      EXPECT_EQ(documented_.count(key), 1u) << heading << ": docs/json.md lacks " << key;
    }
    for (const std::string& key : documented_) {
      EXPECT_TRUE(keys_.count(key) != 0 || is_below_empty(key))
          << heading << ": nothing prints " << key;
    }
  }

 private:
  /// Returns true for a key below an array or object that was empty in the output.
  [[nodiscard]] bool is_below_empty(const std::string& key) const {
    return std::any_of(empty_.begin(), empty_.end(), [&](const std::string& path) {
      return key == path || key.starts_with(path + "[]") || key.starts_with(path + ".");
    });
  }

  const Keys& documented_;
  Keys keys_;
  Keys empty_;
};

std::string machine_of_everything() {
  bench::Machine machine;
  machine.arithmetic.emplace_back();
  machine.bandwidth.emplace_back();
  machine.latencies.emplace_back();
  machine.atomics.emplace_back();
  bench::Gpu& gpu = machine.gpus.emplace_back();
  gpu.arithmetic.emplace_back();
  gpu.latencies.emplace_back();
  gpu.atomics.emplace_back();
  gpu.link.emplace_back();
  return bench::machine_to_json(machine);
}

TEST(JsonPage, HasEveryKeyThatIsPrinted) {
  const KnownMachine machine;
  const std::string survey = machine.folder + "/survey.json";
  ASSERT_EQ(run_rung({"survey", "fake", "f32 4..64x4..64", "--backend", "cpu", "--count", "1",
                      "--json", survey})
                .code,
            0);
  std::stringstream surveyed;
  surveyed << std::ifstream(survey).rdbuf();
  const auto printed = [](const std::vector<std::string>& words) { return run_rung(words).out; };
  const std::map<std::string, std::vector<std::string>> outputs{
      {"rung bench --json",
       {printed({"bench", "fake", "--backend", "cpu", "--pairs", "1", "--rungs",
                 "right,columns,peer_two,best", "--json"})}},
      {"rung bench --gate --json", {workbench::gate_json({{.op = "fake", .problem = "f32 1x1"}})}},
      {"rung survey --json FILE", {surveyed.str()}},
      {"rung check --json",
       {printed({"check", "fake", "--backend", "cpu", "--json"}),
        printed({"check", "fake/right", "--problem", "f32 4x8,zero", "--json"})}},
      {"rung list --json", {printed({"list", "fake", "--json"})}},
      {"rung machine --json", {machine_of_everything()}},
      {"rung occupancy --json",
       {printed({"occupancy", "--threads", "32", "--gpu", "h100", "--json"}),
        printed({"occupancy", "--threads", "32", "--gpu", "h100,t4", "--json"})}},
      {"rung amdahl --json", {printed({"amdahl", "0.9", "8", "--json"})}},
      {"The calculators", {printed({"pcie", "--json"})}},
  };
  const std::map<std::string, Keys> sections = documented_keys();
  EXPECT_EQ(sections.size(), outputs.size());
  for (const auto& [heading, texts] : outputs) {
    ASSERT_EQ(sections.count(heading), 1u) << heading;
    PrintedKeys keys(sections.at(heading));
    for (const std::string& text : texts) {
      ASSERT_TRUE(nlohmann::json::accept(text)) << heading << '\n' << text;
      keys.add(nlohmann::json::parse(text));
    }
    keys.expect_documented(heading);
  }
}

}  // namespace
}  // namespace rung::test
