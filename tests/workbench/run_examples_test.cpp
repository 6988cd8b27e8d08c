// SPDX-License-Identifier: Apache-2.0
// The examples in `rung run OPERATOR --help` work as printed, on files created for them.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <sstream>

#include "fake_operator.hpp"
#include "rung/harness/npy.hpp"
#include "rung/workbench/png.hpp"

namespace rung::test {
namespace {

namespace fs = std::filesystem;

struct File {
  DType dtype;
  Extents shape;
};

/// Returns the files of each operator's examples, by name; unlisted files are f32 of 6 x 8.
const std::map<std::string, std::map<std::string, File>>& files() {
  static const File layer{DType::f32, {2, 3, 6, 6}};
  static const File filter{DType::f32, {4, 3, 3, 3}};
  static const File layer_result{DType::f32, {2, 4, 4, 4}};
  static const File heads{DType::f32, {1, 2, 5, 8}};
  static const std::map<std::string, std::map<std::string, File>> all{
      {"attention", {{"q", heads}, {"k", heads}, {"v", heads}}},
      {"attention_backward",
       {{"q", heads},
        {"k", heads},
        {"v", heads},
        {"o", heads},
        {"lse", {DType::f32, {1, 2, 5}}},
        {"dout", heads}}},
      {"conv", {{"x", layer}, {"w", filter}}},
      {"conv_backward_data", {{"dy", layer_result}, {"w", filter}}},
      {"conv_backward_filter", {{"x", layer}, {"dy", layer_result}}},
      {"gemm", {{"a", {DType::f32, {6, 8}}}, {"b", {DType::f32, {8, 5}}}}},
      {"image", {{"x", {DType::u8, {6, 8, 3}}}}},
      {"loss", {{"target", {DType::i32, {6}}}}},
      {"pool", {{"x", layer}}},
      {"pool_backward", {{"dy", layer}, {"indices", {DType::i64, {2, 3, 6, 6}}}}},
      {"stencil", {{"mask", {DType::f32, {3, 3}}}}},
  };
  return all;
}

/// Writes a file of zeros, which are valid labels and indices, too.
void make_file(const std::string& op, const std::string& name) {
  const std::string stem = fs::path(name).stem().string();
  if (name.ends_with(".png")) {
    workbench::write_png(name, Tensor(DType::u8, {6, 8, 3}));
    return;
  }
  File file{DType::f32, {6, 8}};
  if (const auto of_op = files().find(op); of_op != files().end()) {
    if (const auto found = of_op->second.find(stem); found != of_op->second.end()) {
      file = found->second;
    }
  }
  Tensor tensor(file.dtype, file.shape);
  std::fill_n(tensor.data<char>(), tensor.shape().product() * size_of(file.dtype), '\0');
  write_npy(name, tensor);
}

class RunExamples : public testing::Test {
 protected:
  RunExamples() : before_(fs::current_path()) {
    char name[] = "/tmp/rung-examples-XXXXXX";
    folder_ = mkdtemp(name);
    fs::current_path(folder_);
  }
  ~RunExamples() override {
    fs::current_path(before_);
    fs::remove_all(folder_);
  }

  fs::path before_, folder_;
};

TEST_F(RunExamples, OfEveryOperatorWorkAsPrinted) {
  setenv("COLUMNS", "300", 1);  // one line per example
  int examples = 0;
  for (const AnyOperator* op : operators()) {
    const std::string name(op->name());
    if (op->bench_problems(Backend::cpu).empty() || name == "add_sum") continue;
    std::istringstream help(run_rung({"run", name, "--help"}).out);
    for (std::string line; std::getline(help, line);) {
      if (!line.starts_with("  rung run ")) continue;
      line = line.substr(2, line.find("  ", 2) - 2);  // without the comment
      std::vector<std::string> words;
      std::istringstream parts(line);
      for (std::string word; parts >> word;) words.push_back(word);
      words.erase(words.begin());
      std::string output;
      for (std::size_t i = 0; i < words.size(); ++i) {
        const bool is_file = words[i].ends_with(".npy") || words[i].ends_with(".png");
        if (i > 0 && words[i - 1] == "-o") output = words[i];
        if (is_file && words[i] != output) make_file(name, words[i]);
      }
      const Outcome outcome = run_rung(words);
      EXPECT_EQ(outcome.code, 0) << line << ": " << outcome.err;
      EXPECT_TRUE(fs::remove(output)) << line;
      ++examples;
    }
  }
  unsetenv("COLUMNS");
  EXPECT_GT(examples, 0);
}

TEST_F(RunExamples, AnOutputIsAFileOfAKnownKindInAFolderThatExists) {
  make_file("fake", "x.npy");
  for (const char* output : {"-", "out.jpg", "c.txt", "out", "npy", "/dev/null"}) {
    const Outcome outcome = run_rung({"run", "fake", "x.npy", "-o", output});
    EXPECT_EQ(outcome.code, 2) << output << outcome.out;
    EXPECT_NE(outcome.err.find("accepted: a file whose name ends in .npy, or in .png"),
              std::string::npos)
        << outcome.err;
    EXPECT_FALSE(fs::exists(std::string(output)) && fs::is_regular_file(output)) << output;
  }
  const Outcome nowhere = run_rung({"run", "fake", "x.npy", "-o", "no/such/out.npy"});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_NE(nowhere.err.find("there is no folder 'no/such'"), std::string::npos) << nowhere.err;
  EXPECT_EQ(run_rung({"run", "fake", "x.npy", "-o", "OUT.NPY"}).code, 0);
}

TEST_F(RunExamples, ResultsGoNoWhereThatHasToBeMade) {
  const KnownMachine machine;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"bench", "fake", "--output", "none/a.json"},
        {"survey", "fake", "--json", "none/a.json"}}) {
    const Outcome outcome = run_rung(words);
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    EXPECT_NE(outcome.err.find("there is no folder 'none'"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "") << "before anything is timed";
    EXPECT_FALSE(fs::exists("none"));
  }
}

}  // namespace
}  // namespace rung::test
