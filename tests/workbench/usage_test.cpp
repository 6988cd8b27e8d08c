// SPDX-License-Identifier: Apache-2.0
// Invalid or incomplete command lines: suggestions, numbers in messages, completion, help.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "fake_operator.hpp"
#include "rung/core/suggestion.hpp"
#include "rung/workbench/command.hpp"
#include "rung/workbench/selection.hpp"

namespace rung::test {
namespace {

using Words = std::vector<std::string>;

TEST(Suggestion, EditDistanceCountsWhatATypistDoes) {
  const struct {
    const char *a, *b;
    std::size_t distance;
  } cases[] = {{"", "", 0},           {"abc", "", 3},           {"", "ab", 2},
               {"check", "chekc", 1}, {"gemm", "gem", 1},       {"softmax", "sofmxa", 2},
               {"bench", "BENCH", 0}, {"kitten", "sitting", 3}, {"ca", "abc", 3}};
  for (const auto& one : cases) {
    EXPECT_EQ(edit_distance(one.a, one.b), one.distance) << one.a << " " << one.b;
    EXPECT_EQ(edit_distance(one.b, one.a), one.distance) << one.b << " " << one.a;
  }
}

TEST(Suggestion, OnlyWhatIsClose) {
  const Words known{"check", "bench", "softmax", "f32", "f64"};
  EXPECT_EQ(did_you_mean("chekc", known), " (did you mean 'check'?)");
  EXPECT_EQ(did_you_mean("soft", known), " (did you mean 'softmax'?)") << "it goes on so";
  EXPECT_EQ(did_you_mean("fp32", known), " (did you mean 'f32'?)");
  for (const char* far : {"", "x", "matmul", "benchmarking-everything", "list"}) {
    EXPECT_EQ(did_you_mean(far, known), "") << far;
  }
  EXPECT_EQ(did_you_mean(std::string(100000, 'c'), known), "") << "and takes no time";
}

TEST(Usage, MistypedWordsAreAnsweredWithTheOnesMeant) {
  const struct {
    Words words;
    const char* says;
  } cases[] = {
      {{"bnch"}, "unknown command 'bnch' (did you mean 'bench'?)"},
      {{"help", "bnch"}, "did you mean 'bench'?"},
      {{"check", "--bakend", "cpu"}, "unknown option '--bakend' (did you mean '--backend'?)"},
      {{"check", "--bakend=cpu"}, "did you mean '--backend'?"},
      {{"list", "fakke"}, "did you mean 'fake'?"},
      {{"check", "fake/rihgt"}, "fake has no rung 'rihgt' (did you mean 'right'?); it has these"},
      {{"bench", "fake", "--rungs", "one_unti"}, "did you mean 'one_unit'?"},
      {{"run", "fakee"}, "no operator 'fakee' (did you mean 'fake'?)"},
      {{"run", "fakee", "x.npy", "-o", "y.npy"}, "no operator 'fakee' (did you mean 'fake'?)"},
      {{"bnch", "gemm", "--jsn"}, "unknown command 'bnch' (did you mean 'bench'?)"},
      {{"check", "fake/rihgt"}, "no rung 'rihgt' (did you mean 'right'?)"},
      {{"bench", "fake", "fp32 4x4"}, "did you mean 'f32'?"},
      {{"check", "fake", "--variant", "plain adversaril"}, "did you mean 'plain adversarial'?"},
      {{"completion", "bsh"}, "did you mean 'bash'?"},
      {{"list", "fake", "extra"}, "one argument too many: 'extra'"},
      {{"--bogus", "list"}, "unknown option '--bogus'"},
      {{"machine", "--unknown"}, "unknown option '--unknown'"},
      {{"run", "fake", "x.npy", "-o", "y.npy", "--trehads", "2"}, "did you mean '--threads'?"},
  };
  for (const auto& one : cases) {
    const Outcome outcome = run_rung(one.words);
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    EXPECT_NE(outcome.err.find(one.says), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("rung: rung:"), std::string::npos) << outcome.err;
  }
}

TEST(Usage, WhatThisBuildLeavesOutIsNamedAsSuch) {
  for (const workbench::LeftOutOperator& left_out : workbench::left_out_operators()) {
    const std::string name(left_out.name);
    for (const Words& words : {Words{"list", name},
                               {"bench", name},
                               {"survey", name},
                               {"run", name, "x.npy", "-o", "y.npy"}}) {
      const Outcome outcome = run_rung(words);
      EXPECT_EQ(outcome.code, 3) << outcome.out;
      EXPECT_NE(outcome.err.find("this build has no " + name + ","), std::string::npos)
          << outcome.err;
      EXPECT_NE(outcome.err.find("-DRUNG_OPERATORS=" + name), std::string::npos) << outcome.err;
    }
  }
  if (available(Backend::simt)) return;
  const Outcome emulate = run_rung({"emulate", "--order", "all", "x.cu"});
  EXPECT_EQ(emulate.code, 3);
  EXPECT_NE(emulate.err.find("-DRUNG_SIMT=ON"), std::string::npos) << emulate.err;
}

// CLI11 treats an empty word as an omitted value: `check --problem "$p"` would check everything.
TEST(Usage, AnEmptyWordIsRefused) {
  for (const Words& words : {Words{"bench", "fake", ""},
                             {"check", "fake", "--problem", ""},
                             {"list", " "},
                             {"bench", "fake", "f32 4x16", "--rungs", ""}}) {
    const Outcome outcome = run_rung(words);
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    EXPECT_NE(outcome.err.find("an empty word; leave "), std::string::npos) << outcome.err;
  }
}

TEST(Usage, AnEmptyWordIsNoDefaultOfWhatIsRequired) {
  for (const char* option : {"-o", "--output"}) {
    const Outcome outcome = run_rung({"run", "fake", "x.npy", option, ""});
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    EXPECT_NE(
        outcome.err.find(std::string(option) + ": '' given, an empty word; accepted: a FILE\n"),
        std::string::npos)
        << outcome.err;
  }
  const Outcome rungs = run_rung({"run", "fake", "x.npy", "-o", "y.npy", "--rung", ""});
  EXPECT_NE(rungs.err.find("leave both out for the default"), std::string::npos) << rungs.err;
}

TEST(Usage, StandardOutputIsNotCalledDash) {
  for (const Words& words : {Words{"bench", "fake", "--output", "-"},
                             {"survey", "fake", "--json", "-"},
                             {"run", "fake", "x.npy", "-o", "-"},
                             {"emulate", "--json", "-", "x.cu"}}) {
    if (words.front() == "emulate" && !available(Backend::simt)) continue;
    const Outcome outcome = run_rung(words);
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    EXPECT_NE(outcome.err.find("'-' given; accepted: a file"), std::string::npos) << outcome.err;
  }
}

TEST(Usage, ARangeOfProblemsIsForSurvey) {
  for (const char* command : {"bench", "explain"}) {
    const Outcome outcome = run_rung({command, "fake", "f32 4..64x16"});
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    EXPECT_NE(outcome.err.find("`rung survey OPERATOR 'f32 4..64x16'`"), std::string::npos)
        << outcome.err;
  }
}

TEST(Usage, EveryCommandRejectsWhatItDoesNotKnow) {
  for (const workbench::Command* command : workbench::commands()) {
    const std::string name = command->spec.name;
    if (name == "emulate") continue;  // its files may be mixed with options of nvcc
    const Outcome outcome = run_rung({name, "--no-such-option"});
    EXPECT_EQ(outcome.code, 2) << name << outcome.out;
    EXPECT_NE(outcome.err.find("'--no-such-option'"), std::string::npos) << name << outcome.err;
  }
}

TEST(Usage, MistypedKeysOfAProblemToo) {
  try {
    Problem::parse("f32 4x4,axsi=0").expect("fake", 2, {"in_place", "axis"});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'axis'?"), std::string::npos)
        << error.what();
  }
}

// CLI11 prints a range of 309 digits, or reads 010 as octal.
TEST(Usage, NumbersInMessagesAreReadable) {
  const std::string huge(300, '9');
  const struct {
    Words words;
    const char* says;
  } cases[] = {
      {{"check", "--seed", "0"}, "--seed: '0' given; accepted: a whole number from 1 to 2^64 - 1"},
      {{"check", "--seed", "-1"}, "--seed: '-1' given"},
      {{"check", "--seed", "1.5"}, "'1.5' given; accepted: a whole number"},
      {{"check", "--seed", huge}, "accepted: a whole number from 1 to 2^64 - 1"},
      {{"check", "--seed", "many"}, "'many' given"},
      {{"check", "--seed"}, "--seed: no value given"},
      {{"check", "--seed", "1", "--seed", "2"}, "--seed: given more than once"},
      {{"check", "--threads", "0"}, "'0' given; accepted: a whole number from 1 to 4096"},
      {{"check", "--threads", "0x10"}, "accepted: a whole number from 1 to 4096"},
      {{"check", "--threads", huge}, "accepted: a whole number from 1 to 4096"},
      {{"bench", "fake", "--pairs", "1001"}, "a whole number from 1 to 1000"},
      {{"bench", "fake", "--threads", "0"}, "1 to 4096"},
      {{"occupancy", "--threads", "-5"}, "a whole number from 1 to 1048576"},
      {{"occupancy", "--registers", "many"}, "'many' given; accepted: a whole number"},
      {{"amdahl", "--measured", "5.6"}, "as in `rung amdahl --measured 5.6 8`"},
      {{"amdahl", "--measured", "5.6", "0.9"}, "'0.9' given; accepted with --measured: a number"},
      {{"amdahl", "--measured", "-2", "-n", "4"}, "'-2' given; accepted: a number above 0"},
      {{"amdahl", "0.9", "0"}, "accepted: a number from 1 to 1e+15"},
      {{"amdahl", "0.9", "nan"}, "'nan' given"},
  };
  for (const auto& one : cases) {
    const Outcome outcome = run_rung(one.words);
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    EXPECT_NE(outcome.err.find(one.says), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("000000"), std::string::npos) << outcome.err;
    EXPECT_LT(outcome.err.size(), 400u) << outcome.err;
  }
  // Decimal, even with a leading 0.
  const Outcome decimal = run_rung({"bench", "fake", "--pairs", "0999999"});
  EXPECT_EQ(decimal.code, 2);
}

TEST(Usage, HelpOfACommandIsItsHelpOption) {
  EXPECT_EQ(run_rung({"help"}).out, run_rung({"--help"}).out);
  for (const Words& words : {Words{"bench"}, {"run"}, {"run", "fake"}, {"help"}}) {
    Words help{"help"};
    help.insert(help.end(), words.begin(), words.end());
    Words option = words;
    option.emplace_back("--help");
    const Outcome outcome = run_rung(help);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, run_rung(option).out);
    EXPECT_NE(outcome.out.find("Usage: rung " + words.front()), std::string::npos) << outcome.out;
  }
}

TEST(Usage, HelpOfEachCommandHasExamplesAndExitCodes) {
  const std::vector<std::string> commands = workbench::complete({"help", ""});
  EXPECT_GE(commands.size(), 8u);
  for (const std::string& command : commands) {
    const std::string help = run_rung({command, "--help"}).out;
    EXPECT_NE(help.find("\nExamples:\n  "), std::string::npos) << help;
    EXPECT_NE(help.find("\nExit codes:\n  "), std::string::npos) << help;
  }
}

TEST(Usage, VersionSaysWhatIsHere) {
  EXPECT_EQ(run_rung({"-v"}).out, run_rung({"--version"}).out);
  const Outcome outcome = run_rung({"--version"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out.find("rung " RUNG_VERSION "\n"), 0u) << outcome.out;
  EXPECT_NE(outcome.out.find("cpu   available\n"), std::string::npos) << outcome.out;
}

TEST(List, ExamplesOfProblemsAreNotBroken) {
  for (const char* columns : {"60", "80", "100", "120"}) {
    setenv("COLUMNS", columns, 1);
    for (const AnyOperator* op : operators()) {
      const std::string text = run_rung({"list", std::string(op->name())}).out;
      for (const char* type : {" f32\n", " bf16\n", " f16\n", " e4m3\n", " i8\n", " u8\n"}) {
        const std::size_t at = text.find(type);
        if (at == std::string::npos) continue;
        const std::size_t next = text.find_first_not_of(' ', at + std::string(type).size());
        EXPECT_FALSE(std::isdigit(static_cast<unsigned char>(text[next]))) << columns << text;
      }
    }
  }
  unsetenv("COLUMNS");
}

bool offers(const Words& words, const std::string& candidate) {
  const Words found = workbench::complete(words);
  return std::find(found.begin(), found.end(), candidate) != found.end();
}

TEST(Completion, OffersWhatCouldStandThere) {
  EXPECT_EQ(workbench::complete({"ben"}), Words{"bench"});
  EXPECT_TRUE(offers({""}, "list"));
  EXPECT_FALSE(offers({""}, "complete-words")) << "it is for the scripts";
  EXPECT_EQ(workbench::complete({"check", "fak"}), Words{"fake"});
  EXPECT_EQ(workbench::complete({"check", "fake/one"}), Words{"fake/one_unit"});
  EXPECT_EQ(workbench::complete({"check", "--back"}), Words{"--backend"});
  EXPECT_EQ(workbench::complete({"check", "fake", "--backend", "c"}), (Words{"cpu", "cuda"}));
  EXPECT_EQ(workbench::complete({"bench", "fake", "--rungs", "right,peer_e"}),
            Words{"right,peer_eight"});
  EXPECT_EQ(workbench::complete({"--color", "al"}), Words{"always"});
  EXPECT_EQ(workbench::complete({"run", "fa"}), Words{"fake"});
  EXPECT_EQ(workbench::complete({"run", "fake", "--for"}), Words{"--force"});
  EXPECT_EQ(workbench::complete({"run", "fake", ""}), Words{":files"});
  EXPECT_EQ(workbench::complete({"bench", "fake", "--output", "res"}), Words{":files"});
  EXPECT_EQ(workbench::complete({"help", "run", "fa"}), Words{"fake"});
  EXPECT_EQ(workbench::complete({"completion", "f"}), Words{"fish"});
  EXPECT_EQ(workbench::complete({"explain", "fake", "--gpu", "h"}), (Words{"h200", "h100"}));
  EXPECT_TRUE(offers({"explain", "fake", "--gpu", ""}, "cpu"));
  EXPECT_TRUE(offers({"check", "fake", "--variant", "plain ad"}, "plain adversarial"));
  EXPECT_EQ(workbench::complete({"machine", ""}), Words{});
  EXPECT_EQ(workbench::complete({"list", "fake", "x"}), Words{}) << "it takes one operator";
}

TEST(Completion, OfAnOptionAndItsValueInOneWord) {
  EXPECT_EQ(workbench::complete({"list", "--color=al"}), Words{"--color=always"});
  // Split as bash splits words: it replaces the part after the sign.
  EXPECT_EQ(workbench::complete({"list", "--color", "=", "al"}), Words{"always"});
  EXPECT_EQ(workbench::complete({"check", "--backend", "="}),
            (Words{"cpu", "cuda", "simt", "opencl"}));
  EXPECT_EQ(workbench::complete({"check", "--backend", "=", "cpu", "fak"}), Words{"fake"});
  EXPECT_EQ(workbench::complete({"list", "--nothing=al"}), Words{});
}

}  // namespace
}  // namespace rung::test
